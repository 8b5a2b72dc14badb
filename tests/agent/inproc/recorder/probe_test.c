/* Tests that the probe keeps all registers, on its fast path and on its slow path. */
#include "agent/inproc/hooks/dispatch.h"
#include "tests/agent/inproc/recorder/call_checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Uses all arithmetic flags and the direction flag in turn, over several chunk changes. Then the
 * ring is full, and the thread waits and discards. Each case enters the slow path in another
 * way. */
static void keep_registers(const char *directory)
{
    enum { CALLS = 3 * SJ_CHUNK_RECORDS };
    static const uint64_t single_flags[] = {0x001, 0x004, 0x010, 0x040, 0x080, 0x400, 0x800};
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_WAIT);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    const probe_function probe = make_probe(7);
    for (uint32_t i = 0; i < CALLS; i++) {
        uint64_t flags = 0x202;
        for (uint32_t bit = 0; bit < 7; bit++) {
            flags |= i * 5 >> bit & 1 ? single_flags[bit] : 0;
        }
        call_checked(probe, flags, ALL_FLAGS);
    }
}

static void test_probe_keeps_registers_flags_and_vectors(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers), 0);
}

/* The receiver registers do not hold the address of an object. */
static void keep_registers_of_methods(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    for (uint8_t receiver = 1; receiver <= 2; receiver++) {
        const probe_function probe = make_receiver_probe(7, receiver);
        for (uint32_t i = 0; i < 2 * SJ_CHUNK_RECORDS; i++) {
            call_checked(probe, 0x202 | (i & 1) | (i & 4), ALL_FLAGS);
        }
    }
}

static void store_first_receiver(const char *directory)
{
    store_receivers(directory, 1, 0);
}

static void store_first_receiver_uncounted(const char *directory)
{
    store_receivers(directory, 1, SJ_LINK_RUNTIME_COUNTING);
}

static void store_second_receiver(const char *directory)
{
    store_receivers(directory, 2, 0);
}

static void test_probe_of_methods_stores_what_the_receiver_is(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_of_methods), 0);
    assert_int_equal(run_in_child(store_first_receiver), 0);
    assert_int_equal(run_in_child(store_first_receiver_uncounted), 0);
    assert_int_equal(run_in_child(store_second_receiver), 0);
}

/* The pointer to the text is invalid. */
static void keep_registers_of_values(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    const probe_function probe =
        make_values_probe(7, sj_value_descriptor(1, SJ_VALUE_STRING) |
                                 (uint32_t)sj_value_descriptor(8, SJ_VALUE_DOUBLE) << 8 |
                                 (uint32_t)sj_value_descriptor(0, SJ_VALUE_LONG) << 16 |
                                 (uint32_t)sj_value_descriptor(0, SJ_VALUE_FLOAT) << 24);
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
        call_checked(probe, 0x202 | (i & 1) | (i & 4) | (i & 2) << 9, ALL_FLAGS);
    }
}

static void store_all_values(const char *directory)
{
    store_values(directory, true);
}

static void test_probe_of_values_stores_what_registers_hold(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_of_values), 0);
    assert_int_equal(run_in_child(store_all_values), 0);
}

/* Numbers of all sizes, in every register that passes values. */
static const sj_plain_value plain_values[] = {
    {.descriptor = SJ_VALUE_INT << 4 | 1, .word = 0, .bytes = 4, .is_signed = 1},
    {.descriptor = SJ_VALUE_LONG << 4 | 2, .word = 1, .bytes = 1, .is_signed = 1},
    {.descriptor = SJ_VALUE_LONG << 4 | 3, .word = 2, .bytes = 2, .is_signed = 1},
    {.descriptor = SJ_VALUE_ULONG << 4 | 4, .word = 3, .bytes = 2},
    {.descriptor = SJ_VALUE_BOOL << 4 | 5, .word = 4, .bytes = 1},
    {.descriptor = SJ_VALUE_UINT << 4 | 6, .word = 5, .bytes = 8},
    {.descriptor = SJ_VALUE_DOUBLE << 4 | 1, .word = 8, .bytes = 8},
    {.descriptor = SJ_VALUE_FLOAT << 4 | 8, .word = 15, .bytes = 4},
    {.descriptor = SJ_VALUE_CHAR << 4, .word = 16, .bytes = 8}};

enum { PLAIN_VALUES = sizeof(plain_values) / sizeof(plain_values[0]) };

/* Makes a probe that records the values before the entry of function 7, or returns NULL on machines
 * without support. */
