/* The sifter: what stands between the records of a thread and its assembler. It counts calls for
 * the overhead budget, tells the assembler when functions were set free, keeps out what the policy
 * counts only, and tells the triggers what they wait for. One a thread; the drain's thread only.
 *
 * Calls on stacks other than the thread's own (coroutines, signal stacks) are not sifted: they are
 * all kept. */
#ifndef SJ_AGENT_CONTROL_SIFTER_H
#define SJ_AGENT_CONTROL_SIFTER_H

#include "agent/control/arena_view.h"
#include "agent/control/governor.h"
#include "agent/control/rules.h"
#include "agent/control/triggers.h"
#include "agent/uplink/assembler.h"

/* A call that is open, as far as the sifter knows. */
typedef struct sj_sifted_call sj_sifted_call;

/* A thread that was stopped in a probe goes on with it when signal handlers have returned: how many
 * records these may make. */
enum { SJ_SIFTER_LATE_RECORDS = 4096 };

typedef struct sj_sifter {
    sj_assembler *assembler;
    sj_governed *governed; /* NULL: no budget */
    sj_freed *freed;       /* of the process; NULL: functions stay hooked */
    uint32_t seen_changes; /* of `freed` */
    uint32_t late_records; /* so many may still bring an entry that a change overtook */
    /* what the policy asks of calls; all NULL or 0: nothing */
    const sj_policy *policy;
    sj_rules *rules;
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
    bool failed;        /* no memory */
    uint64_t last_tick; /* of frames */
    uint64_t woke;      /* when the thread last came from waiting for events; 0: it waits */
    sj_sifted_call *calls;
    uint32_t depth;
    uint32_t held_from; /* calls from here on are not told yet */
    uint32_t capacity;
    sj_record *output;
    size_t output_count;
    size_t output_capacity;
} sj_sifter;

/* What a policy asks of the calls of one thread. */
typedef struct sj_sifter_rules {
    const sj_policy *policy;
    sj_rules *rules;
    sj_triggers *triggers;
    uint64_t minimum_ticks;
    bool keeps_nothing;
} sj_sifter_rules;

/* sj_sifter_set puts the policy in the place of the one before, if any: calls that are held back
 * are told, those that are counted only stay so to their end, those that the assembler has open are
 * taken over. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_sifter_set(sj_sifter *sifter, const sj_sifter_rules *rules,
                                      uint64_t now_ticks);

/* sj_sifter_deinit frees what the sifter holds. */
void sj_sifter_deinit(sj_sifter *sifter);

/* sj_sifter_feed is sj_assembler_feed, behind the sieve. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_sifter_feed(sj_sifter *sifter, const sj_record *records, size_t count,
                                       uint64_t now_ticks);

/* sj_sifter_end tells the assembler of calls that are held back, and of functions that were set
 * free since the last record: the calls are open at the end. */
SJ_MUST_CHECK sj_status sj_sifter_end(sj_sifter *sifter, uint64_t now_ticks);

#endif
