/* Probes of functions whose calls are counted write the same records as probes with clocks: in the
 * same order, with the same addresses, with handlers in between and with tail calls. They keep the
 * registers. */
#include "agent/abi/plan.h"
#include "agent/drain/untimed_records.h"
#if defined(__aarch64__)
#include "tests/agent/inproc/recorder/aarch64/call_checked.h"
#else
#include "tests/agent/inproc/recorder/call_checked.h"
#endif

#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/time.h>

#include <cmocka.h>

enum {
    CALLER = 7,
    CALLEE = 8,
    LEAF = 9,
    HIGH = 70000, /* too large for a short record */
    IN_HANDLER = 11,
    JUMPER = 12, /* jumps to the callee by its address */
    LEAVER = 13, /* jumps to code that is not hooked */
    OPENER = 14, /* only enters */
    CLOSER = 15, /* only leaves */
    CHUNKS = 60,
    PAGES = 8 * 4096,
    COLD = 4 * 4096,
    HEAD = PAGES - 1024,
    HEAD_BYTES = SJ_RETURN_PATCH_BYTES,
    ROUNDS = 40000,
    INTERRUPTED_RUNS = 8,
    DEEP_BYTES = 60000,
    FAR_HANDLER_BYTES = 40000, /* too far from the interrupted call for short records */
    NEAR_BYTES = 256
};

/* Functions that only record: an entry and an exit, or a tail call in between. */
typedef struct functions {
    probe_function caller; /* jumps to the callee */
    probe_function high;   /* jumps to the callee, too */
    probe_function leaf;
    probe_function in_handler;
    probe_function jumper;
    probe_function leaver;
    probe_function high_jumper; /* its number is too large for a short record */
    probe_function opener;
    probe_function closer;
} functions;

static functions made;
static uint8_t *arena;

static uint32_t leave_tag(uint32_t function)
{
    return sj_record_make_tag(SJ_RECORD_LEAVE, function);
}

static probe_function make_leaf(sj_code_emitter *emitter, uint32_t function, bool frees_flags)
{
    const uint64_t start = emitter->at;
    emitter->frees_flags = frees_flags;
    sj_code_emit_probe(emitter, function);
    sj_code_emit_probe(emitter, leave_tag(function));
    emitter->frees_flags = false;
    sj_code_emit_bytes(emitter, return_code, sizeof(return_code));
    return (probe_function)(uintptr_t)start;
}

static probe_function make_half(sj_code_emitter *emitter, uint32_t tag)
{
    const uint64_t start = emitter->at;
    sj_code_emit_probe(emitter, tag);
    sj_code_emit_bytes(emitter, return_code, sizeof(return_code));
    return (probe_function)(uintptr_t)start;
}

static probe_function make_caller(sj_code_emitter *emitter, uint32_t function,
                                  const sj_tail_call_entry *entry, uint64_t tail_entry)
{
    const uint64_t start = emitter->at;
    sj_code_emit_probe(emitter, function);
    if (sj_arch_has_tail_call_entries(emitter)) {
        sj_code_emit_tail_call_exit(emitter, leave_tag(function), tail_entry);
    } else {
        sj_code_emit_tail_call_alone(emitter, leave_tag(function), entry);
        emitter->frees_flags = false;
    }
    return (probe_function)(uintptr_t)start;
}

