/* The call filter: processes the records of one thread before its assembler gets them.
 *
 * It counts calls for the overhead budget and reports unhooked functions to the assembler. It drops
 * the calls that the policy does not keep, and informs the triggers. One filter for each thread;
 * used by the drain's thread only.
 *
 * The filter keeps all calls on stacks other than the thread's own (coroutines, signal stacks). */
#ifndef SJ_AGENT_DRAIN_CALL_FILTER_H
#define SJ_AGENT_DRAIN_CALL_FILTER_H

#include "agent/assembler/assembler.h"
#include "agent/drain/arena_view.h"
#include "agent/drain/filter_values.h"
#include "agent/modes/overhead_governor.h"
#include "agent/modes/triggers.h"
#include "agent/registry/function_rules.h"

/* An open call that the filter knows. */
typedef struct sj_filtered_call sj_filtered_call;

/* A thread that was stopped in a probe completes the probe after its signal handlers have returned.
 * This is the number of records that the handlers may write meanwhile. */
enum { SJ_CALL_FILTER_LATE_RECORDS = 4096 };

typedef struct sj_call_filter {
    sj_assembler *assembler;
    sj_governed_process *governed; /* NULL without a budget */
    sj_unhooked_set *freed; /* unhooked functions of the process; NULL: functions stay hooked */
    uint32_t seen_changes;  /* number of changes of `freed` that were applied */
    /* number of records to come that may contain a delayed entry of a function that was unhooked */
    uint32_t late_records;
    /* the policy for calls; all NULL or 0: keep all calls */
    const sj_policy *policy;
    sj_function_rules *rules;
    sj_triggers *triggers;
    const sj_arena_view *view; /* holds the names of marks; borrowed; needed with triggers */
    uint64_t minimum_ticks;
    uint64_t thread;
    const char *thread_name; /* borrowed; changes when the thread is renamed */
    uint64_t stack_low;      /* bounds of the thread's own stack */
    uint64_t stack_high;
    /* alternate stack of a running handler that lies inside the thread's own stack */
    sj_alternate_stack alternate;
    /* the policy filters calls, or calls that the previous policy dropped are still open */
    bool is_needed;
    /* the policy filters no calls; the filter still waits for the end of calls that the previous
     * policy dropped */
    bool is_finishing;
    bool has_request;   /* the records being fed contain a request of the program */
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

/* The part of a policy that filters the calls of one thread. */
typedef struct sj_call_filter_rules {
    const sj_policy *policy;
    sj_function_rules *rules;
    sj_triggers *triggers;
    uint64_t minimum_ticks;
    bool keeps_nothing;
} sj_call_filter_rules;

/* The thread that a filter belongs to. All pointers are borrowed and must outlive the filter. */
typedef struct sj_call_filter_thread {
    sj_governed_process *governed; /* NULL without a budget */
    sj_unhooked_set *freed;        /* NULL: functions stay hooked */
    const sj_arena_view *view;
    uint64_t thread;
    const char *name; /* its content may change */
    uint64_t start_ticks;
    uint64_t stack_low;
    uint64_t stack_high; /* 0: unknown, so every address counts as the thread's own stack */
} sj_call_filter_thread;

/* Initializes a filter for `assembler` (borrowed). It keeps all calls. Change its state only
 * through the functions below. */
void sj_call_filter_init(sj_call_filter *filter, sj_assembler *assembler,
                         const sj_call_filter_thread *thread);

/* Makes the filter count calls for the budget from now on. */
void sj_call_filter_set_governed(sj_call_filter *filter, sj_governed_process *governed);

/* If `drops` is true, calls that begin from now on are only counted: the policy does not want
 * threads of this name. If false, calls that begin from now on are filtered again. */
void sj_call_filter_drop_all(sj_call_filter *filter, bool drops);

/* Announces that the next records contain a request of the program. */
void sj_call_filter_expect_request(sj_call_filter *filter);

/* Replaces the policy. The filter passes on the calls that are held back. Calls that are only
 * counted stay so until they end. The filter also tracks the calls that are open in the assembler.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_filter_set(sj_call_filter *filter,
                                           const sj_call_filter_rules *rules, uint64_t now_ticks);

/* Frees the filter's memory. */
void sj_call_filter_deinit(sj_call_filter *filter);

/* Filters records and feeds the kept ones to the assembler, like sj_assembler_feed. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_filter_feed(sj_call_filter *filter, const sj_record *records,
                                            size_t count, uint64_t now_ticks);

/* Reports to the triggers the open calls that have exceeded their limit, and the running turn of
 * the event loop if it has. Durations are measured up to the time of the previous call of this
 * function. All records written until `now_ticks` must have been fed. */
void sj_call_filter_watch(sj_call_filter *filter, uint64_t now_ticks);

/* Returns the number of open calls that are held back because they have not reached the policy's
 * minimum duration yet. */
size_t sj_call_filter_count_held(const sj_call_filter *filter);

/* Passes on the calls that are held back. Reports the functions that were unhooked since the last
 * record, because their calls stay open at the end. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_filter_end(sj_call_filter *filter, uint64_t now_ticks);

#endif
