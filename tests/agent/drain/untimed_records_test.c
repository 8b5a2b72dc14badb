/* Tests records without a clock: known times stay exact, and estimated times lie between them. */
#include "agent/assembler/untimed_entry.h"
#include "agent/drain/untimed_records.h"
#include "tests/agent/drain/record_places.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_LOW UINT64_C(0x7ffe00000000)
#define STACK_HIGH UINT64_C(0x7ffe00800000)
#define TICKS_MASK ((UINT64_C(1) << 48) - 1)

enum { MOST_RECORDS = 40000, MOST_DEPTH = 200, FUNCTIONS = 12, FRAME = 48 };

static sj_record make_record(uint64_t ticks, sj_record_kind kind, uint32_t function, uint64_t stack)
{
    sj_record record = {{0}};
    const uint32_t tag = sj_record_make_tag(kind, function);
    memcpy(record.bytes, &ticks, 6);
    memcpy(record.bytes + 6, &stack, 6);
    memcpy(record.bytes + 12, &tag, sizeof(tag));
    return record;
}

/* True if short records hold distances from sj_short_base, as in arenas of version 3. */
static bool has_distances;

/* `stack` may be marked as the stack of a tail call. */
static uint32_t make_short(bool is_exit, uint32_t function, uint64_t stack)
{
    const uint64_t from = has_distances ? sj_short_base(STACK_LOW) : 0;
    return SJ_SHORT_FILLER | (uint32_t)is_exit << SJ_SHORT_EXIT_BIT |
           ((stack & SJ_STACK_TAIL_CALL) != 0 ? SJ_SHORT_TAIL_CALL : 0) |
           (uint32_t)((stack - from) / SJ_STACK_ALIGNMENT & 0xfff) << SJ_SHORT_STACK_BIT | function;
}

static sj_record exact[MOST_RECORDS];
static bool is_untimed[MOST_RECORDS];
static sj_record mixed_list[MOST_RECORDS];
static record_places mixed = {.list = mixed_list};
static size_t exact_count;

typedef struct running_call {
    uint64_t stack;
    uint32_t function;
    bool is_untimed;
} running_call;

static void put_entry(uint64_t ticks, const running_call *call)
{
    is_untimed[exact_count] = call->is_untimed;
    exact[exact_count++] = make_record(ticks, SJ_RECORD_ENTER, call->function, call->stack);
    if (call->is_untimed) {
        put_word(&mixed, make_short(false, call->function, call->stack));
    } else {
        put_whole(&mixed, exact[exact_count - 1]);
    }
}

static void put_exit(uint64_t ticks, const running_call *call, uint64_t mark)
{
    const uint64_t stack = call->stack | mark;
    is_untimed[exact_count] = call->is_untimed;
    exact[exact_count++] = make_record(ticks, SJ_RECORD_LEAVE, call->function, stack);
    /* One in 20 untimed exits is a full-size record, as a probe writes it if a short one is
     * impossible. */
    if (call->is_untimed && rand() % 20 == 0) {
        put_whole(&mixed,
                  make_record(0, SJ_RECORD_LEAVE, call->function, stack | SJ_STACK_UNTIMED));
    } else if (call->is_untimed) {
        put_word(&mixed, make_short(true, call->function, stack));
    } else {
        put_whole(&mixed, exact[exact_count - 1]);
    }
}

/* The first record of a thread is always a full-size one. */
static running_call make_call(uint64_t stack, uint32_t counted)
{
    const uint32_t function = 1 + (uint32_t)rand() % FUNCTIONS;
    return (running_call){.stack = stack,
                          .function = function,
                          .is_untimed = exact_count != 0 && function <= counted && rand() % 8 != 0};
}

/* Runs a random program: calls, their exits, some tail calls, and some calls that exceptions leave.
 * About one in eight calls of functions up to `counted` is timed. Each call keeps the kind of its
 * entry. */
