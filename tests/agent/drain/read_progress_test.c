/* Kills a recorder between any two instructions of a change of its read progress. What the next
 * recorder then counts as lost is exact around a stored block, and never too small while the cursor
 * moves. A child makes the change in single steps, on a slot that it shares with the test. */
#include "agent/drain/read_progress.h"
#include "agent/drain/stored_offers.h"
#include "tests/support/check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BLOCK = 9, /* number of the block that is offered */
    BLOCK_EVENTS = 40,
    BLOCK_CALLS = 7,
    LAST_CHUNK = 4,
    RECORDS = 300, /* records in the last chunk */
    DROPPED = 50,  /* events */
    NOTED_CALLS = 5,
    NOTED_EVENTS = 20, /* by the notes that are read */
    UNSENT = 100,
    UNSENT_CALLS = 11,
    MOST_STEPS = 100000
};

typedef struct lost {
    uint64_t calls;
    uint64_t events;
} lost;

typedef void change(sj_read_progress *progress);
typedef void check(const sj_thread_slot *slot);

static sj_thread_slot *slot;

/* Returns what a recorder reports that continues at the slot, with the session's blocks 1 to
 * `stored` in the spool: what is unsent, what is unread, and the drops that no note reported. */
static lost lost_after_kill(const sj_thread_slot *left, uint64_t stored)
{
    sj_thread_slot copy = *left;
    sj_stored_offers_settle_slot(&copy, &(sj_stored_offers){.blocks = stored});
    const sj_slot_cursor *cursor = &copy.cursor;
    const uint64_t unread =
        (LAST_CHUNK - cursor->sequence) * SJ_CHUNK_RECORDS + RECORDS - cursor->position;
    return (lost){.calls = copy.unsent_calls + DROPPED - cursor->noted_calls,
                  .events = cursor->unsent + unread + DROPPED - cursor->noted_events};
}

/* Returns the progress in the slot. */
static sj_read_progress resume(void)
{
    sj_read_progress progress;
    sj_read_progress_init(&progress, slot);
    sj_read_progress_resume(&progress);
    progress.unsent = slot->cursor.unsent;
    progress.unsent_calls = slot->unsent_calls;
    return progress;
}

static int set_up(void **state)
{
    (void)state;
    slot = mmap(NULL, sizeof(*slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(slot, MAP_FAILED);
    slot->cursor = (sj_slot_cursor){
        .thread = 1, .sequence = 3, .position = SJ_CHUNK_RECORDS - 10, .unsent = UNSENT};
    slot->unsent_calls = UNSENT_CALLS;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return munmap(slot, sizeof(*slot));
}

static _Noreturn void run_traced(change *make)
{
    sj_read_progress progress = resume();
    (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    (void)raise(SIGSTOP);
    make(&progress);
    (void)raise(SIGSTOP);
    _exit(1);
}

/* Makes a change in a child, and checks the slot after each instruction. */
static void check_each_step(change *make, check *is_right)
{
    int status = 0;
    unsigned steps = 0;
    const pid_t child = fork();
    if (child == 0) {
        run_traced(make);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    do {
        assert_true(WIFSTOPPED(status));
        is_right(slot);
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(++steps < MOST_STEPS);
    } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    is_right(slot);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
}

/* Reads the rest of chunk 3 and the first 100 records of chunk 4, with notes of drops. */
static void read_on(sj_read_progress *progress)
{
    progress->sequence = LAST_CHUNK;
    progress->position = 100;
    progress->unsent += 10 + 100 + NOTED_EVENTS;
    progress->unsent_calls += 60 + NOTED_CALLS;
    progress->noted_calls += NOTED_CALLS;
    progress->noted_events += NOTED_EVENTS;
    sj_read_progress_save(progress);
}

static lost all; /* all records, as if none of them had been sent */

static void is_not_less(const sj_thread_slot *left)
{
    const lost now = lost_after_kill(left, 0);
    assert_true(now.events >= all.events);
    assert_true(now.calls >= UNSENT_CALLS + DROPPED); /* unread calls are not counted here */
}

static void a_kill_while_the_cursor_moves_loses_nothing_uncounted(void **state)
{
    (void)state;
    all = lost_after_kill(slot, 0);
    check_each_step(read_on, is_not_less);
    assert_int_equal(lost_after_kill(slot, 0).events, all.events);
    assert_int_equal(slot->cursor.position, 100);
    assert_int_equal(slot->cursor.noted_events, NOTED_EVENTS);
}

static void offer(sj_read_progress *progress)
{
    sj_read_progress_offer(progress, BLOCK, BLOCK_CALLS, BLOCK_EVENTS);
}

static void send(sj_read_progress *progress)
{
    sj_read_progress_sent(progress, BLOCK_CALLS, BLOCK_EVENTS);
}

static void settle_stored(sj_read_progress *progress)
{
    sj_stored_offers_settle_slot(progress->slot, &(sj_stored_offers){.blocks = BLOCK});
}

static void is_all_lost(const sj_thread_slot *left)
{
    const lost now = lost_after_kill(left, BLOCK - 1);
    assert_int_equal(now.events, all.events);
    assert_int_equal(now.calls, all.calls);
}

static void is_lost_without_the_block(const sj_thread_slot *left)
{
    const lost now = lost_after_kill(left, BLOCK);
    assert_int_equal(now.events, all.events - BLOCK_EVENTS);
    assert_int_equal(now.calls, all.calls - BLOCK_CALLS);
}

/* An earlier offer may still be in the slot: its block was refused. */
static void offer_again(sj_read_progress *progress)
{
    sj_read_progress_offer(progress, BLOCK, UINT64_MAX, UINT64_MAX);
}

static void a_kill_around_a_stored_block_is_exact(void **state)
{
    (void)state;
    all = lost_after_kill(slot, 0);
    check_each_step(offer_again, is_all_lost);
    check_each_step(offer, is_all_lost);
    const sj_thread_slot offered = *slot;
    check_each_step(send, is_lost_without_the_block);
    assert_int_equal(slot->offer.number, 0);
    *slot = offered;
    check_each_step(settle_stored, is_lost_without_the_block);
    assert_int_equal(slot->offer.number, 0);
}

static void a_kill_around_a_refused_block_is_exact(void **state)
{
    (void)state;
    all = lost_after_kill(slot, 0);
    check_each_step(offer, is_all_lost);
    check_each_step(sj_read_progress_refused, is_all_lost);
    assert_int_equal(slot->offer.number, 0);
}

#define STEP_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STEP_TEST(a_kill_while_the_cursor_moves_loses_nothing_uncounted),
        STEP_TEST(a_kill_around_a_stored_block_is_exact),
        STEP_TEST(a_kill_around_a_refused_block_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
