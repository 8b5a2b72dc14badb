/* The call filter: drops the calls of one thread that the policy does not keep, and informs the
 * triggers. One filter for each thread; used by the drain's thread only.
 *
 * The filter keeps all calls on stacks other than the thread's own (coroutines, signal stacks). */
#ifndef SJ_AGENT_DRAIN_CALL_FILTER_H
#define SJ_AGENT_DRAIN_CALL_FILTER_H

#include "agent/assembler/assembler.h"
#include "agent/drain/arena_view.h"
#include "agent/drain/filter_values.h"
#include "agent/drain/policy_judge.h"
#include "agent/drain/record_batch.h"

/* An open call that the filter knows. */
typedef struct sj_filtered_call sj_filtered_call;

/* The thread that a filter belongs to. All pointers are borrowed and must outlive the filter. */
typedef struct sj_call_filter_thread {
    const sj_arena_view *view; /* holds the names of marks; needed with triggers */
    uint64_t number;
    const char *name;    /* its content changes when the thread is renamed */
    uint64_t stack_low;  /* bounds of the thread's own stack */
    uint64_t stack_high; /* 0: unknown, so every address counts as the thread's own stack */
} sj_call_filter_thread;

typedef struct sj_call_filter {
    sj_call_filter_thread thread;
    sj_policy_judge judge; /* all members NULL or 0: keep all calls */
    uint64_t minimum_ticks;
    /* alternate stack of a running handler that lies inside the thread's own stack */
    sj_alternate_stack alternate;
    /* the policy filters calls, or calls that the previous policy dropped are still open */
    bool is_needed;
    /* the policy filters no calls; the filter still waits for the end of calls that the previous
     * policy dropped */
    bool is_finishing;
    uint64_t now_ticks; /* upper bound for the times of the records being fed */
    bool keeps_nothing; /* the policy does not want the thread's name: calls are only counted */
    /* current state */
    bool paused;
    bool failed;        /* out of memory */
    uint64_t last_tick; /* time of the last frame tick */
    uint64_t woke;      /* when the thread last returned from waiting for events; 0: it waits */
    /* bit set of the triggers that have already evaluated this turn of the event loop */
    uint32_t judged;
    uint64_t watched_ticks; /* `now_ticks` of the last sj_call_filter_watch */
    sj_filtered_call *calls;
    uint32_t depth;
    uint32_t held_from; /* index of the first call that is not passed on yet */
    size_t capacity;
    sj_filter_values values;
    sj_record *output;
    size_t output_count;
    size_t output_capacity;
} sj_call_filter;

/* Initializes a filter that keeps all calls. Change its state only through the functions below. */
void sj_call_filter_init(sj_call_filter *filter, const sj_call_filter_thread *thread);

/* Frees the filter's memory. */
void sj_call_filter_deinit(sj_call_filter *filter);

/* If `drops` is true, calls that begin from now on are only counted: the policy does not want
 * threads of this name. If false, calls that begin from now on are filtered again. */
void sj_call_filter_drop_all(sj_call_filter *filter, bool drops);

/* Replaces the policy, which is not NULL. Call sj_call_filter_release before it. Calls that are
 * only counted stay so until they end. The filter also tracks the calls that are open in
 * `assembler`, which is only read. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_filter_set(sj_call_filter *filter, const sj_policy_judge *judge,
                                           const sj_assembler *assembler);

/* True if the filter would pass on each record of a batch. `has_request` is the batch's member. */
bool sj_call_filter_is_idle(const sj_call_filter *filter, bool has_request);

/* Replaces the batch's records by those that are passed on, borrowed until the next call. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_filter_apply(sj_call_filter *filter, sj_record_batch *batch);

/* Replaces the batch's records by those that are held back. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_filter_release(sj_call_filter *filter, sj_record_batch *batch);

/* Reports to the triggers the open calls that have exceeded their limit, and the running turn of
 * the event loop if it has. Durations are measured up to the time of the previous call of this
 * function. All records written until `now_ticks` must have been fed. */
void sj_call_filter_watch(sj_call_filter *filter, uint64_t now_ticks);

/* Returns the number of open calls that are held back because they have not reached the policy's
 * minimum duration yet. */
size_t sj_call_filter_count_held(const sj_call_filter *filter);

#endif
