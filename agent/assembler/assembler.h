/* Assembler: reads the raw records of one thread and writes blocks of its streams.
 *
 * Each execution stack of the thread has a stream of its own. The assembler pairs each exit with
 * the entry of the same function and stack address. It ends calls that have no exit record because
 * of a throw, a longjmp or the end of a coroutine. It numbers calls and events, dropped ones
 * included, and keeps each open call's start time and the time of its callees. It cuts the stream
 * into blocks. Each block begins with a key-frame: the list of the calls that are open at its
 * start.
 *
 * Rules for one stack; S(x) is the stack address of record x:
 *   ENTER at S: open calls with a stack address <= S have ended (unwound); a new call opens.
 *   LEAVE of f at S: open calls with a stack address < S have ended (unwound). The innermost
 *     remaining call must be of f at S, and returns. Otherwise the exit is an orphan (counted).
 *   LEAVE by a tail call: the call stays open if the next record of its stack is an ENTER at S.
 *     The entered call is nested in it, and both end together: tail_calls.h.
 *   A call that a gap may have ended (call_trust.h) ends as truncated instead of unwound.
 *   A managed record (record.h) belongs to the thread's own stack and is matched by order:
 *     managed_calls.h.
 *   A record inside the thread's own stack belongs to the thread's first stream. Any other record
 *     belongs to the stream of its stack region: coroutines and alternate signal stacks.
 *     stack_map.h says how regions are distinguished, and how that can fail.
 *
 * The order of the records in the buffer counts, not that of their times. A probe reads the clock
 * before it reserves its slot, so a signal handler may record calls between the two. If a record
 * has an earlier time than the record before it, the assembler uses the time of the record before.
 * That happens after such a handler, or on a processor whose clock is behind.
 *
 * Each thread has one assembler. Not thread-safe; does no I/O. */
#ifndef SJ_AGENT_ASSEMBLER_ASSEMBLER_H
#define SJ_AGENT_ASSEMBLER_ASSEMBLER_H

#include "agent/abi/alternate_stack.h"
#include "agent/abi/record.h"
#include "agent/policy/value_rules.h"
#include "proto/block/block.h"

typedef struct sj_assembler sj_assembler;

/* A call for which the owner evaluates rules, at its entry or its exit. */
typedef struct sj_assembled_call {
    uint32_t function;
    uint32_t caller; /* 0: not known */
    uint32_t caller_of_caller;
    bool at_exit;
    uint64_t start_ticks;
    uint64_t now_ticks;
    const sj_block_value *values; /* of entry and exit, as far as they have arrived */
    size_t value_count;
} sj_assembled_call;

/* The callbacks by which the assembler delivers to its owner. The block's bytes are borrowed for
 * the duration of the call. A stream is announced before its first block. If `block` returns
 * another status than SJ_OK, the assembler counts the block as a gap. A DEEP_FRAMES block (block.h)
 * comes before the blocks that refer to it. */
typedef struct sj_assembler_sink {
    void *context;
    /* Announces a stream. Returns its number, which must be unique in the session. */
    uint32_t (*open_stream)(void *context, uint64_t stack_address, bool own_stack,
                            uint64_t first_ticks);
    sj_status (*block)(void *context, const sj_block_header *header, sj_slice bytes);
    void (*mark)(void *context, uint32_t mark_index, bool end, uint64_t ticks);
    /* Returns the rules about single values that keep this value. NULL: there are no rules about
     * single values. */
    sj_rule_set (*value)(void *context, uint32_t function, const sj_block_value *value,
                         uint64_t ticks);
    /* Returns the rules about whole calls that the call meets. At an entry, rules that need the
     * exit are not evaluated. */
    sj_rule_set (*call)(void *context, const sj_assembled_call *call);
} sj_assembler_sink;