/* Makes a function whose exit learns at run time what it jumps to. */
static probe_function make_jumper(sj_code_emitter *emitter, uint32_t function, uint64_t target)
{
    enum { JUMP_REGISTER = 9 };
    const uint64_t start = emitter->at;
    sj_code_emit_probe(emitter, function);
#if defined(__aarch64__)
    static const uint8_t load[] = {0x49, 0, 0, 0x58,  /* ldr x9, .+8 */
                                   0x03, 0, 0, 0x14}; /* b .+12 */
    sj_code_emit_bytes(emitter, load, sizeof(load));
    sj_code_emit_bytes(emitter, (const uint8_t *)&target, sizeof(target));
#else
    static const uint8_t load[] = {0x48, 0xb8}; /* mov $target, %rax */
    static const uint8_t store[] = {0x48, 0x89, 0x44, 0x24, (uint8_t)-SJ_JUMP_TARGET_BELOW};
    sj_code_emit_bytes(emitter, load, sizeof(load));
    sj_code_emit_bytes(emitter, (const uint8_t *)&target, sizeof(target));
    sj_code_emit_bytes(emitter, store, sizeof(store)); /* mov %rax, below(%rsp) */
#endif
    sj_code_emit_jump_leave(emitter, leave_tag(function), JUMP_REGISTER);
    sj_code_emit_jump(emitter, target);
    return (probe_function)(uintptr_t)start;
}

static void make_functions(void)
{
    static const uint8_t original[HEAD_BYTES] = {0};
    uint8_t patched[HEAD_BYTES];
    uint8_t *pages =
        mmap(NULL, PAGES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && sj_recorder_counts_calls());
    const uint64_t start = (uint64_t)(uintptr_t)pages;
    sj_code_emitter emitter = {
        .at = start, .slow_trampoline = start, .cold_at = start + COLD, .counts_calls = true};
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_slow_entry);
    sj_code_emit_shared(&emitter);
    sj_tail_call_entry entry = {.enter_tag = CALLEE, .entry = start + HEAD, .start = start + HEAD};
    entry.stub = (uint64_t)(uintptr_t)make_leaf(&emitter, CALLEE, false);
    bool too_far;
    CHECK(sj_arch_patch_bytes(SJ_ARCH_JUMP_PATCH, entry.entry, entry.stub, original, HEAD_BYTES,
                              patched, &too_far));
    memcpy(pages + HEAD, patched, HEAD_BYTES);
    memcpy(entry.patch, patched, sizeof(entry.patch));
    const uint64_t tail_entry = emitter.at;
    sj_code_emit_tail_call_entry(&emitter, &entry);
    made.caller = make_caller(&emitter, CALLER, &entry, tail_entry);
    made.high = make_caller(&emitter, HIGH, &entry, tail_entry);
    made.leaf = make_leaf(&emitter, LEAF, true);
    made.in_handler = make_leaf(&emitter, IN_HANDLER, false);
    made.jumper = make_jumper(&emitter, JUMPER, entry.start);
    made.high_jumper = make_jumper(&emitter, HIGH + 1, entry.start);
    const uint64_t unhooked = emitter.at;
    sj_code_emit_bytes(&emitter, return_code, sizeof(return_code));
    made.leaver = make_jumper(&emitter, LEAVER, unhooked);
    made.opener = make_half(&emitter, OPENER);
    made.closer = make_half(&emitter, leave_tag(CLOSER));
    CHECK(emitter.at < start + COLD && emitter.cold_at < start + HEAD && !emitter.too_far);
    sj_arch_sync_code(start, PAGES);
}

static void start(const char *directory, uint32_t chunks, bool is_counted)
{
    char path[128];
    sj_link_welcome welcome = make_welcome(2, chunks, SJ_FULL_DROP_NEW);
    welcome.runtimes = SJ_LINK_RUNTIME_COUNTING;
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    arena = map_arena_file(path);
    CHECK(arena != NULL);
    uint8_t *counted = arena + sj_arena_counted_offset(2, chunks);
    memset(counted + CALLER, is_counted, LEAF + 1 - CALLER);
    memset(counted + IN_HANDLER, is_counted, CLOSER + 1 - IN_HANDLER);
    make_functions();
}

