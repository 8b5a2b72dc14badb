/* Tests exits by a jump to another function's start, in every state of the other function. The exit
 * and the entry have the same time, unless the thread may have waited in between. */
#include "tests/agent/inproc/recorder/call_checked.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CALLER = 7, CALLEE = 8, SINGLE = 9, PAGE = 4096, COLD = 2048, HEAD = 3072, HEAD_BYTES = 5 };

/* Two functions of a page. The caller jumps to the callee. Tests patch and restore the callee's
 * head. */
typedef struct two_functions {
    uint8_t *page;
    probe_function caller; /* entry, and exit through the tail_entry */
    probe_function single; /* one entry of SINGLE */
    uint8_t original[HEAD_BYTES];
    uint8_t patched[HEAD_BYTES];
} two_functions;

static uint32_t leave_tag(uint32_t function)
{
    return UINT32_C(1) << SJ_RECORD_FUNCTION_BITS | function;
}

static void patch_head(two_functions *made, bool on)
{
    memcpy(made->page + HEAD, on ? made->patched : made->original, HEAD_BYTES);
}

static two_functions make_functions(uint32_t mark_bytes)
{
    static const uint8_t ret[] = {0xc3};
    two_functions made = {.original = {0xc3, 0x90, 0x90, 0x90, 0x90}};
    made.page =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(made.page != MAP_FAILED);
    const uint64_t start = (uint64_t)(uintptr_t)made.page;
    sj_code_emitter emitter = {.at = start, .slow_trampoline = start, .cold_at = start + COLD};
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_slow_entry);
    sj_code_emit_shared(&emitter);
    CHECK(sj_arch_has_tail_call_entries(&emitter));
    sj_tail_call_entry tail_entry = {
        .enter_tag = CALLEE, .entry = start + HEAD, .start = start + HEAD - mark_bytes};

    tail_entry.stub = emitter.at;
    sj_code_emit_probe(&emitter, CALLEE);
    sj_code_emit_probe(&emitter, leave_tag(CALLEE));
    sj_code_emit_bytes(&emitter, ret, sizeof(ret));

    bool too_far;
    CHECK(sj_arch_patch_bytes(SJ_ARCH_JUMP_PATCH, tail_entry.entry, tail_entry.stub, made.original,
                              HEAD_BYTES, made.patched, &too_far));
    memcpy(tail_entry.patch, made.patched, sizeof(tail_entry.patch));
    const uint64_t tail_entry_at = emitter.at;
    sj_code_emit_tail_call_entry(&emitter, &tail_entry);

    made.caller = (probe_function)(uintptr_t)emitter.at;
    sj_code_emit_probe(&emitter, CALLER);
    sj_code_emit_tail_call_exit(&emitter, leave_tag(CALLER), tail_entry_at);

    made.single = (probe_function)(uintptr_t)emitter.at;
    sj_code_emit_probe(&emitter, SINGLE);
    sj_code_emit_bytes(&emitter, ret, sizeof(ret));
    CHECK(emitter.at < start + COLD && emitter.cold_at < start + HEAD);
    patch_head(&made, true);
    return made;
}

static void start_with_chunks(const char *directory, uint32_t chunks, sj_full_policy policy)
{
    const sj_link_welcome welcome = make_welcome(2, chunks, policy);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
}

/* Over the calls, each of the four records becomes the last one of a chunk, and the first one. */
static void keep_registers(const char *directory)
{
    start_with_chunks(directory, 3, SJ_FULL_WAIT);
    two_functions made = make_functions(0);
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
        if (i % (SJ_CHUNK_RECORDS / 8) == 0) {
            made.single();
        }
        patch_head(&made, i % 3 != 0);
        call_checked(made.caller, 0x202 | (i & 1) | (i & 4) | (i & 2) << 9, FLAGS_NEVER_FREE);
    }
}

static void test_a_trampoline_keeps_registers_and_vectors(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers), 0);
}

static void keep_registers_disarmed(const char *directory)
{
    (void)directory;
    const two_functions made = make_functions(0);
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
        call_checked(made.caller, 0x202, FLAGS_NEVER_FREE);
    }
}

static void test_a_trampoline_keeps_registers_when_disarmed(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_disarmed), 0);
}

/* The records of all chunks in the order in which the chunks were claimed. */
typedef struct record_list {
    const uint8_t *base;
    uint32_t chunks;
    uint32_t next;
} record_list;

static const sj_record *next_record(record_list *list)
{
    const uint32_t chunk = list->next / SJ_CHUNK_RECORDS;
    CHECK(chunk < list->chunks);
    const uint8_t *records = list->base + sj_arena_chunk_offset(2, list->chunks, 0, chunk);
    return (const sj_record *)(records + SJ_CHUNK_HEADER_BYTES) + list->next++ % SJ_CHUNK_RECORDS;
}

