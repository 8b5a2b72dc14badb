/* Call stack: the open calls of one execution stack, and the block that is being filled from it.
 * Internal to the assembler. Not thread-safe.
 *
 * A function that returns a status returns SJ_ENOMEM if out of memory, and no other error. */
#ifndef SJ_AGENT_ASSEMBLER_CALL_STACK_H
#define SJ_AGENT_ASSEMBLER_CALL_STACK_H

#include "agent/assembler/assembler.h"
#include "agent/assembler/call_costs.h"
#include "agent/assembler/late_values.h"
#include "agent/assembler/text_store.h"
#include "agent/assembler/time_steps.h"
#include "proto/block/call_trust.h"

/* A DEEP_FRAMES block that was delivered. Some of its frames may still be open. */
typedef struct sj_stored_frames {
    uint32_t number;
    uint32_t first; /* depth of its first frame */
    uint32_t end;   /* depth after its last frame */
} sj_stored_frames;

/* An exception left a managed call that had called this native one. The assembler ended both calls.
 * The native call's own exit may still arrive. */
typedef struct sj_overtaken_call {
    uint64_t stack;
    uint32_t function; /* 0: the call's own exit has arrived */
} sj_overtaken_call;

enum { SJ_OVERTAKEN_CALLS = 64 };

/* Data that all streams of a thread share. */
typedef struct sj_stream_context {
    sj_session_id session;
    sj_block_encoder *encoder;
    sj_assembler_sink sink;
    const sj_value_rules *value_rules; /* NULL: all values are stored, without a rule */
    uint32_t block_events;
    uint32_t clock_step;
    uint8_t *output; /* the encoder's output buffer */
    size_t output_capacity;
    bool (*may_lack_entry)(void *context, uint32_t function); /* NULL: false for all functions */
    void *entry_context;
    bool is_forked; /* see sj_assembler_options */
    /* lowest stack address of a call that the parent entered and that may still be open */
    uint64_t inherited_from;
    sj_assembler_counters counters;
} sj_stream_context;

typedef struct sj_call_stack {
    sj_stream_context *context;
    uint32_t number;
    bool own_stack;
    uint64_t base;       /* highest stack address seen */
    uint64_t lowest;     /* lowest stack address seen */
    uint64_t gap_serial; /* number of the thread's latest gap that this stream contains */
    uint64_t last_ticks; /* time of the stream's latest event or gap */
    sj_call_trust trust;
    uint32_t uncertain_before; /* trust.uncertain_depth before the latest gap of dropped records */

    sj_call_costs costs;
    sj_late_values late;
    sj_stack_frame *frames; /* open calls, outermost first */
    uint32_t depth;
    uint32_t frame_capacity;
    uint32_t stored_depth; /* number of outermost frames whose stored copies are up to date */
    sj_stored_frames *stored;
    uint32_t stored_count;
    uint32_t stored_capacity;
    uint32_t next_stack_block;

    /* Depth of the outermost call that an exception left while native calls that it made still run;
     * 0: none. That call may have ended since: see sj_managed_pending. */
    uint32_t thrown_depth;
    uint64_t thrown_call; /* index of the call that the latest exception left */
    /* The values of next_call and depth after the latest exit by an exception for which no native
     * call had to end first. thrown_run is the number of such exits in a row. */
    uint64_t thrown_next;
    uint32_t thrown_left;
    uint32_t thrown_run;

    /* Ring of the latest overtaken calls (sj_overtaken_call). */
    sj_overtaken_call overtaken[SJ_OVERTAKEN_CALLS];
    uint32_t overtaken_count;

    uint64_t next_event; /* number of the next event in the stream */
    uint64_t next_call;
    uint64_t returned_call; /* call index of the latest exit that ended a call */

    /* The block being filled: */
    sj_block_header header;
    /* the DEEP_FRAMES block that this block would refer to was refused, so this block cannot be
     * delivered */
    bool rootless;
    sj_stack_frame *key; /* key-frame */
    uint32_t key_capacity;
    sj_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    sj_block_ending *endings;
    uint32_t ending_count;
    uint32_t ending_capacity;
    /* number of `endings` with an exit record, plus late exits of overtaken calls */
    uint32_t thrown_count;
    uint32_t jumped_count;       /* number of exits by a tail call since the last cut */
    uint32_t ended_jumped_count; /* number of events that end calls which left by a tail call */
    uint32_t kept_events;        /* number of leading events that an earlier refusal counted */
    uint32_t kept_calls;         /* number of entries among these events */
    uint32_t kept_endings;
    sj_gap *gaps;
    uint32_t gap_count;
    uint32_t gap_capacity;
    sj_block_value *values;
    uint32_t value_count;
    uint32_t value_capacity;
    sj_text_store texts; /* texts of the values */
} sj_call_stack;