/* Returns the records of the arena, all of them full-size. The caller frees them. */
static sj_record *read_records(size_t *count)
{
    const sj_thread_slot *slot = arena_slot(arena, 0);
    sj_untimed_records *untimed =
        sj_untimed_records_new(NULL, slot->stack_low, slot->stack_high, false);
    sj_record *all = malloc((size_t)CHUNKS * SJ_CHUNK_RECORDS * SJ_SHORTS * sizeof(*all));
    CHECK(untimed != NULL && all != NULL);
    *count = 0;
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        const sj_record *places =
            (const sj_record *)(arena + sj_arena_chunk_offset(2, CHUNKS, 0, chunk) +
                                SJ_CHUNK_HEADER_BYTES);
        uint32_t written = 0;
        while (written < SJ_CHUNK_RECORDS &&
               (sj_record_word(&places[written], 0) != 0 || sj_record_tag(&places[written]) != 0)) {
            CHECK(written == 0 || sj_arena_place_is_written(&places[written - 1]));
            written++;
        }
        sj_record *records = NULL;
        size_t given = 0;
        uint64_t undecided = 0;
        CHECK(sj_untimed_records_read(untimed, places, written, UINT64_MAX / 2, &records, &given,
                                      &undecided) == SJ_OK);
        memcpy(all + *count, records, given * sizeof(*all));
        *count += given;
    }
    sj_record *records = NULL;
    size_t given = 0;
    CHECK(sj_untimed_records_settle(untimed, UINT64_MAX / 2, &records, &given) == SJ_OK);
    memcpy(all + *count, records, given * sizeof(*all));
    *count += given;
    sj_untimed_records_free(untimed);
    return all;
}

/* Runs `function` in a frame of `bytes` bytes. Frames may be near to each other, far apart, or at
 * the limits of short records. */
static __attribute__((noinline)) void call_at(probe_function function, size_t bytes)
{
    volatile char *space = alloca(bytes + 16);
    space[0] = 1;
    function();
    space[0] = 2;
}

static void run_program(void)
{
    uint32_t random = 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1103515245 + 12345;
        const uint32_t draw = random >> 16;
        const size_t deep = draw % 64 == 0 ? draw * 7 % DEEP_BYTES : draw % 96;
        const probe_function choices[] = {made.caller, made.leaf, made.jumper, made.high,
                                          made.caller, made.leaf, made.leaver, made.high_jumper};
        call_at(choices[draw / 64 % 8], deep);
    }
}

/* The stack addresses of the handler runs. */
static volatile uint64_t handler_frames[100000];
static volatile size_t handled;

/* The handler's recorded calls, in order. */
typedef struct handler_records {
    size_t frame;
    uint64_t records;
} handler_records;

static void check_handler_record(handler_records *of, uint64_t stack)
{
    while (of->frame < handled && handler_frames[of->frame] + NEAR_BYTES - stack > 2 * NEAR_BYTES) {
        of->frame++; /* a handler in the slow path may drop its records */
    }
    CHECK(of->frame < handled);
    of->records++;
}

/* A record of the program. Records of handlers are checked and not listed. */
typedef struct event {
    uint32_t tag;
    uint64_t stack;
} event;

/* True if this exit belongs to a function that ends by a jump. */
static bool jumps(uint32_t tag)
{
    return tag == leave_tag(CALLER) || tag == leave_tag(HIGH) || tag == leave_tag(JUMPER) ||
           tag == leave_tag(HIGH + 1);
}

static size_t list_events(event *events, size_t most)
{
    size_t count = 0;
    size_t records_count = 0;
    handler_records handlers = {0};
    sj_record *records = read_records(&records_count);
    for (size_t i = 0; i < records_count; i++) {
        const uint32_t tag = sj_record_tag(&records[i]);
        const uint64_t stack = sj_record_frame(&records[i]);
        const uint64_t tail = tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_LEAVE
                                  ? sj_record_stack(&records[i]) & SJ_STACK_TAIL_CALL
                                  : 0;
        if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_NOTE) {
            continue;
        }
        if ((tag & SJ_RECORD_FUNCTION_MASK) == IN_HANDLER) {
            check_handler_record(&handlers, stack);
            continue;
        }
        CHECK(count < most && (tail != 0) == jumps(tag));
        events[count++] = (event){.tag = tag, .stack = stack | tail};
    }
    const uint64_t dropped = atomic_load(&arena_slot(arena, 0)->dropped_events) +
                             atomic_load(&((sj_arena_header *)arena)->events_refused);
    CHECK(handlers.records + dropped == 2 * handled);
    free(records);
    return count;
}