static void run_program(unsigned seed, uint32_t counted)
{
    running_call calls[MOST_DEPTH];
    uint32_t depth = 0;
    uint64_t ticks = 1000;
    exact_count = 0;
    mixed.count = 0;
    mixed.part = 0;
    srand(seed);
    const uint64_t top = sj_short_base(STACK_LOW) + (STACK_HIGH - STACK_LOW) / 2;
    while (exact_count < MOST_RECORDS - 2 * MOST_DEPTH) {
        ticks += (uint64_t)(rand() % 40);
        const bool enters = depth == 0 || (depth + 1 < MOST_DEPTH && rand() % 2 == 0);
        if (enters) {
            const uint64_t below = (uint64_t)(1 + rand() % 600) * 8;
            calls[depth] = make_call(depth == 0 ? top : calls[depth - 1].stack - below, counted);
            put_entry(ticks, &calls[depth++]);
            continue;
        }
        /* by two calls: the inner call has no exit */
        depth -= depth > 3 && rand() % 50 == 0 ? 2 : 1;
        const bool tail_calls = rand() % 5 == 0;
        put_exit(ticks, &calls[depth], tail_calls ? SJ_STACK_TAIL_CALL : 0);
        if (tail_calls) {
            calls[depth] = make_call(calls[depth].stack, counted);
            put_entry(ticks, &calls[depth++]);
        }
    }
    const running_call last = {.stack = top, .function = FUNCTIONS + 1};
    put_entry(ticks, &last);
}

static sj_record got[MOST_RECORDS];

/* Reads the slots in portions, as a drain does. */
static size_t read_all_records(sj_untimed_records *untimed)
{
    size_t count = 0;
    for (size_t at = 0; at < mixed.count;) {
        size_t portion = 1 + (size_t)rand() % 500;
        portion = portion < mixed.count - at ? portion : mixed.count - at;
        sj_record *records = NULL;
        size_t given = 0;
        uint64_t undecided = 0;
        assert_int_equal(sj_untimed_records_read(untimed, mixed.list + at, portion, UINT64_MAX / 2,
                                                 &records, &given, &undecided),
                         SJ_OK);
        assert_int_equal(undecided, 0);
        memcpy(got + count, records, given * sizeof(*got));
        count += given;
        at += portion;
    }
    return count;
}

/* Therefore counts, callers and totals of timed calls equal those of an exact recording. */
static void untimed_records_keep_order_stacks_and_known_times(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 40; seed++) {
        has_distances = seed % 4 == 3;
        run_program(seed, seed % FUNCTIONS);
        sj_untimed_records *untimed =
            sj_untimed_records_new(NULL, STACK_LOW, STACK_HIGH, has_distances);
        assert_non_null(untimed);
        assert_int_equal(read_all_records(untimed), exact_count);
        uint64_t before = 0;
        for (size_t i = 0; i < exact_count; i++) {
            assert_int_equal(sj_record_tag(&got[i]), sj_record_tag(&exact[i]));
            assert_int_equal(sj_record_frame(&got[i]), sj_record_frame(&exact[i]));
            assert_true(sj_record_ticks48(&got[i]) >= before);
            before = sj_record_ticks48(&got[i]);
            const bool enters = sj_record_tag(&got[i]) <= SJ_RECORD_FUNCTION_MASK;
            assert_int_equal(sj_record_stack(&got[i]) & 7, enters && is_untimed[i]
                                                               ? SJ_UNTIMED_ENTRY
                                                               : sj_record_stack(&exact[i]) & 7);
            if (!is_untimed[i]) {
                assert_int_equal(before, sj_record_ticks48(&exact[i]));
            }
        }
        sj_untimed_records_free(untimed);
    }
    has_distances = false;
}

/* An arena. The test reads only which functions are counted. */
static uint8_t arena[8 * SJ_CHUNK_BYTES];
static uint8_t *counted;

static sj_call_timing *new_timing_with_probes(double probe_ticks)
{
    const sj_arena_view view = {.fd = memfd_create("arena", MFD_CLOEXEC),
                                .base = arena,
                                .max_threads = 1,
                                .chunks_per_thread = 1,
                                .has_counted = true};
    assert_true(sj_arena_bytes(1, 1) <= sizeof(arena));
    memset(arena, 0, sizeof(arena));
    counted = sj_arena_view_counted(&view);
    sj_call_timing *timing = sj_call_timing_new(&view, 1.0, probe_ticks);
    close(view.fd);
    assert_non_null(timing);
    return timing;
}

static sj_call_timing *new_timing(void)
{
    return new_timing_with_probes(0);
}

