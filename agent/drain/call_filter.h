/* The filter: what stands between the records of a thread and its assembler. It counts calls for
 * the overhead budget, reports unhooked functions to the assembler, keeps out what the policy
 * counts only, and feeds the triggers. One a thread; the drain's thread only.
 *
 * Calls on stacks other than the thread's own (coroutines, signal stacks) are not filtered: they
 * are all kept. */
#ifndef SJ_AGENT_DRAIN_CALL_FILTER_H
#define SJ_AGENT_DRAIN_CALL_FILTER_H

#include "agent/assembler/assembler.h"
#include "agent/drain/arena_view.h"
#include "agent/drain/filter_values.h"
#include "agent/modes/overhead_governor.h"
#include "agent/modes/triggers.h"
#include "agent/registry/function_rules.h"

/* A call that is open, as far as the filter knows. */
typedef struct sj_filtered_call sj_filtered_call;

/* A thread that was stopped in a probe goes on with it when signal handlers have returned: how many
 * records these may make. */
enum { SJ_CALL_FILTER_LATE_RECORDS = 4096 };

typedef struct sj_call_filter {
    sj_assembler *assembler;
    sj_governed_process *governed; /* NULL: no budget */
    sj_unhooked_set *freed;        /* of the process; NULL: functions stay hooked */
    uint32_t seen_changes;         /* of `freed` */
    uint32_t late_records;         /* so many may still bring an entry that a change overtook */
    /* what the policy asks of calls; all NULL or 0: nothing */
    const sj_policy *policy;
    sj_function_rules *rules;
    sj_triggers *triggers;
    const sj_arena_view *view; /* where marks have their names; borrowed, with triggers */
    uint64_t minimum_ticks;
    uint64_t thread;
    const char *thread_name; /* borrowed; follows the thread's */
    uint64_t stack_low;      /* the thread's own */
    uint64_t stack_high;
    bool is_needed;     /* the policy asks something of calls, or an earlier one did */
    bool is_finishing;  /* only an earlier one did: until what it counts has ended */
    bool has_request;   /* a request of the program is among the records */
    uint64_t now_ticks; /* of the records being fed */
    bool keeps_nothing; /* its name is not wanted: calls are counted only */
    /* state */
    bool paused;
    bool failed;            /* no memory */
    uint64_t last_tick;     /* of frames */
    uint64_t woke;          /* when the thread last came from waiting for events; 0: it waits */
    uint32_t judged;        /* triggers that have heard of this turn of its event loop */
    uint64_t watched_ticks; /* of the last sj_call_filter_watch */
    sj_filtered_call *calls;
    uint32_t depth;
    uint32_t held_from; /* calls from here on are not passed on yet */
    size_t capacity;
    sj_filter_values values;
    sj_record *output;
    size_t output_count;
    size_t output_capacity;
} sj_call_filter;

/* What a policy asks of the calls of one thread. */
typedef struct sj_call_filter_rules {
    const sj_policy *policy;
    sj_function_rules *rules;
    sj_triggers *triggers;
    uint64_t minimum_ticks;
    bool keeps_nothing;
} sj_call_filter_rules;

/* The thread that a filter is for. Everything is borrowed and outlives the filter. */
typedef struct sj_call_filter_thread {
    sj_governed_process *governed; /* NULL: no budget */
    sj_unhooked_set *freed;        /* NULL: functions stay hooked */
    const sj_arena_view *view;
    uint64_t thread;
    const char *name; /* may change */
    uint64_t start_ticks;
    uint64_t stack_low;
    uint64_t stack_high; /* 0: not known: every address is on the thread's own stack */
} sj_call_filter_thread;

/* sj_call_filter_init begins a filter in front of `assembler` (borrowed) that passes everything.
 * Its state changes through the functions below only. */
void sj_call_filter_init(sj_call_filter *filter, sj_assembler *assembler,
                         const sj_call_filter_thread *thread);

/* sj_call_filter_set_governed makes the filter count calls for the budget from now on. */
void sj_call_filter_set_governed(sj_call_filter *filter, sj_governed_process *governed);

/* sj_call_filter_drop_all: calls that begin from now on are counted only, as those of a thread
 * whose name the policy does not want; or not. */
void sj_call_filter_drop_all(sj_call_filter *filter, bool drops);

/* sj_call_filter_expect_request says that the next records contain a request of the program. */
void sj_call_filter_expect_request(sj_call_filter *filter);

/* sj_call_filter_set puts the policy in the place of the one before, if any: calls that are held
 * back are passed on, those that are only counted stay so to their end, those that the assembler
 * has open are taken over. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_filter_set(sj_call_filter *filter,
                                           const sj_call_filter_rules *rules, uint64_t now_ticks);

/* sj_call_filter_deinit frees what the filter holds. */
void sj_call_filter_deinit(sj_call_filter *filter);

/* sj_call_filter_feed is sj_assembler_feed, through the filter. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_filter_feed(sj_call_filter *filter, const sj_record *records,
                                            size_t count, uint64_t now_ticks);

/* sj_call_filter_watch tells the triggers of calls, and of a turn of the event loop, that are open
 * and were so for longer than they may be when it was called before. All records that were written
 * by `now_ticks` have been fed. */
void sj_call_filter_watch(sj_call_filter *filter, uint64_t now_ticks);

/* sj_call_filter_count_held is how many open calls are held back: they may yet last for the least
 * duration that the policy keeps. */
size_t sj_call_filter_count_held(const sj_call_filter *filter);

/* sj_call_filter_end passes on calls that are held back, and reports functions that were
 * unhooked since the last record: the calls are open at the end. */
SJ_MUST_CHECK sj_status sj_call_filter_end(sj_call_filter *filter, uint64_t now_ticks);

#endif