/* Makes a recorded call from a handler that is not recorded itself. `here` is the handler's place
 * on the stack. */
static __attribute__((noinline)) void call_in_handler(const volatile char *here)
{
    handler_frames[handled] = (uint64_t)(uintptr_t)here;
    handled++;
    made.in_handler();
}

static __attribute__((noinline)) void call_near(void)
{
    const volatile char here = 0;
    call_in_handler(&here);
}

static __attribute__((noinline)) void call_far_down(void)
{
    const volatile char here[FAR_HANDLER_BYTES] = {0};
    call_in_handler(here);
}

static void interrupt(int number)
{
    (void)number;
    if (handled < sizeof(handler_frames) / sizeof(handler_frames[0])) {
        (handled % 2 == 0 ? call_near : call_far_down)();
    }
}

static event exact[4 * ROUNDS];
static event found[4 * ROUNDS];
static const char *results;
static size_t *handled_of_all; /* handler runs, shared with the child */

static void write_exact(const char *directory)
{
    start(directory, CHUNKS, false);
    run_program();
    const size_t count = list_events(exact, sizeof(exact) / sizeof(exact[0]));
    FILE *file = fopen(results, "wb");
    CHECK(file != NULL && fwrite(exact, sizeof(exact[0]), count, file) == count);
    CHECK(fclose(file) == 0);
}

static size_t read_exact(void)
{
    FILE *file = fopen(results, "rb");
    CHECK(file != NULL);
    const size_t count = fread(exact, sizeof(exact[0]), sizeof(exact) / sizeof(exact[0]), file);
    fclose(file);
    return count;
}

static void check_short_records(bool are_expected)
{
    bool found_short = false;
    const sj_record *places =
        (const sj_record *)(arena + sj_arena_chunk_offset(2, CHUNKS, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
        found_short = found_short || sj_word_is_short(sj_record_tag(&places[i]));
    }
    CHECK(found_short == are_expected);
}

static void compare_with_exact(void)
{
    check_short_records(true);
    const size_t expected = read_exact();
    CHECK(list_events(found, sizeof(found) / sizeof(found[0])) == expected);
    for (size_t i = 0; i < expected; i++) {
        CHECK(found[i].tag == exact[i].tag);
        CHECK(found[i].stack - found[0].stack == exact[i].stack - exact[0].stack);
    }
}

/* Between one call in 64 and one call in 16 is timed. A call is timed at both ends or not at
 * all. */
static void check_samples(void)
{
    enum { LEAST = ROUNDS / 4 / 64, MOST = ROUNDS / 4 / 16 };
    uint32_t timed[2] = {0};
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        const sj_record *places =
            (const sj_record *)(arena + sj_arena_chunk_offset(2, CHUNKS, 0, chunk) +
                                SJ_CHUNK_HEADER_BYTES);
        for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
            const uint32_t tag = sj_record_tag(&places[i]);
            if (!sj_record_is_untimed(sj_record_stack(&places[i]))) {
                timed[0] += tag == LEAF;
                timed[1] += tag == leave_tag(LEAF);
            }
        }
    }
    CHECK(timed[0] == timed[1] && timed[0] > LEAST && timed[0] < MOST);
}

static void compare_counted(const char *directory)
{
    start(directory, CHUNKS, true);
    run_program();
    compare_with_exact();
    check_samples();
}