static void add_calls(sj_call_timing *timing, uint32_t function, uint64_t ticks, int count)
{
    static uint64_t now;
    for (int i = 0; i < count; i++) {
        now += 1000;
        sj_call_timing_add(timing, function, ticks, now & TICKS_MASK);
    }
}

static void short_functions_with_many_calls_are_counted(void **state)
{
    (void)state;
    sj_call_timing *timing = new_timing();
    add_calls(timing, 3, 40, 511);
    assert_int_equal(counted[3], 0);
    add_calls(timing, 3, 40, 1);
    assert_int_equal(counted[3], 1);
    add_calls(timing, 4, 2 * SJ_SHORT_CALL_NS, 5000);
    assert_int_equal(counted[4], 0);
    for (int i = 0; i < 2000; i++) { /* 400 a second */
        sj_call_timing_add(timing, 5, 40, (uint64_t)i * 2500000);
    }
    assert_int_equal(counted[5], 0);
    sj_call_timing_free(timing);
    assert_int_equal(counted[3], 0); /* without a reader, every call is timed again */
}

static void functions_that_become_long_are_timed_again(void **state)
{
    (void)state;
    sj_call_timing *timing = new_timing();
    add_calls(timing, 3, 40, 512);
    sj_call_timing_late(timing, 3, 1);
    sj_call_timing_late(timing, 3, 1);
    sj_call_timing_on_time(timing, 3);
    sj_call_timing_late(timing, 3, 2);
    assert_int_equal(counted[3], 1);
    sj_call_timing_late(timing, 3, 3);
    assert_int_equal(counted[3], 0);
    add_calls(timing, 3, 40, 64);
    assert_int_equal(counted[3], 1);
    add_calls(timing, 3, 100 * SJ_SHORT_CALL_NS, 100);
    assert_int_equal(counted[3], 0);
    add_calls(timing, 6, 40, 512);
    assert_int_equal(counted[6], 1);
    sj_call_timing_set_rules(timing, NULL, false);
    assert_int_equal(counted[6], 0);
    add_calls(timing, 6, 40, 5000);
    assert_int_equal(counted[6], 0);
    sj_call_timing_free(timing);
}

/* Writes ENTER 1, the short calls of 2 and, `length` ticks after the entry, LEAVE 1. Returns the
 * total duration of the calls of 2. */
static uint64_t time_between(sj_call_timing *timing, uint32_t calls, uint64_t length)
{
    const uint64_t stack = sj_short_base(STACK_LOW) + 64 * 1024;
    uint64_t sum = 0;
    mixed.count = 0;
    mixed.part = 0;
    put_whole(&mixed, make_record(5000, SJ_RECORD_ENTER, 1, stack));
    for (uint32_t i = 0; i < calls; i++) {
        put_word(&mixed, make_short(false, 2, stack - FRAME));
        put_word(&mixed, make_short(true, 2, stack - FRAME));
    }
    put_whole(&mixed, make_record(5000 + length, SJ_RECORD_LEAVE, 1, stack));
    sj_untimed_records *untimed = sj_untimed_records_new(timing, STACK_LOW, STACK_HIGH, false);
    assert_int_equal(read_all_records(untimed), 2 * calls + 2);
    for (uint32_t i = 0; i < calls; i++) {
        sum += sj_record_ticks48(&got[2 + 2 * i]) - sj_record_ticks48(&got[1 + 2 * i]);
    }
    sj_untimed_records_free(untimed);
    return sum;
}

static void untimed_calls_get_the_mean_duration_if_time_allows(void **state)
{
    (void)state;
    sj_call_timing *timing = new_timing();
    add_calls(timing, 2, 40, 512);
    assert_int_equal(time_between(timing, 10, 1000), 400);
    assert_int_equal(time_between(timing, 25, 1000), 1000);
    assert_in_range(time_between(timing, 100, 1000), 900, 1000);
    sj_call_timing_free(timing);
}

static void the_cost_of_a_clock_read_counts_in_no_other_call(void **state)
{
    (void)state;
    sj_call_timing *timing = new_timing_with_probes(30);
    add_calls(timing, 2, 40, 512);
    assert_int_equal(time_between(timing, 10, 1000), 100);
    sj_call_timing_free(timing);
}

