/* The assembler: raw records of one thread in, blocks of its streams out.
 *
 * It gives each execution stack of the thread a stream, pairs exits with entries by function and
 * stack address, ends the activations that a throw, a longjmp or a coroutine's end skipped, numbers
 * calls and events (dropped ones included), keeps each open call's start and callee time, and cuts
 * blocks with their key-frames.
 *
 * Rules, for one stack, S(x) the stack address of record x:
 *   ENTER at S: open calls with stack <= S have ended (unwound); the new call opens.
 *   LEAVE f at S: open calls with stack < S have ended (unwound); the innermost remaining must be f
 *   with stack == S and returns; otherwise the exit is an orphan (counted).
 *   A LEAVE by a tail call leaves its call open if the next thing on its stack is an ENTER at S,
 *   which is then nested in it; it ends with that one: tail_calls.h.
 *   A call that a gap may have ended (call_trust.h) ends as truncated instead of unwound.
 *   A managed record (record.h) belongs to the thread's own stack and is matched by order:
 *   managed_calls.h.
 *   A record inside the thread's own stack belongs to its first stream; one outside belongs to the
 *   stream of the stack region it lies in: coroutines and alternate signal stacks (stack_map.h says
 *   how regions are distinguished, and how that can fail).
 * The order of the slots is the true order: a probe reads the clock, then reserves. A clock that
 * goes back (a handler between the two, a processor whose clock is behind) stands still.
 *
 * One assembler a thread; not thread-safe; no I/O. */
#ifndef SJ_AGENT_ASSEMBLER_ASSEMBLER_H
#define SJ_AGENT_ASSEMBLER_ASSEMBLER_H

#include "agent/abi/record.h"
#include "agent/policy/value_rules.h"
#include "proto/block/block.h"

typedef struct sj_assembler sj_assembler;

/* A call whose rules are to be judged, at its entry or its exit. */
typedef struct sj_assembled_call {
    uint32_t function;
    uint32_t caller; /* 0: none that is known; also below */
    uint32_t caller_of_caller;
    bool at_exit;
    uint64_t start_ticks;
    uint64_t now_ticks;
    const sj_block_value *values; /* of entry and exit, as far as they are there */
    size_t value_count;
} sj_assembled_call;

/* What the assembler passes to its owner. `block` is borrowed for the call. A stream is announced
 * before its first block. Returning other than SJ_OK makes the assembler count the block as a gap.
 * STACK blocks (see block.h) come before the block that refers to them. */
typedef struct sj_assembler_sink {
    void *context;
    /* number of a new stream: numbers are unique in the session */
    uint32_t (*open_stream)(void *context, uint64_t stack_address, bool own_stack,
                            uint64_t first_ticks);
    sj_status (*block)(void *context, const sj_block_header *header, sj_slice bytes);
    void (*mark)(void *context, uint32_t mark_index, bool end, uint64_t ticks);
    /* Which of the rules about values keep one; NULL: there are none to ask. */
    sj_rule_set (*value)(void *context, uint32_t function, const sj_block_value *value,
                         uint64_t ticks);
    /* Which of the rules with conditions on the whole call, of those known now (at the entry those
     * that are not late), a call meets. */
    sj_rule_set (*call)(void *context, const sj_assembled_call *call);
} sj_assembler_sink;

typedef struct sj_assembler_options {
    sj_session_id session;
    uint64_t stack_low; /* the thread's own stack, 0,0 when unknown */
    uint64_t stack_high;
    uint64_t start_ticks;      /* 64-bit clock at registration: extends the first 48-bit time */
    uint32_t block_events;     /* cut after so many; at most SJ_BLOCK_MAX_EVENTS; 0: 128 Ki */
    uint32_t clock_step;       /* ticks that the clock advances by, as far as is known; 0: 1 */
    uint32_t kept_step;        /* times are rounded down to multiples of it; 0: kept as they are */
    bool is_forked;            /* of the first thread of a forked process, read from its beginning:
                                  its stack has calls that the parent entered */
    bool has_untimed_exits;    /* exits may bear SJ_UNTIMED_EXIT; else it is part of an address */
    sj_block_encoder *encoder; /* borrowed, shared by assemblers of one drain thread */
    const sj_value_rules *value_rules; /* borrowed; what `value` of the sink answers about */
} sj_assembler_options;

SJ_MUST_CHECK sj_status sj_assembler_new(const sj_assembler_options *options,
                                         const sj_assembler_sink *sink, sj_assembler **assembler);
void sj_assembler_free(sj_assembler *assembler);

/* sj_assembler_feed takes records in slot order. `now_ticks` is the drain's own clock, not earlier
 * than any record's. SJ_ENOMEM only; everything odd in the records becomes data, not an error. */
SJ_MUST_CHECK sj_status sj_assembler_feed(sj_assembler *assembler, const sj_record *records,
                                          size_t count, uint64_t now_ticks);

/* sj_assembler_keep_steps sets the steps of the times that are still to come, as `clock_step` and
 * `kept_step` of the options. The clock does not go back: rounding to coarser steps gives the time
 * of the event before. */
void sj_assembler_keep_steps(sj_assembler *assembler, uint32_t clock_step, uint32_t kept_step);

/* sj_assembler_excuse has exits of managed calls without an entry be no orphans where
 * `may_lack_entry` says so of their function: its probes had recorded nothing for a time. */