static probe_function make_plain_probe(void)
{
    enum { AREA = 8192, COLD = 4096, SHARED = 64 };
    static const uint8_t ret[] = {0xc3};
    uint8_t *code =
        mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    const uint64_t area = (uint64_t)(uintptr_t)code;
    sj_code_emitter emitter = {.at = area, .cold_at = area + COLD, .slow_trampoline = area};
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_slow_entry);
    emitter.at = area + SHARED;
    sj_code_emit_shared(&emitter);
    const uint64_t start = emitter.at;
    if (!sj_code_emit_plain_values(&emitter, 7, plain_values, PLAIN_VALUES)) {
        return NULL;
    }
    sj_code_emit_probe(&emitter, sj_record_make_tag(SJ_RECORD_ENTER, 7));
    sj_code_emit_bytes(&emitter, ret, sizeof(ret));
    CHECK(emitter.at < area + COLD && !emitter.too_far);
    return (probe_function)(uintptr_t)start;
}

static void keep_registers_of_plain_values(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    const probe_function probe = make_plain_probe();
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS && probe != NULL; i++) {
        call_checked(probe, 0x202 | (i & 1) | (i & 4) | (i & 2) << 9, ALL_FLAGS);
    }
}

typedef void (*plain_function)(long, long, long, long, long, long, double, double, double, double,
                               double, double, double, float);

/* Makes calls over several chunks. Each recorded value is narrowed to the size of its type. */
static void store_plain_values(const char *directory)
{
    enum { CHUNKS = 6, CALLS = 2 * SJ_CHUNK_RECORDS / PLAIN_VALUES };
    const sj_link_welcome welcome = make_welcome(2, CHUNKS, SJ_FULL_DROP_NEW);
    const plain_function call = (plain_function)make_plain_probe();
    const double real = 4.5;
    const float single = 2.5F;
    uint64_t expected[PLAIN_VALUES] = {(uint64_t)-2, (uint64_t)-3, (uint64_t)-4, 0xfffb, 1,
                                       0x9abcdef0};
    char path[128];
    if (call == NULL) {
        return;
    }
    memcpy(&expected[6], &real, sizeof(real));
    memcpy(&expected[7], &single, sizeof(single));
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    const uint8_t *base = map_arena_file(path);
    CHECK(base != NULL);
    for (uint32_t i = 0; i < CALLS; i++) {
        call(0x1fffffffe, 0xfd, 0xfffc, 0x1fffb, 0x80, 0x123456789abcdef0, real, 0, 0, 0, 0, 0, 0,
             single);
    }
    uint32_t place = 0;
    uint32_t calls = 0;
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        const sj_record *records =
            (const sj_record *)(base + sj_arena_chunk_offset(2, CHUNKS, 0, chunk) +
                                SJ_CHUNK_HEADER_BYTES);
        uint32_t stack = 0;
        for (uint32_t i = 0; i < SJ_CHUNK_RECORDS && sj_record_tag(&records[i]) != 0; i++) {
            const sj_record *record = &records[i];
            if (sj_record_tag(record) == sj_record_make_tag(SJ_RECORD_ENTER, 7)) {
                CHECK(place == PLAIN_VALUES);
                CHECK(stack == 0 ||
                      (sj_record_stack(record) & SJ_RECORD_VALUE_STACK_MASK) == stack);
                calls++;
                place = 0;
                continue;
            }
            CHECK(sj_record_tag(record) == sj_record_make_tag(SJ_RECORD_VALUE, 7));
            CHECK(place < PLAIN_VALUES && record->bytes[11] == plain_values[place].descriptor);
            CHECK(sj_record_part_of(record) == SJ_PART_VALUE);
            /* The last value is what the previous call left in the result register. */
            CHECK(place == PLAIN_VALUES - 1 || sj_record_value(record) == expected[place]);
            stack = sj_record_value_stack(record) & SJ_RECORD_VALUE_STACK_MASK;
            place++;
        }
    }
    CHECK(calls == CALLS);
}

static void test_plain_values_are_stored_without_a_call(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_of_plain_values), 0);
    assert_int_equal(run_in_child(store_plain_values), 0);
}

/* Before the recorder starts, every probe writes to trash memory. */
static void keep_registers_disarmed(const char *directory)
{
    (void)directory;
    const probe_function probe = make_probe(7);
    for (uint32_t i = 0; i < 3 * SJ_CHUNK_RECORDS; i++) {
        call_checked(probe, 0x202 | (i & 1) | (i & 4), ALL_FLAGS);
    }
}