static void check_call(record_list *list, bool is_patched)
{
    const uint32_t place = list->next % SJ_CHUNK_RECORDS;
    const bool needs_chunk = place == SJ_CHUNK_RECORDS - 1 || place == SJ_CHUNK_RECORDS - 2;
    const sj_record *enter = next_record(list);
    const sj_record *leave = next_record(list);
    CHECK(sj_record_tag(enter) == CALLER && sj_record_tag(leave) == leave_tag(CALLER));
    CHECK(sj_record_stack(leave) == sj_record_stack(enter) + is_patched);
    CHECK(sj_record_is_tail_call(sj_record_stack(leave)) == is_patched);
    CHECK(sj_record_ticks48(enter) <= sj_record_ticks48(leave));
    if (!is_patched) {
        return;
    }
    const sj_record *entered = next_record(list);
    const sj_record *left = next_record(list);
    CHECK(sj_record_tag(entered) == CALLEE && sj_record_tag(left) == leave_tag(CALLEE));
    CHECK(sj_record_stack(entered) == sj_record_stack(enter));
    CHECK(sj_record_stack(left) == sj_record_stack(enter));
    CHECK(sj_record_ticks48(entered) <= sj_record_ticks48(left));
    /* A thread that may have waited reads the clock again. */
    CHECK(needs_chunk ? sj_record_ticks48(entered) >= sj_record_ticks48(leave)
                      : sj_record_ticks48(entered) == sj_record_ticks48(leave));
}

static void record_calls(const char *directory, bool is_patched, uint32_t singles)
{
    enum { CHUNKS = 4, CALLS = SJ_CHUNK_RECORDS / 2 + 9 };
    char path[128];
    start_with_chunks(directory, CHUNKS, SJ_FULL_DROP_NEW);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    record_list list = {.base = map_arena_file(path), .chunks = CHUNKS};
    CHECK(list.base != NULL);
    two_functions made = make_functions(0);
    patch_head(&made, is_patched);
    for (uint32_t i = 0; i < singles; i++) {
        made.single();
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        made.caller();
    }
    for (uint32_t i = 0; i < singles; i++) {
        CHECK(sj_record_tag(next_record(&list)) == SINGLE);
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        check_call(&list, is_patched);
    }
    CHECK(sj_record_tag(next_record(&list)) == 0);
}

static void record_aligned(const char *directory)
{
    record_calls(directory, true, 0);
}

static void record_one_off(const char *directory)
{
    record_calls(directory, true, 1);
}

static void record_two_off(const char *directory)
{
    record_calls(directory, true, 2);
}

static void record_three_off(const char *directory)
{
    record_calls(directory, true, 3);
}

static void test_a_tail_call_is_one_moment(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(record_aligned), 0);
    assert_int_equal(run_in_child(record_one_off), 0);
    assert_int_equal(run_in_child(record_two_off), 0);
    assert_int_equal(run_in_child(record_three_off), 0);
}

static void record_unpatched(const char *directory)
{
    record_calls(directory, false, 1);
}

static void test_an_unhooked_function_is_jumped_to(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(record_unpatched), 0);
}

/* Another tool has replaced the callee's endbr64, here by a return. */
static void write_to_mark(const char *directory)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    char path[128];
    start_with_chunks(directory, 2, SJ_FULL_DROP_NEW);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    record_list list = {.base = map_arena_file(path), .chunks = 2};
    CHECK(list.base != NULL);
    two_functions made = make_functions(sizeof(endbr64));
    uint8_t *mark = made.page + HEAD - sizeof(endbr64);
    for (int i = 0; i < 3; i++) {
        memcpy(mark, endbr64, sizeof(endbr64));
        made.caller();
        check_call(&list, true);
        mark[0] = 0xc3;
        made.caller();
        check_call(&list, false);
    }
    CHECK(sj_record_tag(next_record(&list)) == 0);
}

static void test_code_that_another_tool_writes_to_the_landing_mark_runs(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(write_to_mark), 0);
}

static two_functions waited_for;
static uint8_t *arena;

/* Unhooks the callee and frees a chunk as soon as a thread waits for one. */
static void *free_callee(void *unused)
{
    const sj_arena_header *header = (const sj_arena_header *)arena;
    tally drained = {0};
    while (atomic_load(&header->drain_waiters) == 0) {
        usleep(100);
    }
    patch_head(&waited_for, false);
    drain_thread(arena, 0, true, &drained);
    return unused;
}

static void free_during_wait(const char *directory)
{
    enum { CHUNKS = 2 };
    sj_link_welcome welcome = make_welcome(2, CHUNKS, SJ_FULL_WAIT);
    char path[128];
    pthread_t other;
    welcome.wait_ms = 20000;
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    arena = map_arena_file(path);
    CHECK(arena != NULL);
    waited_for = make_functions(0);
    for (uint32_t i = 0; i < CHUNKS * SJ_CHUNK_RECORDS - 1; i++) {
        waited_for.single();
    }
    CHECK(pthread_create(&other, NULL, free_callee, NULL) == 0);
    waited_for.caller();
    pthread_join(other, NULL);
    record_list list = {.base = arena, .chunks = CHUNKS};
    CHECK(sj_record_tag(next_record(&list)) ==
          ((uint32_t)SJ_RECORD_NOTE << SJ_RECORD_FUNCTION_BITS | SJ_NOTE_WAITED));
    CHECK(sj_record_tag(next_record(&list)) == leave_tag(CALLER));
    CHECK(sj_record_tag(next_record(&list)) == 0);
}

static void test_a_function_unhooked_while_its_caller_waits_is_jumped_to(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(free_during_wait), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trampoline_keeps_registers_and_vectors),
        cmocka_unit_test(test_a_trampoline_keeps_registers_when_disarmed),
        cmocka_unit_test(test_a_tail_call_is_one_moment),
        cmocka_unit_test(test_an_unhooked_function_is_jumped_to),
        cmocka_unit_test(test_a_function_unhooked_while_its_caller_waits_is_jumped_to),
        cmocka_unit_test(test_code_that_another_tool_writes_to_the_landing_mark_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
