/* Tests which records the call filter and the other stages pass to the assembler, and what it
 * reports about unhooked functions. The test collects the records in a list instead of an
 * assembler. */
#include "agent/assembler/untimed_entry.h"
#include "agent/drain/record_stages.h"

#include "proto/block/value.h"
#include "tests/support/check.h"
#include "tests/support/fake_arena.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    STACK = 0x7f0000,
    STACK_LOW = 0x7e0000,
    STACK_HIGH = 0x800000,
    OUTER = 3,
    INNER = 4,
    MOST = 64
};

static sj_record passed[MOST];
static size_t passed_count;
static size_t gap_at[MOST]; /* number of records that were passed before each gap */
static size_t gap_count;
static uint32_t open_function; /* innermost open function of the assembler; 0: none */

sj_status __wrap_sj_assembler_feed(sj_assembler *assembler, const sj_record *records, size_t count,
                                   uint64_t now_ticks);
sj_status __wrap_sj_assembler_feed(sj_assembler *assembler, const sj_record *records, size_t count,
                                   uint64_t now_ticks)
{
    (void)assembler;
    (void)now_ticks;
    assert_true(passed_count + count <= MOST);
    if (count > 0) { /* list is NULL if it is empty */
        memcpy(passed + passed_count, records, count * sizeof(*records));
    }
    passed_count += count;
    return SJ_OK;
}

sj_status __wrap_sj_assembler_add_loss(sj_assembler *assembler, sj_gap_reason reason,
                                       uint64_t calls, uint64_t events, uint64_t now_ticks);
sj_status __wrap_sj_assembler_add_loss(sj_assembler *assembler, sj_gap_reason reason,
                                       uint64_t calls, uint64_t events, uint64_t now_ticks)
{
    (void)assembler;
    (void)calls;
    (void)events;
    (void)now_ticks;
    assert_int_equal(reason, SJ_GAP_PAUSED);
    gap_at[gap_count++] = passed_count;
    return SJ_OK;
}

bool __wrap_sj_assembler_has_open(const sj_assembler *assembler,
                                  bool (*is_one)(void *context, uint32_t function), void *context);
bool __wrap_sj_assembler_has_open(const sj_assembler *assembler,
                                  bool (*is_one)(void *context, uint32_t function), void *context)
{
    (void)assembler;
    return open_function != 0 && is_one(context, open_function);
}

void __wrap_sj_assembler_visit_open(const sj_assembler *assembler,
                                    void (*visit)(void *context, const sj_stack_frame *call),
                                    void *context);
void __wrap_sj_assembler_visit_open(const sj_assembler *assembler,
                                    void (*visit)(void *context, const sj_stack_frame *call),
                                    void *context)
{
    (void)assembler;
    (void)visit;
    (void)context;
}

static sj_alternate_stack alternate; /* the alternate stack that the assembler reports */

sj_alternate_stack __wrap_sj_assembler_get_alternate(const sj_assembler *assembler);
sj_alternate_stack __wrap_sj_assembler_get_alternate(const sj_assembler *assembler)
{
    (void)assembler;
    return alternate;
}

static uint64_t oldest_ticks; /* latest age that the triggers received */

uint32_t __wrap_sj_triggers_overdue(sj_triggers *triggers, uint32_t bits, uint64_t age_ticks,
                                    uint64_t now_ticks, uint64_t thread);
uint32_t __wrap_sj_triggers_overdue(sj_triggers *triggers, uint32_t bits, uint64_t age_ticks,
                                    uint64_t now_ticks, uint64_t thread)
{
    (void)triggers;
    (void)bits;
    (void)now_ticks;
    (void)thread;
    oldest_ticks = age_ticks > oldest_ticks ? age_ticks : oldest_ticks;
    return 0;
}

bool __wrap_sj_triggers_is_paused(const sj_triggers *triggers);
bool __wrap_sj_triggers_is_paused(const sj_triggers *triggers)
{
    (void)triggers;
    return false;
}