static void test_probe_keeps_registers_when_disarmed(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_disarmed), 0);
}

static uint8_t *start_recorder(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    char path[128];
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    uint8_t *base = map_arena_file(path);
    CHECK(base != NULL);
    return base;
}

typedef void (*method_function)(const void *, const void *);

/* A handler that interrupts the slow path drops its records one by one. A value does not count as a
 * call. */
static void drop_one_by_one(const char *directory)
{
    const uint64_t object[] = {1};
    const sj_thread_slot *slot = arena_slot(start_recorder(directory), 0);
    const method_function method = (method_function)make_receiver_probe(7, 1);
    method(object, NULL);
    const uint64_t cursor = sj_recorder_self.cursor;
    sj_recorder_self.busy = 1;
    sj_recorder_self.cursor = 0;
    method(object, NULL);
    sj_recorder_self.cursor = cursor;
    sj_recorder_self.busy = 0;
    CHECK(atomic_load(&slot->dropped_events) == 3);
    CHECK(atomic_load(&slot->dropped_calls) == 1);
}

static void test_a_value_dropped_by_itself_is_no_call(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(drop_one_by_one), 0);
}

/* Emits what a dispatched call does before it jumps to the function: stores the true return address
 * in `true_return` and replaces it by the thunk's. */
static void emit_dispatch(sj_code_emitter *emitter, uint64_t *true_return)
{
    uint8_t code[] = {0x50,                                        /* push %rax */
                      0x48, 0x8b, 0x44, 0x24, 0x08,                /* mov 8(%rsp), %rax */
                      0x48, 0xa3, 0,    0,    0,    0, 0, 0, 0, 0, /* mov %rax, true_return */
                      0x58,                                        /* pop %rax */
                      0xc7, 0x04, 0x24, 0,    0,    0, 0,          /* movl $low of thunk, (%rsp) */
                      0xc7, 0x44, 0x24, 0x04, 0,    0, 0, 0};      /* movl $high, 4(%rsp) */
    memcpy(code + 8, &true_return, 8);
    memcpy(code + 20, &emitter->thunk, 4);
    memcpy(code + 28, (const uint8_t *)&emitter->thunk + 4, 4);
    sj_code_emit_bytes(emitter, code, sizeof(code));
}

/* Makes a method that is reached by dispatch. Its entry and exit are recorded as those of function
 * 7. */
static probe_function make_dispatched(uint8_t receiver, uint64_t *true_return)
{
    enum { JUMP_TRAMPOLINE = 32, SHARED = 64, COLD = 2048 };
    static const uint8_t ret[] = {0xc3};
    uint8_t *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    const uint64_t area = (uint64_t)(uintptr_t)code;
    sj_code_emitter emitter = {.at = area,
                               .cold_at = area + COLD,
                               .slow_trampoline = area,
                               .jump_trampoline = area + JUMP_TRAMPOLINE,
                               .thunk = (uint64_t)(uintptr_t)&sj_arch_return_thunk};
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_slow_entry);
    emitter.at = emitter.jump_trampoline;
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_jump_entry);
    emitter.at = area + SHARED;
    sj_code_emit_shared(&emitter);
    const uint64_t start = emitter.at;
    emit_dispatch(&emitter, true_return);
    if (receiver != 0) {
        sj_code_emit_receiver_probe(&emitter, 7, receiver);
    } else {
        sj_code_emit_probe(&emitter, 7);
    }
    sj_code_emit_probe(&emitter, UINT32_C(1) << SJ_RECORD_FUNCTION_BITS | 7);
    sj_code_emit_bytes(&emitter, ret, sizeof(ret));
    return (probe_function)(uintptr_t)start;
}