/* The system interrupted the thread once: one of 1,513 calls takes 100 us. */
static void an_interrupted_call_changes_the_mean_only_little(void **state)
{
    (void)state;
    sj_call_timing *timing = new_timing();
    add_calls(timing, 2, 40, 512);
    add_calls(timing, 2, 40, 1000);
    add_calls(timing, 2, SJ_LATE_CALL_NS, 1);
    assert_in_range(time_between(timing, 100, 100000), 4000, 4300);
    sj_call_timing_free(timing);
}

/* The thread waits for the drain for 800 ticks, up to tick 2,000. The calls of 2 lie in the 200
 * ticks before the wait. The timed call of 1 lasts 250 ticks without the wait. */
static void waits_for_the_drain_count_in_no_call(void **state)
{
    (void)state;
    const uint64_t stack = STACK_HIGH - 4096;
    sj_call_timing *timing = new_timing();
    add_calls(timing, 2, 40, 512);
    mixed.count = 0;
    mixed.part = 0;
    put_whole(&mixed, make_record(1000, SJ_RECORD_ENTER, 1, stack));
    for (int i = 0; i < 10; i++) {
        put_word(&mixed, make_short(false, 2, stack - FRAME));
        put_word(&mixed, make_short(true, 2, stack - FRAME));
    }
    put_whole(&mixed, make_record(2000, SJ_RECORD_NOTE, SJ_NOTE_WAITED, 800));
    put_whole(&mixed, make_record(2050, SJ_RECORD_LEAVE, 1, stack));
    sj_untimed_records *untimed = sj_untimed_records_new(timing, STACK_LOW, STACK_HIGH, false);
    assert_int_equal(read_all_records(untimed), 23);
    for (size_t i = 1; i <= 20; i++) {
        assert_in_range(sj_record_ticks48(&got[i]), 1000, 1200);
    }
    assert_int_equal(timing->functions[1].ticks, 1050 - 800);
    sj_untimed_records_free(untimed);
    sj_call_timing_free(timing);
}

static void calls_that_may_have_been_long_put_their_function_back_on_the_clock(void **state)
{
    (void)state;
    sj_call_timing *timing = new_timing();
    add_calls(timing, 2, 40, 512);
    /* never two late calls in a row, as if the thread was interrupted */
    for (int i = 0; i < 3; i++) {
        (void)time_between(timing, 10, SJ_LATE_CALL_NS);
        assert_int_equal(counted[2], 1);
        (void)time_between(timing, 10, SJ_LATE_CALL_NS - 1);
    }
    (void)time_between(timing, 10, SJ_LATE_CALL_NS);
    assert_int_equal(counted[2], 1);
    (void)time_between(timing, 10, SJ_LATE_CALL_NS);
    assert_int_equal(counted[2], 0);
    sj_call_timing_free(timing);
}

static void short_records_behind_what_is_missing_are_counted_as_lost(void **state)
{
    (void)state;
    sj_record *records = NULL;
    size_t count = 0;
    uint64_t undecided = 0;
    mixed.count = 0;
    mixed.part = 0;
    put_word(&mixed, make_short(false, 2, STACK_HIGH - 4096));
    put_word(&mixed, make_short(true, 2, STACK_HIGH - 4096));
    put_whole(&mixed, make_record(7, SJ_RECORD_ENTER, 1, STACK_HIGH - 4096));
    sj_untimed_records *untimed = sj_untimed_records_new(NULL, STACK_LOW, STACK_HIGH, false);
    assert_int_equal(sj_untimed_records_read(untimed, mixed.list, mixed.count, 100, &records,
                                             &count, &undecided),
                     SJ_OK);
    assert_int_equal(undecided, 2);
    assert_int_equal(count, 1);
    sj_untimed_records_free(untimed);
}