typedef struct sj_assembler_options {
    sj_session_id session;
    uint64_t stack_low; /* bounds of the thread's own stack; 0, 0: unknown */
    uint64_t stack_high;
    uint64_t start_ticks; /* 64-bit clock at registration; earlier times are raised to it */
    /* the assembler cuts a block after this many events; at most SJ_BLOCK_MAX_EVENTS; 0 means 128
     * Ki */
    uint32_t block_events;
    uint32_t clock_step; /* resolution of the clock in ticks; 0: unknown, treated as 1 */
    /* times are rounded down to multiples of this many ticks; 0: every tick is kept */
    uint32_t kept_step;
    /* True for the first thread of a forked process, if it is read from its beginning. The thread's
     * stack then holds calls that the parent entered. */
    bool is_forked;
    /* True if exits can carry SJ_UNTIMED_EXIT. False: that bit is part of the stack address. */
    bool has_untimed_exits;
    sj_block_encoder *encoder;         /* borrowed; shared by the assemblers of one drain thread */
    const sj_value_rules *value_rules; /* borrowed; the rules that the sink's `value` evaluates */
} sj_assembler_options;

/* Creates an assembler without open calls. Copies the options and the sink. Returns SJ_EINVAL if an
 * option is out of range, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_assembler_new(const sj_assembler_options *options,
                                         const sj_assembler_sink *sink, sj_assembler **assembler);
void sj_assembler_free(sj_assembler *assembler);

/* Feeds records in the order of the buffer. `now_ticks` is the drain's own clock, not earlier than
 * the time of any record. The only error is SJ_ENOMEM: malformed records are counted. */
SJ_MUST_CHECK sj_status sj_assembler_feed(sj_assembler *assembler, const sj_record *records,
                                          size_t count, uint64_t now_ticks);

/* Sets the steps of all later times; see `clock_step` and `kept_step` of the options. If rounding
 * by coarser steps would put an event before the previous event, it gets the previous event's time.
 */
void sj_assembler_set_steps(sj_assembler *assembler, uint32_t clock_step, uint32_t kept_step);

/* Sets a predicate for functions whose probes recorded nothing for a time. An exit of a managed
 * call without an entry is not counted as an orphan if `may_lack_entry` returns true for its
 * function. */
void sj_assembler_set_optional_entries(sj_assembler *assembler,
                                       bool (*may_lack_entry)(void *context, uint32_t function),
                                       void *context);

/* Reports that records are missing at this point: slots that were reserved but never written, or
 * drops without a note. The gap ends at the next record or cut; `now_ticks` is not used. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_assembler_add_loss(sj_assembler *assembler, sj_gap_reason reason,
                                              uint64_t calls, uint64_t events, uint64_t now_ticks);

/* True if any open call is of a function for which `is_one` returns true. Calls that have left by a
 * tail call do not count. */
bool sj_assembler_has_open(const sj_assembler *assembler,
                           bool (*is_one)(void *context, uint32_t function), void *context);

/* Returns the alternate stack inside the thread's own stack that a signal handler runs on. Its span
 * is 0 if there is none. */
sj_alternate_stack sj_assembler_get_alternate(const sj_assembler *assembler);

/* Calls `visit` for each open call of the thread's own stack, outermost first. */
void sj_assembler_visit_open(const sj_assembler *assembler,
                             void (*visit)(void *context, const sj_stack_frame *call),
                             void *context);

/* Enters the calls that were open on the thread's own stack when recording began at `ticks`,
 * outermost first. The blocks flag them SJ_CALL_BEFORE_RECORDING. Returns SJ_EINVAL if records were
 * fed before. */
SJ_MUST_CHECK sj_status sj_assembler_preopen(sj_assembler *assembler, const sj_stack_frame *calls,
                                             size_t count, uint64_t ticks);

/* Cuts the pending events of all streams into blocks, so that live views show them. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_assembler_flush(sj_assembler *assembler, uint64_t now_ticks);

/* Replaces the list of rules (borrowed). The new list has the same rules at the same indexes, or is
 * empty. */
void sj_assembler_set_rules(sj_assembler *assembler, const sj_value_rules *rules);