SJ_MUST_CHECK sj_status sj_call_stack_new(sj_stream_context *context, uint64_t stack_address,
                                          bool own_stack, uint64_t ticks, sj_call_stack **stream);
void sj_call_stack_free(sj_call_stack *stream);

/* Delivers the block being filled and starts the next one. Delivers no block if `flags` is 0 and
 * the block has no events and no losses. If the sink refuses the block, drops the calls that began
 * and ended in it, and fills it further (refused_block.h). If more than block_events / 2 events
 * would stay, or if the block cannot shrink, a gap in the next block replaces the block. */
SJ_MUST_CHECK sj_status sj_call_stack_cut(sj_call_stack *stream, uint64_t now_ticks,
                                          unsigned flags);

/* Adds a gap at the current point of the stream. Unless the thread only waited, first ends calls
 * that left by a tail call. May cut the block. */
SJ_MUST_CHECK sj_status sj_call_stack_gap(sj_call_stack *stream, const sj_gap *gap);

/* Undoes what the latest gap of dropped records did to the certainty of open calls: calls that were
 * certain before the gap are certain again. The caller has ended the calls that ended in the gap,
 * and entered the calls that began in it. All open calls count as open across the gap. Starts a new
 * block whose header has the new gap_depth and uncertain_depth. Does nothing if the block being
 * filled is empty. */
SJ_MUST_CHECK sj_status sj_call_stack_confirm_open(sj_call_stack *stream);

/* sj_call_stack_reserve_values cuts the block if it cannot hold `count` more values with
 * `text_bytes` of texts. Call it before the event that the values belong to. sj_call_stack_value
 * adds a value to the block, and truncates a text that does not fit. */
SJ_MUST_CHECK sj_status sj_call_stack_reserve_values(sj_call_stack *stream, size_t count,
                                                     size_t text_bytes);
SJ_MUST_CHECK sj_status sj_call_stack_value(sj_call_stack *stream, const sj_block_value *value);

/* Delivers the outer frames again, in new DEEP_FRAMES blocks, and begins the block being filled
 * anew: the sink has a new destination. Does nothing if that block has events, or if no outer
 * frames are stored. The gaps of that block must have no losses. */
SJ_MUST_CHECK sj_status sj_call_stack_restore_frames(sj_call_stack *stream);

/* Frees a large event array if the block being filled has no events. */
void sj_call_stack_trim(sj_call_stack *stream);

/* Makes space for one more event and one more frame. May cut the block. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_call_stack_grow(sj_call_stack *stream);
/* Ends the calls whose address is lower than `stack`, and those at `stack` if `inclusive`. Their
 * LEAVEs were not seen. */
SJ_MUST_CHECK sj_status sj_call_stack_unwind_to(sj_call_stack *stream, uint64_t stack,
                                                bool inclusive, uint64_t ticks);
/* sj_call_stack_end_unseen ends the innermost call, whose LEAVE was not seen. sj_call_stack_throw
 * ends the innermost call because its LEAVE reports an exception. Both also end the callers that
 * jumped to the call. */