/* Functions 1 and 2 lose their clock while calls of them are open. */
static void an_exit_without_a_clock_of_a_timed_call_is_marked(void **state)
{
    (void)state;
    const uint64_t stack = STACK_HIGH - 4096;
    sj_call_timing *timing = new_timing();
    mixed.count = 0;
    mixed.part = 0;
    put_whole(&mixed, make_record(100, SJ_RECORD_ENTER, 1, stack));
    put_whole(&mixed, make_record(110, SJ_RECORD_ENTER, 2, stack - FRAME));
    /* this call has no exit */
    put_whole(&mixed, make_record(120, SJ_RECORD_ENTER, 3, stack - 2 * FRAME));
    put_word(&mixed, make_short(true, 2, stack - FRAME));
    put_word(&mixed, make_short(false, 2, stack - FRAME));
    put_word(&mixed, make_short(true, 2, stack - FRAME));
    put_whole(&mixed, make_record(0, SJ_RECORD_LEAVE, 1, stack | SJ_STACK_UNTIMED));
    put_whole(&mixed, make_record(200, SJ_RECORD_ENTER, 1, stack));
    sj_untimed_records *untimed = sj_untimed_records_new(timing, STACK_LOW, STACK_HIGH, false);
    assert_int_equal(read_all_records(untimed), 8);
    static const uint32_t marks[] = {0, 0, 0, SJ_UNTIMED_EXIT, SJ_UNTIMED_ENTRY, 0, SJ_UNTIMED_EXIT,
                                     0};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(sj_record_stack(&got[i]) & 7, marks[i]);
    }
    sj_untimed_records_free(untimed);
    sj_call_timing_free(timing);
}

static void waiting_records_can_be_settled(void **state)
{
    (void)state;
    const uint64_t stack = STACK_HIGH - 4096;
    sj_record *records = NULL;
    size_t count = 0;
    uint64_t undecided = 0;
    mixed.count = 0;
    mixed.part = 0;
    put_whole(&mixed, make_record(100, SJ_RECORD_ENTER, 1, stack));
    put_word(&mixed, make_short(false, 2, stack - FRAME));
    sj_untimed_records *untimed = sj_untimed_records_new(NULL, STACK_LOW, STACK_HIGH, false);
    assert_int_equal(sj_untimed_records_read(untimed, mixed.list, mixed.count, 200, &records,
                                             &count, &undecided),
                     SJ_OK);
    assert_int_equal(count, 1);
    assert_int_equal(sj_untimed_records_settle(untimed, 200, &records, &count), SJ_OK);
    assert_int_equal(count, 1);
    assert_in_range(sj_record_ticks48(&records[0]), 100, 200);
    sj_untimed_records_free(untimed);
}

/* A malicious program may write values whose times never come. */
static void waiting_records_are_bounded(void **state)
{
    (void)state;
    enum { VALUES = 200, TIMES = 1000, BOUND = 1 << 16 };
    const uint64_t stack = STACK_HIGH - 4096;
    sj_record *records = NULL;
    size_t count = 0;
    uint64_t undecided = 0;
    size_t waiting = 1;
    size_t most = 0;
    mixed.count = 0;
    mixed.part = 0;
    put_word(&mixed, make_short(false, 2, stack));
    sj_untimed_records *untimed = sj_untimed_records_new(NULL, STACK_LOW, STACK_HIGH, false);
    for (int i = 0; i < TIMES; i++) {
        while (mixed.count < VALUES) {
            put_whole(&mixed, make_record(0, SJ_RECORD_VALUE, 2, stack));
        }
        assert_int_equal(sj_untimed_records_read(untimed, mixed.list, mixed.count, 200, &records,
                                                 &count, &undecided),
                         SJ_OK);
        waiting += mixed.count - count;
        most = waiting > most ? waiting : most;
        mixed.count = 0;
    }
    assert_in_range(most, BOUND / 2, BOUND + VALUES);
    sj_untimed_records_free(untimed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(untimed_records_keep_order_stacks_and_known_times),
        cmocka_unit_test(short_functions_with_many_calls_are_counted),
        cmocka_unit_test(functions_that_become_long_are_timed_again),
        cmocka_unit_test(untimed_calls_get_the_mean_duration_if_time_allows),
        cmocka_unit_test(the_cost_of_a_clock_read_counts_in_no_other_call),
        cmocka_unit_test(an_interrupted_call_changes_the_mean_only_little),
        cmocka_unit_test(waits_for_the_drain_count_in_no_call),
        cmocka_unit_test(calls_that_may_have_been_long_put_their_function_back_on_the_clock),
        cmocka_unit_test(short_records_behind_what_is_missing_are_counted_as_lost),
        cmocka_unit_test(an_exit_without_a_clock_of_a_timed_call_is_marked),
        cmocka_unit_test(waiting_records_can_be_settled),
        cmocka_unit_test(waiting_records_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
