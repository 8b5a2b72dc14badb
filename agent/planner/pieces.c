#include "agent/planner/pieces.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct pieces {
    sj_piece_run *run;
    void *context;
    uint32_t count;
    _Atomic uint32_t next;
    pthread_mutex_t mutex;
    uint32_t failed; /* lowest number of a piece that failed; `count`: none */
    sj_status status;
} pieces;

static void set_failure(pieces *work, uint32_t piece, sj_status status)
{
    pthread_mutex_lock(&work->mutex);
    if (piece < work->failed) {
        work->failed = piece;
        work->status = status;
    }
    pthread_mutex_unlock(&work->mutex);
}

static void *run_pieces(void *context)
{
    pieces *work = context;
    for (;;) {
        const uint32_t piece = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if (piece >= work->count) {
            return NULL;
        }
        const sj_status status = work->run(work->context, piece);
        if (status != SJ_OK) {
            set_failure(work, piece, status);
        }
    }
}

/* Starts up to `wanted` threads, with all signals blocked. Returns the number of started
 * threads. */
static uint32_t start_threads(pieces *work, pthread_t threads[], uint32_t wanted)
{
    sigset_t all;
    sigset_t before;
    uint32_t started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < wanted && pthread_create(&threads[started], NULL, run_pieces, work) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

uint32_t sj_pieces_count(uint32_t threads)
{
    enum { PIECES_A_THREAD = 4 };
    const uint32_t thread_limit =
        threads < SJ_PIECES_MOST_THREADS ? threads : SJ_PIECES_MOST_THREADS;
    return thread_limit > 1 ? PIECES_A_THREAD * thread_limit : 1;
}

sj_status sj_pieces_run(uint32_t threads, uint32_t count, sj_piece_run *run, void *context)
{
    pthread_t others[SJ_PIECES_MOST_THREADS];
    pieces work = {.run = run, .context = context, .count = count, .failed = count};
    const uint32_t thread_limit =
        threads < SJ_PIECES_MOST_THREADS ? threads : SJ_PIECES_MOST_THREADS;
    const uint32_t useful = thread_limit < count ? thread_limit : count;
    pthread_mutex_init(&work.mutex, NULL);
    const uint32_t started = useful > 1 ? start_threads(&work, others, useful - 1) : 0;
    run_pieces(&work);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(others[i], NULL);
    }
    pthread_mutex_destroy(&work.mutex);
    return work.status;
}