/* Delivers the outer frames of all streams again, in new DEEP_FRAMES blocks. The owner calls it
 * after a flush, if the sink delivers to another place from now on. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_assembler_restore_frames(sj_assembler *assembler);

/* Ends all streams at `now_ticks`, because the thread or its recording ended, and cuts the last
 * blocks. If `orderly`, the thread left its own stack for good (pthread_exit), so its open calls
 * end as unwound. All other open calls end as open (SJ_ENDING_OPEN): their process ended by exit()
 * or a signal, or they run on. `flags` are sj_block_flag bits for the last blocks. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_assembler_end(sj_assembler *assembler, uint64_t now_ticks, bool orderly,
                                         unsigned flags);

/* After a flush or sj_assembler_end these equations hold exactly:
 *   records = calls - preopened + returned + jumped + thrown + overtaken + interrupted +
 *             inherited_exits + orphan_exits + notes + value_records + bad_records
 *   events + refused_events = calls + returned + ended_jumped + unwound + truncated + left_open
 *   events = sum of event_count over the CALLS blocks that the sink accepted
 *
 * In each stream, over the accepted blocks in order, first_event + event_count + lost_events is the
 * first_event of the next block. first_call + call_count + lost_calls is the next first_call.
 */
typedef struct sj_assembler_counters {
    uint64_t records;
    uint64_t calls; /* entries seen, and calls of sj_assembler_preopen */
    /* among `calls`: calls that were open before the recording, so without a record */
    uint64_t preopened;
    uint64_t returned; /* exits that ended their call */
    uint64_t jumped;   /* exits by a tail call */
    /* calls that left by a tail call and whose last event was written, however they ended */
    uint64_t ended_jumped;
    uint64_t unwound; /* calls that a throw or a longjmp ended */
    uint64_t thrown;  /* exits that report that an exception left a managed call */
    /* largest number of consecutive managed exits that one exception caused */
    uint64_t longest_throw;
    /* Exits of native calls that were counted as `unwound` already: the assembler ended them
     * together with their managed caller, but they returned to the runtime later. */
    uint64_t overtaken;
    /* Exits by an exception from a frame without an open call: its entry was not recorded yet, its
     * exit was recorded before, or it has no hooks. Also exits for which `may_lack_entry` returns
     * true. */
    uint64_t interrupted;
    uint64_t truncated; /* calls that ended unseen after a gap */
    uint64_t left_open; /* calls that only sj_assembler_end ended */
    /* Exits of calls that the parent entered before it forked this process. No record is missing
     * for them. */
    uint64_t inherited_exits;
    /* Exits without a recorded entry, also if the entry was lost. Not part of lost_events: each is
     * an event of a gap of its own (SJ_GAP_ORPHAN). */
    uint64_t orphan_exits;
    uint64_t notes;
    uint64_t value_records;
    uint64_t values; /* values in blocks that the sink accepted */
    uint64_t refused_values;
    /* Values that found no capacity while they waited for their call or its exit. Values whose text
     * is incomplete. Values that the types of their function do not describe. */
    uint64_t lost_values;
    /* records without a function, of an unknown kind, or with an unknown note */
    uint64_t bad_records;
    uint64_t lost_calls; /* as notes and sj_assembler_add_loss report */
    uint64_t lost_events;
    uint64_t events; /* in CALLS blocks that the sink accepted */
    uint64_t refused_blocks;
    uint64_t refused_calls; /* calls of refused blocks that no later block delivered */
    uint64_t refused_events;
    /* calls that were counted as refused and that the block being offered contains */
    uint64_t offered_kept_calls;
    /* For the blocks offered to the sink: the number of events without a record, minus the number
     * of records without an event. An exit by a tail call has a record, but its event may be in a
     * later block. */
    int64_t offered_endings;
    uint64_t blocks; /* blocks that the sink accepted, DEEP_FRAMES blocks included */
    uint64_t block_bytes;
    uint64_t streams;
} sj_assembler_counters;

void sj_assembler_get_counters(const sj_assembler *assembler, sj_assembler_counters *counters);

#endif