static void check_record(const sj_record *record, sj_record_kind kind, uint32_t function,
                         uint64_t stack)
{
    CHECK(sj_record_tag(record) == ((uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function));
    CHECK(kind == SJ_RECORD_VALUE ? sj_record_value_stack(record) == (uint32_t)stack
                                  : sj_record_stack(record) == stack);
}

/* Calls the probe, with `object` in the argument registers, or through registers_call if `object`
 * is NULL. */
static void call_dispatched(probe_function probe, const uint64_t *object)
{
    static const uint64_t flags = 0x202 | 0x041;
    if (object == NULL) {
        call_checked(probe, flags, ALL_FLAGS);
    } else {
        ((method_function)(uintptr_t)probe)(object, object);
    }
}

/* The exit of the dispatched call precedes the value and the entry of the method, at the same stack
 * address. */
static void leave_before_entry(const sj_record *records, uint8_t receiver, const uint64_t *object)
{
    enum { DISPATCHED = 8 };
    static uint64_t nowhere;
    uint64_t *true_return = &nowhere;
    uint64_t stack = 0;
    uint32_t first = 0;
    /* The first round finds the stack address of the return address. */
    for (int round = 0; round < 2; round++) {
        const probe_function probe =
            round == 0 ? make_probe(7) : make_dispatched(receiver, true_return);
        while (sj_record_tag(&records[first]) != 0) {
            first++;
        }
        call_dispatched(probe, object);
        if (round == 0) {
            stack = sj_record_stack(&records[first]);
            CHECK(sj_return_slots_reserve(stack));
            const uint64_t in_region = stack & ((UINT64_C(1) << SJ_RETURN_REGION_SHIFT) - 1);
            sj_return_slot *slot =
                sj_return_regions[stack >> SJ_RETURN_REGION_SHIFT] + in_region / sizeof(uint64_t);
            slot->leave_tag = UINT32_C(1) << SJ_RECORD_FUNCTION_BITS | DISPATCHED;
            true_return = &slot->return_address;
        }
    }
    check_record(&records[first++], SJ_RECORD_LEAVE, DISPATCHED, stack + SJ_STACK_TAIL_CALL);
    if (receiver != 0 && object != NULL) {
        check_record(&records[first++], SJ_RECORD_VALUE, 7, stack);
    }
    check_record(&records[first++], SJ_RECORD_ENTER, 7, stack);
    check_record(&records[first++], SJ_RECORD_LEAVE, 7, stack);
    CHECK(sj_record_tag(&records[first]) == 0);
}

static void end_dispatched_calls(const char *directory)
{
    const uint64_t object[] = {UINT64_C(0x123456789abcdef0)};
    const uint8_t *base = start_recorder(directory);
    const sj_record *records =
        (const sj_record *)(base + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    for (uint8_t receiver = 0; receiver <= 2; receiver++) {
        leave_before_entry(records, receiver, NULL);
        leave_before_entry(records, receiver, object);
    }
}

static void test_an_entry_ends_the_dispatched_call_that_jumped_to_it(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(end_dispatched_calls), 0);
}

static void store_exact_record(const char *directory)
{
    uint8_t *base = start_recorder(directory);
    const uint64_t before = __builtin_ia32_rdtsc();
    make_probe(0x3fffffff)();
    const uint64_t after = __builtin_ia32_rdtsc();
    const sj_record *records =
        (const sj_record *)(base + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    const uint64_t mask = (UINT64_C(1) << 48) - 1;
    CHECK(sj_record_tag(&records[0]) == 0x3fffffff);
    CHECK(sj_record_tag(&records[1]) == (UINT32_C(1) << 30 | 0x3fffffff));
    CHECK(sj_record_tag(&records[2]) == 0);
    CHECK(sj_record_stack(&records[0]) == sj_record_stack(&records[1]));
    CHECK(sj_record_stack(&records[0]) < (uint64_t)(uintptr_t)__builtin_frame_address(0));
    CHECK(sj_record_stack(&records[0]) > (uint64_t)(uintptr_t)__builtin_frame_address(0) - 4096);
    CHECK(sj_record_ticks48(&records[0]) >= (before & mask));
    CHECK(sj_record_ticks48(&records[1]) > sj_record_ticks48(&records[0]));
    CHECK(sj_record_ticks48(&records[1]) <= (after & mask));
    const sj_thread_slot *slot = arena_slot(base, 0);
    CHECK(slot->tid == (uint32_t)getpid());
    CHECK(slot->stack_low < sj_record_stack(&records[0]));
    CHECK(slot->stack_high > sj_record_stack(&records[0]));
    CHECK(atomic_load(&slot->state) == SJ_THREAD_LIVE);
}

static void test_probe_stores_ticks_stack_and_tag(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(store_exact_record), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe_keeps_registers_flags_and_vectors),
        cmocka_unit_test(test_probe_keeps_registers_when_disarmed),
        cmocka_unit_test(test_probe_stores_ticks_stack_and_tag),
        cmocka_unit_test(test_probe_of_methods_stores_what_the_receiver_is),
        cmocka_unit_test(test_probe_of_values_stores_what_registers_hold),
        cmocka_unit_test(test_plain_values_are_stored_without_a_call),
        cmocka_unit_test(test_a_value_dropped_by_itself_is_no_call),
        cmocka_unit_test(test_an_entry_ends_the_dispatched_call_that_jumped_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