SJ_MUST_CHECK sj_status sj_call_stack_end_unseen(sj_call_stack *stream, uint64_t ticks);
SJ_MUST_CHECK sj_status sj_call_stack_throw(sj_call_stack *stream, uint64_t ticks);
/* Ends all calls as still open (SJ_ENDING_OPEN). `ticks` is the end of the recording. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_call_stack_end_open(sj_call_stack *stream, uint64_t ticks);
/* Handles an exit that does not match the innermost call. If the innermost call is uncertain and at
 * the same address, ends that call. If the next call then matches, handles the exit as
 * sj_call_stack_leave does. Otherwise counts the exit as overtaken, inherited or orphan. An orphan
 * adds a gap. */
SJ_MUST_CHECK sj_status sj_call_stack_leave_unmatched(sj_call_stack *stream, uint32_t function,
                                                      uint64_t stack, uint64_t ticks, bool jumps);

/* True if the innermost frame belongs to a call that left by a tail call. Its callee has not been
 * entered yet, or has just ended. */
static inline bool sj_call_stack_has_jumped(const sj_call_stack *stream)
{
    return stream->depth > 0 && stream->frames[stream->depth - 1].jumped_ticks != 0;
}

/* If the innermost call has left by a tail call and no callee was entered, ends the call and its
 * chain: the callee is not recorded. Their end is the time of the tail call, or of the stream's
 * latest event if that is later. */
SJ_MUST_CHECK sj_status sj_call_stack_end_jumped(sj_call_stack *stream);

/* Ends the remaining calls of a tail-call chain whose innermost call has ended. */
SJ_MUST_CHECK sj_status sj_call_stack_end_chain(sj_call_stack *stream, uint64_t ticks,
                                                sj_ending ending);

/* The part of sj_call_stack_enter for a stack whose innermost call has an address of at most
 * `stack`, or has left by a tail call. */
SJ_MUST_CHECK sj_status sj_call_stack_enter_slow(sj_call_stack *stream, uint32_t function,
                                                 uint64_t stack, uint64_t ticks);

/* Limits of a run of records: the range of their stack, the latest possible time, and the time
 * steps. */
typedef struct sj_record_run {
    uint64_t stack_low;
    uint64_t stack_span;
    uint64_t now_ticks;
    sj_time_steps steps;
} sj_record_run;

/* Consumes the leading records that enter a callee of the innermost call, leave the innermost call,
 * or are its tail call. Consumes none if an open call is uncertain (call_trust.h). Returns their
 * number. Stops at any other record: the caller passes that record to the functions below. Updates
 * `*last_ticks`, the time of the thread's latest record. */
size_t sj_call_stack_feed_ordinary(sj_call_stack *stream, const sj_record_run *run,
                                   const sj_record *records, size_t count, uint64_t *last_ticks);

/* Returns the depth above which an exit changes neither the flags that gaps gave to open calls
 * (call_trust.h) nor `stored_depth`. */
static inline uint32_t sj_call_stack_ordinary_depth(const sj_call_stack *stream)
{
    const uint32_t stored = stream->stored_depth > 0 ? stream->stored_depth + 1 : 0;
    const uint32_t depth = sj_call_trust_flagged(&stream->trust);
    return stored > depth ? stored : depth;
}

static inline bool sj_call_stack_full(const sj_call_stack *stream)
{
    return stream->event_count == stream->event_capacity || stream->depth == stream->frame_capacity;
}

/* Opens a call. For `tail_call` see sj_event. */
SJ_MUST_CHECK static inline sj_status sj_call_stack_push(sj_call_stack *stream, uint32_t function,
                                                         uint64_t stack, uint64_t ticks,
                                                         uint32_t tail_call)
{
    if (sj_call_stack_full(stream)) {
        SJ_TRY(sj_call_stack_grow(stream));
    }
    stream->events[stream->event_count++] =
        (sj_event){.ticks = ticks, .function = function, .tail_call = tail_call};
    stream->frames[stream->depth++] =
        (sj_stack_frame){.call_index = stream->next_call++,
                         .start_ticks = ticks,
                         .stack = stack,
                         .function = function,
                         .flags = sj_call_trust_enter(&stream->trust)};
    stream->last_ticks = ticks;
    return SJ_OK;
}