void sj_assembler_excuse(sj_assembler *assembler,
                         bool (*may_lack_entry)(void *context, uint32_t function), void *context);

/* sj_assembler_lost notes that records are missing here (torn slots, drops without a note). */
SJ_MUST_CHECK sj_status sj_assembler_lost(sj_assembler *assembler, sj_gap_reason reason,
                                          uint64_t calls, uint64_t events, uint64_t now_ticks);

/* sj_assembler_has_open returns whether a call of a function that `is_one` names is open. */
bool sj_assembler_has_open(const sj_assembler *assembler,
                           bool (*is_one)(void *context, uint32_t function), void *context);

/* sj_assembler_visit_open visits the open calls of the thread's own stack, outermost first. */
void sj_assembler_visit_open(const sj_assembler *assembler,
                             void (*visit)(void *context, const sj_stack_frame *call),
                             void *context);

/* sj_assembler_preopen enters the calls that were open on the thread's own stack when recording
 * began, at `ticks`: their functions and stack addresses, outermost first. They are flagged
 * SJ_CALL_BEFORE_RECORDING. SJ_EINVAL: something was fed before. */
SJ_MUST_CHECK sj_status sj_assembler_preopen(sj_assembler *assembler, const sj_stack_frame *calls,
                                             size_t count, uint64_t ticks);

/* sj_assembler_flush cuts blocks of what is pending, for live views. */
SJ_MUST_CHECK sj_status sj_assembler_flush(sj_assembler *assembler, uint64_t now_ticks);

/* sj_assembler_set_rules puts a list of rules (borrowed) in the place of the one of the options,
 * which has the same rules at the same places, or of none. */
void sj_assembler_set_rules(sj_assembler *assembler, const sj_value_rules *rules);

/* sj_assembler_renew is for an owner whose sink takes blocks elsewhere from now on, after a flush:
 * stacks that were stored apart there are stored again. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_assembler_renew(sj_assembler *assembler);

/* sj_assembler_end cuts the last blocks: the thread, or its recording, ended at `now_ticks`. Open
 * calls of the thread's own stack end as unwound if `orderly` says that the thread left its stack
 * for good (pthread_exit). All other open calls are counted up to `now_ticks` and end as open
 * (SJ_ENDING_OPEN): their process ended by exit() or a signal, or they run on. `flags` are
 * sj_block_flag to set on the last blocks. */
SJ_MUST_CHECK sj_status sj_assembler_end(sj_assembler *assembler, uint64_t now_ticks, bool orderly,
                                         unsigned flags);

/* Nothing vanishes. After flush or end these hold exactly:
 *   records = calls - preopened + returned + jumped + thrown + overtaken + interrupted +
 *             inherited_exits + orphan_exits + notes + value_records + bad_records
 *   events + refused_events = calls + returned + landed + unwound + truncated + left_open
 *   events = sum of event_count over the CALLS blocks that the sink took
 * and in each stream, blocks taken in order: first_event + event_count + lost_events is the next
 * first_event; first_call + call_count + lost_calls the next first_call. */
typedef struct sj_assembler_counters {
    uint64_t records;       /* fed */
    uint64_t calls;         /* entries seen */
    uint64_t preopened;     /* among `calls`: open before recording, so without a record */
    uint64_t returned;      /* exits that ended their call */
    uint64_t jumped;        /* exits by a tail call */
    uint64_t landed;        /* calls with such an exit that have ended, in whatever way */
    uint64_t unwound;       /* calls ended by a throw or a longjmp */
    uint64_t thrown;        /* exits that say so: of calls of a runtime that an exception left */
    uint64_t longest_throw; /* most of those, managed ones, one after the other */
    uint64_t overtaken;     /* exits of calls that were among `unwound`: they went on in the runtime
                               that unwound the managed call below them */
    uint64_t interrupted; /* exits by an exception that hit a frame before it had told of its entry,
                             or after its exit, or that has no hooks; exits that are excused */
    uint64_t truncated;   /* the same as `unwound`, after a gap */
    uint64_t left_open;   /* ended by sj_assembler_end only */
    uint64_t inherited_exits; /* of calls that the parent had entered when it forked the process:
                                 nothing is missing */
    uint64_t orphan_exits;
    uint64_t notes;
    uint64_t value_records;
    uint64_t values; /* in blocks that the sink took */
    uint64_t refused_values;
    uint64_t lost_values; /* that found no room to wait for their call, or for its exit, of which
                             records are missing, or that types of their function do not know */
    uint64_t bad_records; /* no function, unknown kind or note */
    uint64_t lost_calls;  /* as reported by notes and sj_assembler_lost */
    uint64_t lost_events;
    uint64_t events; /* in CALLS blocks that the sink took */
    uint64_t refused_blocks;
    uint64_t refused_calls; /* and not taken since, as all events of refused blocks */
    uint64_t refused_events;
    uint64_t offered_kept_calls; /* refused ones that the block which is offered holds */
    /* events without a record in blocks that the sink was offered, less records without an event:
     * the exit by a tail call is an event of a later block, perhaps */
    int64_t offered_endings;
    uint64_t blocks; /* taken, STACK blocks included */
    uint64_t block_bytes;
    uint64_t streams;
} sj_assembler_counters;

void sj_assembler_get_counters(const sj_assembler *assembler, sj_assembler_counters *counters);

#endif
