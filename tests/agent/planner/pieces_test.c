/* Tests work that is split into pieces for several threads. */
#include "agent/planner/pieces.h"

#include "agent/planner/planner.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { MOST = 1000 };

typedef struct work {
    _Atomic uint32_t runs[MOST];
    uint32_t fails_from;
} work;

static sj_status run_piece(void *context, uint32_t piece)
{
    work *all = context;
    atomic_fetch_add(&all->runs[piece], 1);
    return piece < all->fails_from ? SJ_OK : piece == all->fails_from ? SJ_ENOMEM : SJ_ELIMIT;
}

static void every_piece_runs_once_on_any_number_of_threads(void **state)
{
    static const uint32_t counts[] = {0, 1, 2, 15, 16, 17, MOST};
    (void)state;
    for (uint32_t threads = 0; threads <= 20; threads += 4) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            work all = {.fails_from = MOST};
            assert_int_equal(sj_pieces_run(threads, counts[i], run_piece, &all), SJ_OK);
            for (uint32_t piece = 0; piece < MOST; piece++) {
                assert_int_equal(all.runs[piece], piece < counts[i]);
            }
        }
    }
}

static void the_first_failure_in_the_order_of_pieces_is_returned(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        work all = {.fails_from = 7};
        assert_int_equal(sj_pieces_run(threads, MOST, run_piece, &all), SJ_ENOMEM);
        assert_int_equal(all.runs[MOST - 1], 1);
    }
}

/* Two pieces that wait for each other, so each needs a thread of its own. */
typedef struct meeting {
    pthread_barrier_t both;
    pthread_t caller;
    _Atomic unsigned others;
    _Atomic bool took_signals;
} meeting;

static sj_status meet(void *context, uint32_t piece)
{
    meeting *met = context;
    sigset_t blocked;
    (void)piece;
    (void)pthread_barrier_wait(&met->both);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!pthread_equal(pthread_self(), met->caller)) {
        atomic_fetch_add(&met->others, 1);
        atomic_store(&met->took_signals, sigismember(&blocked, SIGTERM) == 0);
    }
    return SJ_OK;
}

static void other_threads_take_no_signals(void **state)
{
    sigset_t after;
    meeting met = {.caller = pthread_self()};
    (void)state;
    pthread_barrier_init(&met.both, NULL, 2);
    assert_int_equal(sj_pieces_run(2, 2, meet, &met), SJ_OK);
    pthread_barrier_destroy(&met.both);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(met.others, 1);
    assert_false(met.took_signals);
    assert_int_equal(sigismember(&after, SIGTERM), 0);
    assert_in_range(sj_plan_threads(), 1, SJ_PIECES_MOST_THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_runs_once_on_any_number_of_threads),
        cmocka_unit_test(the_first_failure_in_the_order_of_pieces_is_returned),
        cmocka_unit_test(other_threads_take_no_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