/* Marks the call just opened: no clock was read at its entry. */
static inline void sj_call_stack_mark_untimed(sj_call_stack *stream)
{
    stream->events[stream->event_count - 1].tail_call |= SJ_EVENT_UNTIMED;
    stream->frames[stream->depth - 1].flags |= SJ_CALL_UNTIMED;
}

/* Marks the open call of `function` at `stack`: no clock will be read at its exit, which is the
 * next record. Does nothing if there is no such call. */
void sj_call_stack_mark_untimed_exit(sj_call_stack *stream, uint32_t function, uint64_t stack);

/* Ends the calls whose address is at most `stack`, then opens a call. If the innermost call, at the
 * same `stack`, left by a tail call, the new call is its callee: then only calls that
 * sj_tail_chain_keep does not keep end. */
SJ_MUST_CHECK static inline sj_status sj_call_stack_enter(sj_call_stack *stream, uint32_t function,
                                                          uint64_t stack, uint64_t ticks)
{
    return stream->depth > 0 && (stream->frames[stream->depth - 1].stack <= stack ||
                                 sj_call_stack_has_jumped(stream))
               ? sj_call_stack_enter_slow(stream, function, stack, ticks)
               : sj_call_stack_push(stream, function, stack, ticks, 0);
}

/* Ends the innermost call and writes a LEAVE event. The block must have space for one more
 * event. */
static inline void sj_call_stack_pop(sj_call_stack *stream, uint64_t ticks)
{
    const sj_stack_frame *frame = &stream->frames[--stream->depth];
    const uint32_t depth = stream->depth;
    stream->events[stream->event_count++] = (sj_event){.ticks = ticks};
    stream->last_ticks = ticks;
    if (depth > 0) {
        stream->frames[depth - 1].child_ticks += ticks - frame->start_ticks;
    }
    if (depth <= stream->stored_depth) {
        /* the callee time of the caller changed: its stored copy is out of date */
        stream->stored_depth = depth > 0 ? depth - 1 : 0;
    }
    sj_call_trust_leave(&stream->trust, depth);
}

/* Handles the exit of `function` at `stack`. First ends calls that left by a tail call, then the
 * calls whose address is lower than `stack`. If the innermost call is now this one, ends it, or
 * marks it as left by a tail call if `jumps`. Otherwise sj_call_stack_leave_unmatched handles the
 * exit. */
SJ_MUST_CHECK static inline sj_status sj_call_stack_leave(sj_call_stack *stream, uint32_t function,
                                                          uint64_t stack, uint64_t ticks,
                                                          bool jumps)
{
    SJ_TRY(sj_call_stack_end_jumped(stream));
    if (stream->depth > 0 && stream->frames[stream->depth - 1].stack < stack) {
        SJ_TRY(sj_call_stack_unwind_to(stream, stack, false, ticks));
    }
    if (stream->depth == 0 || stream->frames[stream->depth - 1].stack != stack ||
        stream->frames[stream->depth - 1].function != function) {
        return sj_call_stack_leave_unmatched(stream, function, stack, ticks, jumps);
    }
    stream->returned_call = stream->frames[stream->depth - 1].call_index;
    if (jumps) {
        stream->context->counters.jumped++;
        stream->jumped_count++;
        stream->frames[stream->depth - 1].jumped_ticks = ticks > 0 ? ticks : 1;
        return SJ_OK;
    }
    if (sj_call_stack_full(stream)) {
        SJ_TRY(sj_call_stack_grow(stream));
    }
    stream->context->counters.returned++;
    sj_call_stack_pop(stream, ticks);
    return sj_call_stack_has_jumped(stream)
               ? sj_call_stack_end_chain(stream, ticks, SJ_ENDING_RETURNED)
               : SJ_OK;
}

#endif