void __wrap_sj_triggers_call(sj_triggers *triggers, uint32_t bits, uint64_t duration_ticks,
                             uint64_t now_ticks, uint64_t thread);
void __wrap_sj_triggers_call(sj_triggers *triggers, uint32_t bits, uint64_t duration_ticks,
                             uint64_t now_ticks, uint64_t thread)
{
    (void)triggers;
    (void)bits;
    (void)duration_ticks;
    (void)now_ticks;
    (void)thread;
}

typedef struct fixture {
    sj_thread_slot slot;
    sj_arena_view view;
    sj_read_progress progress;
    sj_record_stages stages;
    sj_policy policy;
    sj_function_rules *rules;
    sj_unhooked_set *unhooked;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){0};
    passed_count = 0;
    gap_count = 0;
    open_function = 0;
    oldest_ticks = 0;
    alternate = (sj_alternate_stack){.span = 0};
    assert_int_equal(sj_unhooked_set_new(&f.unhooked), SJ_OK);
    f.slot.stack_low = STACK_LOW;
    f.slot.stack_high = STACK_HIGH;
    const sj_staged_thread thread = {
        .slot = &f.slot, .view = &f.view, .freed = f.unhooked, .name = "test", .start_ticks = 1};
    sj_read_progress_init(&f.progress, &f.slot);
    sj_record_stages_init(&f.stages, &thread, NULL, &f.progress);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sj_record_stages_deinit(&f->stages);
    sj_function_rules_free(f->rules);
    sj_unhooked_set_release(f->unhooked);
    return 0;
}

static void ask(fixture *f, uint64_t minimum_ticks)
{
    f->policy.minimum_ns = minimum_ticks;
    assert_int_equal(sj_function_rules_new(&f->policy, &f->rules), SJ_OK);
    const sj_policy_judge judge = {.policy = &f->policy, .rules = f->rules, .ns_per_tick = 1};
    assert_int_equal(sj_record_stages_set_policy(&f->stages, &judge, 1), SJ_OK);
}

static void feed_records(fixture *f, sj_record *records, uint32_t count, uint64_t now_ticks)
{
    const sj_record_batch batch = {.records = records, .count = count, .now_ticks = now_ticks};
    assert_int_equal(sj_record_stages_feed(&f->stages, &batch), SJ_OK);
}

static void feed(fixture *f, uint64_t ticks, sj_record_kind kind, uint32_t function, uint64_t stack)
{
    sj_record record;
    fake_record_write(&record, ticks, kind, function, stack);
    feed_records(f, &record, 1, ticks);
}

static void enter(fixture *f, uint64_t ticks, uint32_t function, uint64_t stack)
{
    feed(f, ticks, SJ_RECORD_ENTER, function, stack);
}

static void leave(fixture *f, uint64_t ticks, uint32_t function, uint64_t stack)
{
    feed(f, ticks, SJ_RECORD_LEAVE, function, stack);
}