static void compare_interrupted(const char *directory)
{
    const struct itimerval often = {.it_interval = {.tv_usec = 50}, .it_value = {.tv_usec = 50}};
    const struct itimerval never = {0};
    start(directory, CHUNKS, true);
    signal(SIGALRM, interrupt);
    setitimer(ITIMER_REAL, &often, NULL);
    run_program();
    setitimer(ITIMER_REAL, &never, NULL);
    compare_with_exact();
    *handled_of_all += handled;
}

/* Both children run the same code, so their frames have the same distances. */
static void test_counted_calls_are_recorded_as_timed_ones_are(void **state)
{
    (void)state;
    static char file[] = "counted-probes-XXXXXX";
    const int descriptor = mkstemp(file);
    assert_true(descriptor >= 0);
    close(descriptor);
    results = file;
    handled_of_all = mmap(NULL, sizeof(*handled_of_all), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(handled_of_all != MAP_FAILED);
    assert_int_equal(run_in_child(write_exact), 0);
    assert_int_equal(run_in_child(compare_counted), 0);
    const char *fewer = getenv("SJ_LONG") == NULL ? getenv("SJ_INTERRUPTED_RUNS") : NULL;
    const long runs = fewer != NULL ? strtol(fewer, NULL, 10) : INTERRUPTED_RUNS;
    for (long i = 0; i < runs; i++) {
        assert_int_equal(run_in_child(compare_interrupted), 0);
    }
    assert_true(*handled_of_all != 0);
    munmap(handled_of_all, sizeof(*handled_of_all));
    unlink(file);
}

/* Uses several chunks, a full ring and its window. */
static void keep_registers(const char *directory)
{
    start(directory, 2, true);
    for (uint32_t i = 0; i < 4 * SJ_CHUNK_RECORDS; i++) {
        const uint64_t flags = some_flags(i);
        call_checked(made.in_handler, flags, ALL_FLAGS);
        call_checked(i % 2 == 0 ? made.caller : made.leaf, flags, FLAGS_NEVER_FREE);
    }
}

static void test_counted_probes_keep_registers_flags_and_vectors(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers), 0);
}

/* Recorded and dropped calls together are all calls, except those that the window still holds. */
static void account_for(probe_function function, uint32_t tag)
{
    enum { TIMES = 2 * CHUNKS * SJ_CHUNK_RECORDS * SJ_SHORTS };
    size_t count = 0;
    uint64_t recorded = 0;
    for (uint32_t i = 0; i < TIMES; i++) {
        function();
    }
    sj_record *records = read_records(&count);
    for (size_t i = 0; i < count; i++) {
        recorded += sj_record_tag(&records[i]) == tag;
    }
    free(records);
    const sj_thread_slot *slot = arena_slot(arena, 0);
    const uint64_t known = recorded + atomic_load(&slot->dropped_events);
    CHECK(known <= TIMES && TIMES - known <= SJ_DISCARD_RECORDS * SJ_SHORTS);
    CHECK(atomic_load(&slot->dropped_events) > TIMES / 4);
    CHECK(atomic_load(&slot->dropped_calls) ==
          (sj_record_calls(tag) != 0 ? atomic_load(&slot->dropped_events) : 0));
}

static void drop_entries(const char *directory)
{
    start(directory, CHUNKS, true);
    account_for(made.opener, OPENER);
}

static void drop_exits(const char *directory)
{
    start(directory, CHUNKS, true);
    account_for(made.closer, leave_tag(CLOSER));
}

static void test_dropped_entries_count_as_calls_and_dropped_exits_do_not(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(drop_entries), 0);
    assert_int_equal(run_in_child(drop_exits), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counted_calls_are_recorded_as_timed_ones_are),
        cmocka_unit_test(test_counted_probes_keep_registers_flags_and_vectors),
        cmocka_unit_test(test_dropped_entries_count_as_calls_and_dropped_exits_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
