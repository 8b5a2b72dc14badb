/* Tests what the stages do with a batch as a whole: each portion of it is filtered alike, and a
 * loss follows the records before it. No record is later than its batch. */
#include "agent/drain/record_stages.h"

#include "agent/drain/record_ticks.h"
#include "tests/support/check.h"
#include "tests/support/fake_arena.h"

enum { STACK = 0x7f0000, FUNCTION = 5, PLACES = 600 };

static size_t fed;      /* records that the assembler got */
static size_t lost_at;  /* number of records before the loss */
static uint64_t lost;   /* events of the loss */
static bool has_late;   /* the assembler got a record that is later than its batch */
static int pause_count; /* requests to stop that the triggers got */

sj_status __wrap_sj_assembler_feed(sj_assembler *assembler, const sj_record *records, size_t count,
                                   uint64_t now_ticks);
sj_status __wrap_sj_assembler_feed(sj_assembler *assembler, const sj_record *records, size_t count,
                                   uint64_t now_ticks)
{
    (void)assembler;
    for (size_t i = 0; i < count; i++) {
        has_late = has_late ||
                   sj_record_age(sj_record_ticks48(&records[i]), now_ticks & SJ_TICKS48_MASK) != 0;
    }
    fed += count;
    return SJ_OK;
}

sj_status __wrap_sj_assembler_add_loss(sj_assembler *assembler, sj_gap_reason reason,
                                       uint64_t calls, uint64_t events, uint64_t now_ticks);
sj_status __wrap_sj_assembler_add_loss(sj_assembler *assembler, sj_gap_reason reason,
                                       uint64_t calls, uint64_t events, uint64_t now_ticks)
{
    (void)assembler;
    (void)calls;
    (void)now_ticks;
    assert_int_equal(reason, SJ_GAP_TORN);
    lost_at = fed;
    lost += events;
    return SJ_OK;
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

sj_alternate_stack __wrap_sj_assembler_get_alternate(const sj_assembler *assembler);
sj_alternate_stack __wrap_sj_assembler_get_alternate(const sj_assembler *assembler)
{
    (void)assembler;
    return (sj_alternate_stack){.span = 0};
}

bool __wrap_sj_triggers_is_paused(const sj_triggers *triggers);
bool __wrap_sj_triggers_is_paused(const sj_triggers *triggers)
{
    (void)triggers;
    return false;
}

void __wrap_sj_triggers_pause(sj_triggers *triggers, bool paused);
void __wrap_sj_triggers_pause(sj_triggers *triggers, bool paused)
{
    (void)triggers;
    pause_count += paused;
}

typedef struct fixture {
    sj_thread_slot slot;
    sj_arena_view view;
    sj_read_progress progress;
    sj_record_stages stages;
    sj_record records[PLACES];
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){.slot = {.stack_low = STACK - 0x1000, .stack_high = STACK + 0x1000}};
    fed = 0;
    lost_at = 0;
    lost = 0;
    has_late = false;
    pause_count = 0;
    const sj_staged_thread thread = {.slot = &f.slot, .view = &f.view, .name = "test"};
    sj_read_progress_init(&f.progress, &f.slot);
    sj_record_stages_init(&f.stages, &thread, NULL, &f.progress);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sj_record_stages_deinit(&f->stages);
    return 0;
}

/* Fills all places with timed calls. */
static void fill(fixture *f)
{
    for (uint64_t i = 0; i < PLACES; i++) {
        fake_record_write(&f->records[i], 100 + i, i % 2 == 0 ? SJ_RECORD_ENTER : SJ_RECORD_LEAVE,
                          FUNCTION, STACK);
    }
}

/* Records without a clock are read in portions. The policy has no rule about calls, so the filter
 * looks at the records only because of the request. */
static void a_request_far_behind_the_first_record_is_seen(void **state)
{
    static int some_triggers; /* stubs replace the functions that use the triggers */
    static const sj_policy policy = {0};
    fixture *f = *state;
    sj_policy_judge judge = {
        .policy = &policy, .triggers = (sj_triggers *)(void *)&some_triggers, .ns_per_tick = 1};
    assert_int_equal(sj_function_rules_new(&policy, &judge.rules), SJ_OK);
    assert_int_equal(sj_record_stages_set_policy(&f->stages, &judge, 1), SJ_OK);
    fill(f);
    fake_record_write(&f->records[PLACES - 2], 100 + PLACES - 2, SJ_RECORD_NOTE, SJ_NOTE_REQUEST,
                      SJ_REQUEST_STOP);
    const sj_record_batch batch = {.records = f->records,
                                   .count = PLACES,
                                   .now_ticks = 100 + PLACES,
                                   .has_shorts = true,
                                   .has_request = true};
    assert_int_equal(sj_record_stages_feed(&f->stages, &batch), SJ_OK);
    assert_int_equal(pause_count, 1);
    sj_function_rules_free(judge.rules);
}

static void a_loss_follows_the_records_that_wait_for_a_time(void **state)
{
    fixture *f = *state;
    fill(f);
    /* The last record has no clock, so it waits for the time of the next one. */
    fake_record_write(&f->records[PLACES - 1], 0, SJ_RECORD_LEAVE, FUNCTION,
                      STACK | SJ_STACK_UNTIMED);
    const sj_record_batch batch = {
        .records = f->records, .count = PLACES, .now_ticks = 100 + PLACES, .has_shorts = true};
    assert_int_equal(sj_record_stages_feed(&f->stages, &batch), SJ_OK);
    assert_int_equal(fed, PLACES - 1);
    assert_int_equal(f->progress.waiting, 1);
    const sj_record_batch torn = {.now_ticks = 100 + PLACES, .lost_events = 7};
    assert_int_equal(sj_record_stages_feed(&f->stages, &torn), SJ_OK);
    assert_int_equal(fed, PLACES);
    assert_int_equal(lost_at, PLACES);
    assert_int_equal(lost, 7);
    assert_int_equal(f->progress.waiting, 0);
}

/* The end of the process is known before the waiting records get their times. */
static void no_record_is_later_than_its_batch_at_the_end(void **state)
{
    fixture *f = *state;
    const uint64_t ended_ticks = sj_clock_ticks();
    fake_record_write(&f->records[0], ended_ticks, SJ_RECORD_ENTER, FUNCTION, STACK);
    fake_record_write(&f->records[1], 0, SJ_RECORD_LEAVE, FUNCTION, STACK | SJ_STACK_UNTIMED);
    const sj_record_batch batch = {
        .records = f->records, .count = 2, .now_ticks = ended_ticks, .has_shorts = true};
    assert_int_equal(sj_record_stages_feed(&f->stages, &batch), SJ_OK);
    assert_int_equal(f->progress.waiting, 1);
    assert_int_equal(sj_record_stages_end(&f->stages, ended_ticks), SJ_OK);
    assert_int_equal(fed, 2);
    assert_false(has_late);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(a_request_far_behind_the_first_record_is_seen),
        WITH_FIXTURE(a_loss_follows_the_records_that_wait_for_a_time),
        WITH_FIXTURE(no_record_is_later_than_its_batch_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