static void assert_passed(size_t index, sj_record_kind kind, uint32_t function)
{
    assert_true(index < passed_count);
    assert_int_equal(sj_record_tag(&passed[index]),
                     (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function);
}

static void call_both(fixture *f, uint64_t inner_ticks)
{
    enter(f, 100, OUTER, STACK);
    enter(f, 110, INNER, STACK - 16);
    leave(f, 110 + inner_ticks, INNER, STACK - 16);
    leave(f, 1000, OUTER, STACK);
}

static void without_a_policy_everything_passes(void **state)
{
    call_both(*state, 1);
    assert_int_equal(passed_count, 4);
}

static void calls_below_the_minimum_are_kept_out(void **state)
{
    ask(*state, 50);
    call_both(*state, 49);
    assert_int_equal(passed_count, 2);
    assert_passed(0, SJ_RECORD_ENTER, OUTER);
    assert_passed(1, SJ_RECORD_LEAVE, OUTER);
}

static void long_calls_pass_with_their_callers_in_order(void **state)
{
    ask(*state, 50);
    call_both(*state, 50);
    assert_int_equal(passed_count, 4);
    assert_passed(0, SJ_RECORD_ENTER, OUTER);
    assert_passed(1, SJ_RECORD_ENTER, INNER);
    assert_passed(2, SJ_RECORD_LEAVE, INNER);
}

static void calls_that_are_too_deep_are_kept_out(void **state)
{
    fixture *f = *state;
    f->policy.max_depth = 1;
    ask(f, 0);
    call_both(f, 500);
    assert_int_equal(passed_count, 2);
    assert_passed(1, SJ_RECORD_LEAVE, OUTER);
}

/* OUTER's frame holds the alternate stack. */
static void a_handler_on_an_alternate_stack_inside_the_own_one_ends_no_call(void **state)
{
    fixture *f = *state;
    f->policy.max_depth = 1;
    ask(f, 0);
    enter(f, 100, OUTER, STACK);
    enter(f, 110, INNER, STACK - 1024);
    feed(f, 120, SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_LOW, STACK - 512);
    feed(f, 121, SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_HIGH, STACK - 8);
    enter(f, 130, INNER, STACK - 64); /* in the handler, which leaves by longjmp */
    enter(f, 140, INNER, STACK - 2048);
    leave(f, 150, INNER, STACK - 2048);
    leave(f, 160, INNER, STACK - 1024);
    leave(f, 170, OUTER, STACK);
    enter(f, 180, INNER, STACK - 64); /* the array is gone */
    leave(f, 190, INNER, STACK - 64);
    assert_int_equal(passed_count, 8);
    assert_passed(0, SJ_RECORD_ENTER, OUTER);
    assert_passed(1, SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_LOW);
    assert_passed(2, SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_HIGH);
    assert_passed(3, SJ_RECORD_ENTER, INNER);
    assert_passed(4, SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_LOW);
    assert_int_equal(sj_record_stack(&passed[4]), 0);
    assert_passed(5, SJ_RECORD_LEAVE, OUTER);
    assert_passed(6, SJ_RECORD_ENTER, INNER);
}

static void a_handler_may_run_on_an_alternate_stack_when_the_policy_comes(void **state)
{
    fixture *f = *state;
    alternate = (sj_alternate_stack){.low = STACK - 512, .span = 504};
    ask(f, 50);
    enter(f, 100, INNER, STACK - 64);
    enter(f, 110, OUTER, STACK - 1024); /* the handler is left */
    assert_int_equal(passed_count, 2);
    assert_passed(0, SJ_RECORD_ENTER, INNER);
    assert_passed(1, SJ_RECORD_NOTE, SJ_NOTE_ALTERNATE_LOW);
}

static sj_record make_value(uint32_t function, uint64_t stack, uint32_t position, uint64_t bits)
{
    const uint32_t word = ((uint32_t)stack & SJ_RECORD_VALUE_STACK_MASK) | SJ_PART_VALUE |
                          (uint32_t)sj_value_descriptor(position, SJ_VALUE_LONG) << 24;
    const uint32_t tag = (uint32_t)SJ_RECORD_VALUE << SJ_RECORD_FUNCTION_BITS | function;
    sj_record record;
    memcpy(record.bytes, &bits, sizeof(bits));
    memcpy(record.bytes + 8, &word, sizeof(word));
    memcpy(record.bytes + 12, &tag, sizeof(tag));
    return record;
}

static void feed_value(fixture *f, uint32_t function, uint64_t stack, uint32_t position,
                       uint64_t bits)
{
    sj_record record = make_value(function, stack, position, bits);
    feed_records(f, &record, 1, 1);
}

static void assert_value(size_t index, uint32_t function, uint64_t bits)
{
    assert_passed(index, SJ_RECORD_VALUE, function);
    assert_int_equal(sj_record_value(&passed[index]), bits);
}

/* Feeds a call of OUTER with `count` calls of INNER inside. Each call has an argument and a
 * result. */
static void call_with_values(fixture *f, uint64_t count, uint64_t inner_ticks)
{
    uint64_t ticks = 100;
    feed_value(f, OUTER, STACK, 1, 77);
    enter(f, ticks, OUTER, STACK);
    for (uint64_t i = 0; i < count; i++, ticks += inner_ticks) {
        feed_value(f, INNER, STACK - 16, 1, i);
        enter(f, ticks, INNER, STACK - 16);
        feed_value(f, INNER, STACK - 16, 0, i);
        leave(f, ticks + inner_ticks, INNER, STACK - 16);
    }
    feed_value(f, OUTER, STACK, 0, 78);
    leave(f, ticks + 1000, OUTER, STACK);
}

static void values_are_held_back_with_their_calls(void **state)
{
    enum { MANY = 10000 };
    fixture *f = *state;
    ask(f, 50);
    call_with_values(f, MANY, 1);
    assert_int_equal(passed_count, 4);
    assert_value(0, OUTER, 77);
    assert_passed(1, SJ_RECORD_ENTER, OUTER);
    assert_value(2, OUTER, 78);
    assert_passed(3, SJ_RECORD_LEAVE, OUTER);
    assert_true(f->stages.filter.values.lost == 0 && f->stages.filter.values.waiting_count == 0 &&
                f->stages.filter.values.held_count == 0);
}

static void values_pass_with_calls_that_are_long_enough(void **state)
{
    fixture *f = *state;
    ask(f, 50);
    call_with_values(f, 1, 50);
    assert_int_equal(passed_count, 8);
    assert_value(0, OUTER, 77);
    assert_passed(1, SJ_RECORD_ENTER, OUTER);
    assert_value(2, INNER, 0);
    assert_passed(3, SJ_RECORD_ENTER, INNER);
    assert_value(4, INNER, 0);
    assert_passed(5, SJ_RECORD_LEAVE, INNER);
}

/* INNER is a handler whose call is dropped. It interrupts OUTER between its result and its exit. */
static void values_wait_for_their_own_call(void **state)
{
    fixture *f = *state;
    f->policy.max_depth = 1;
    ask(f, 0);
    enter(f, 90, OUTER, STACK);
    feed_value(f, INNER, STACK - 64, 1, 5);
    feed_value(f, OUTER, STACK, 0, 6);
    enter(f, 100, INNER, STACK - 64);
    leave(f, 110, INNER, STACK - 64);
    leave(f, 120, OUTER, STACK);
    assert_int_equal(passed_count, 3);
    assert_value(1, OUTER, 6);
    assert_passed(2, SJ_RECORD_LEAVE, OUTER);
}

static void values_without_a_call_count_as_lost(void **state)
{
    fixture *f = *state;
    ask(f, 50);
    for (uint64_t i = 0; i <= SJ_FILTER_VALUES_WAITING; i++) {
        feed_value(f, INNER, STACK - 16, 1, i);
    }
    assert_int_equal(f->stages.filter.values.lost, SJ_FILTER_VALUES_WAITING);
    assert_int_equal(f->stages.filter.values.waiting_count, 1);
}

static void an_unwanted_thread_passes_nothing(void **state)
{
    fixture *f = *state;
    f->policy.max_depth = 100;
    ask(f, 0);
    sj_call_filter_drop_all(&f->stages.filter, true);
    call_both(f, 500);
    assert_int_equal(passed_count, 0);
    sj_call_filter_drop_all(&f->stages.filter, false);
    call_both(f, 500);
    assert_int_equal(passed_count, 4);
}

/* OUTER ends by a jump to INNER, which runs until 1000. */
static void jump_to_inner(fixture *f)
{
    enter(f, 100, OUTER, STACK);
    leave(f, 110, OUTER, STACK + SJ_STACK_TAIL_CALL);
    enter(f, 110, INNER, STACK);
    leave(f, 1000, INNER, STACK);
}

static void a_call_that_jumps_lasts_as_long_as_the_one_jumped_to(void **state)
{
    fixture *f = *state;
    ask(f, 895); /* longer than INNER runs */
    jump_to_inner(f);
    assert_int_equal(passed_count, 2);
    assert_passed(0, SJ_RECORD_ENTER, OUTER);
    assert_passed(1, SJ_RECORD_LEAVE, OUTER);
    assert_int_equal(sj_record_ticks48(&passed[1]), 1000);
    assert_int_equal(sj_record_stack(&passed[1]), STACK);
}

static void both_calls_of_a_tail_call_pass(void **state)
{
    fixture *f = *state;
    ask(f, 50);
    jump_to_inner(f);
    assert_int_equal(passed_count, 4);
    assert_passed(1, SJ_RECORD_LEAVE, OUTER);
    assert_int_equal(sj_record_ticks48(&passed[1]), 110);
    assert_true(sj_record_is_tail_call(sj_record_stack(&passed[1])));
    assert_passed(2, SJ_RECORD_ENTER, INNER);
    assert_passed(3, SJ_RECORD_LEAVE, INNER);
}

static void a_jump_to_a_filtered_call_leads_to_no_other_call(void **state)
{
    fixture *f = *state;
    f->policy.max_depth = 1;
    ask(f, 0);
    jump_to_inner(f);
    enter(f, 1010, INNER, STACK);
    leave(f, 1020, INNER, STACK);
    assert_int_equal(passed_count, 4);
    assert_int_equal(sj_record_ticks48(&passed[1]), 1000);
    assert_false(sj_record_is_tail_call(sj_record_stack(&passed[1])));
    assert_passed(2, SJ_RECORD_ENTER, INNER);
}

static void a_jump_that_leads_nowhere_is_a_return(void **state)
{
    fixture *f = *state;
    ask(f, 5);
    enter(f, 100, OUTER, STACK);
    leave(f, 110, OUTER, STACK + SJ_STACK_TAIL_CALL);
    enter(f, 120, INNER, STACK - 16);
    leave(f, 130, INNER, STACK - 16);
    assert_int_equal(passed_count, 4);
    assert_int_equal(sj_record_ticks48(&passed[1]), 110);
    assert_false(sj_record_is_tail_call(sj_record_stack(&passed[1])));
}

static void chains_of_any_length_need_few_calls(void **state)
{
    enum { JUMPS = 100000, STATES = 50 };
    fixture *f = *state;
    ask(f, 5000); /* longer than all calls of the chain but the first */
    enter(f, 1, OUTER, STACK);
    uint32_t at = OUTER;
    for (uint32_t i = 1; i <= JUMPS; i++) {
        leave(f, i, at, STACK + SJ_STACK_TAIL_CALL);
        at = 10 + i * 7919 % STATES;
        enter(f, i, at, STACK);
        assert_true(f->stages.filter.depth <= 9);
    }
    leave(f, JUMPS + 1, at, STACK);
    assert_passed(0, SJ_RECORD_ENTER, OUTER);
    assert_int_equal(sj_record_ticks48(&passed[passed_count - 1]), JUMPS + 1);
    assert_int_equal(f->stages.filter.depth, 0);
}

static void calls_on_other_stacks_pass(void **state)
{
    ask(*state, 50);
    enter(*state, 100, INNER, STACK_LOW - 16);
    leave(*state, 101, INNER, STACK_LOW - 16);
    assert_int_equal(passed_count, 2);
}

static void a_call_that_is_held_back_at_the_end_passes(void **state)
{
    fixture *f = *state;
    ask(f, 50);
    enter(f, 100, OUTER, STACK);
    assert_int_equal(passed_count, 0);
    assert_int_equal(sj_record_stages_end(&f->stages, 120), SJ_OK);
    assert_int_equal(passed_count, 1);
}

/* OUTER calls INNER. An exception leaves INNER after `inner_ticks`. */
static void throw_in_inner(fixture *f, uint64_t inner_ticks)
{
    enter(f, 100, OUTER, STACK);
    enter(f, 110, INNER, STACK - 16);
    leave(f, 110 + inner_ticks, INNER, SJ_MANAGED_PASSED);
    leave(f, 1000, OUTER, STACK);
}

static void a_call_of_code_hooked_in_place_ends_by_an_exception(void **state)
{
    fixture *f = *state;
    ask(f, 50);
    throw_in_inner(f, 49);
    assert_int_equal(passed_count, 2);
    throw_in_inner(f, 50);
    assert_int_equal(passed_count, 6);
    assert_passed(4, SJ_RECORD_LEAVE, INNER);
    assert_int_equal(sj_record_stack(&passed[4]), SJ_MANAGED_PASSED);
    assert_passed(5, SJ_RECORD_LEAVE, OUTER);
}

static void a_call_that_an_exception_leaves_ends_with_the_runtime_above_it(void **state)
{
    enum { UNWINDS = 9 };
    fixture *f = *state;
    ask(f, 1);
    enter(f, 100, OUTER, STACK);
    enter(f, 110, INNER, STACK - 16);
    enter(f, 120, UNWINDS, STACK - 64);
    /* if the filter has held UNWINDS back, it writes this exit after UNWINDS */
    leave(f, 130, INNER, SJ_MANAGED_PASSED);
    leave(f, 140, UNWINDS, STACK - 64);
    leave(f, 150, OUTER, STACK);
    assert_passed(passed_count - 2, SJ_RECORD_LEAVE, UNWINDS);
    assert_passed(passed_count - 1, SJ_RECORD_LEAVE, OUTER);
}

static void an_unhooked_open_call_is_a_gap_where_it_was_unhooked(void **state)
{
    static const uint32_t function = OUTER;
    fixture *f = *state;
    enter(f, 100, OUTER, STACK);
    open_function = OUTER;
    sj_unhooked_set_add(f->unhooked, &function, 1, 105);
    enter(f, 104, INNER, STACK - 16);
    assert_int_equal(gap_count, 0); /* the time of the gap has not been reached yet */
    leave(f, 106, INNER, STACK - 16);
    assert_int_equal(gap_count, 1);
    assert_int_equal(gap_at[0], 2);
    open_function = 0;
    leave(f, 107, INNER, STACK - 16);
    assert_int_equal(gap_count, 1);
}

static void a_late_entry_of_an_unhooked_function_is_a_gap(void **state)
{
    static const uint32_t function = OUTER;
    fixture *f = *state;
    sj_unhooked_set_add(f->unhooked, &function, 1, 105);
    leave(f, 106, INNER, STACK);
    open_function = OUTER;
    enter(f, 107, OUTER, STACK);
    assert_int_equal(gap_count, 1);
    assert_int_equal(gap_at[0], 2); /* after the entry */
}

/* A value has no time. It belongs to the record that follows, before or after the change. */
static void a_change_does_not_separate_values_from_their_call(void **state)
{
    static const uint32_t function = OUTER;
    fixture *f = *state;
    sj_record records[6];
    fake_record_write(&records[0], 100, SJ_RECORD_ENTER, OUTER, STACK);
    records[1] = make_value(INNER, STACK - 16, 1, 5);
    fake_record_write(&records[2], 104, SJ_RECORD_ENTER, INNER, STACK - 16);
    records[3] = make_value(INNER, STACK - 16, 0, 6);
    records[4] = make_value(INNER, STACK - 16, 1, 7);
    fake_record_write(&records[5], 106, SJ_RECORD_LEAVE, INNER, STACK - 16);
    open_function = OUTER;
    sj_unhooked_set_add(f->unhooked, &function, 1, 105);
    feed_records(f, records, 6, 106);
    assert_int_equal(passed_count, 6);
    assert_int_equal(gap_count, 1);
    assert_int_equal(gap_at[0], 3);
}

/* The call may have ended while the records were read, so its age counts up to the watch before. */
static void the_age_of_an_open_call_is_that_of_the_previous_check(void **state)
{
    static int some_triggers; /* stubs replace the functions that use the triggers */
    fixture *f = *state;
    sj_error error = {0};
    sj_trigger *trigger = &f->policy.triggers[f->policy.trigger_count++];
    trigger->event = SJ_TRIGGER_JANK;
    assert_int_equal(sj_pattern_make("outer", &trigger->subject, &error), SJ_OK);
    assert_int_equal(sj_function_rules_new(&f->policy, &f->rules), SJ_OK);
    sj_function_rules_name(f->rules, OUTER, "outer");
    const sj_policy_judge judge = {.policy = &f->policy,
                                   .rules = f->rules,
                                   .triggers = (sj_triggers *)(void *)&some_triggers,
                                   .ns_per_tick = 1};
    assert_int_equal(sj_record_stages_set_policy(&f->stages, &judge, 1), SJ_OK);
    sj_call_filter_watch(&f->stages.filter, 90);
    enter(f, 100, OUTER, STACK);
    sj_call_filter_watch(&f->stages.filter, 400);
    assert_int_equal(oldest_ticks, 0);
    sj_call_filter_watch(&f->stages.filter, 700);
    assert_int_equal(oldest_ticks, 300);
    leave(f, 650, OUTER, STACK); /* 550 ticks long */
    sj_call_filter_watch(&f->stages.filter, 1000);
    assert_int_equal(oldest_ticks, 300);
    sj_pattern_free(&trigger->subject);
}

static void the_governor_counts_calls_without_a_clock(void **state)
{
    fixture *f = *state;
    const sj_overhead_governor_options options = {.call_ns = 100, .threadless = true};
    sj_overhead_governor *governor;
    sj_governed_process *governed;
    sj_error error = {0};
    assert_int_equal(sj_overhead_governor_start(&options, &governor, &error), SJ_OK);
    assert_int_equal(sj_overhead_governor_add(governor, 1, getpid(), f->unhooked, &governed),
                     SJ_OK);
    f->stages.governed = governed;
    enter(f, 100, INNER, STACK);
    enter(f, 110, INNER, (STACK - 16) | SJ_UNTIMED_ENTRY);
    leave(f, 120, INNER, STACK - 16);
    assert_int_equal(sj_governed_process_calls(governed)[INNER], 2);
    assert_int_equal(sj_governed_process_untimed(governed)[INNER], 1);
    sj_overhead_governor_remove(governor, governed);
    sj_overhead_governor_stop(governor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_policy_everything_passes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_governor_counts_calls_without_a_clock, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(calls_below_the_minimum_are_kept_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_calls_pass_with_their_callers_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(calls_that_are_too_deep_are_kept_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_handler_on_an_alternate_stack_inside_the_own_one_ends_no_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_handler_may_run_on_an_alternate_stack_when_the_policy_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_are_held_back_with_their_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_pass_with_calls_that_are_long_enough, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(values_wait_for_their_own_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_without_a_call_count_as_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unwanted_thread_passes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_that_jumps_lasts_as_long_as_the_one_jumped_to,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(both_calls_of_a_tail_call_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_jump_to_a_filtered_call_leads_to_no_other_call, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_jump_that_leads_nowhere_is_a_return, set_up, tear_down),
        cmocka_unit_test_setup_teardown(chains_of_any_length_need_few_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_on_other_stacks_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_age_of_an_open_call_is_that_of_the_previous_check,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_that_is_held_back_at_the_end_passes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_call_of_code_hooked_in_place_ends_by_an_exception, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_call_that_an_exception_leaves_ends_with_the_runtime_above_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unhooked_open_call_is_a_gap_where_it_was_unhooked,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_change_does_not_separate_values_from_their_call, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_late_entry_of_an_unhooked_function_is_a_gap, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
