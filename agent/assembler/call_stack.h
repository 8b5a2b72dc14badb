/* Open stack: one execution stack's open calls and the block that is being filled from it.
 * The inner half of the assembler; one thread at a time. */
#ifndef SJ_AGENT_ASSEMBLER_CALL_STACK_H
#define SJ_AGENT_ASSEMBLER_CALL_STACK_H

#include "agent/assembler/assembler.h"
#include "agent/assembler/call_costs.h"
#include "agent/assembler/late_values.h"
#include "agent/assembler/text_store.h"
#include "agent/assembler/time_steps.h"
#include "proto/block/call_trust.h"

/* A STACK block that was delivered and whose frames may still be open. */
typedef struct sj_stored_frames {
    uint32_t number;
    uint32_t first; /* depth of its first frame */
    uint32_t end;   /* depth after its last */
} sj_stored_frames;

/* A native call that ended with a managed one below it, which an exception had left. */
typedef struct sj_overtaken_call {
    uint64_t stack;
    uint32_t function; /* 0: its exit has come */
} sj_overtaken_call;

enum { SJ_OVERTAKEN_CALLS = 64 };

/* What the streams of a thread share. */
typedef struct sj_stream_context {
    sj_session_id session;
    sj_block_encoder *encoder;
    sj_assembler_sink sink;
    const sj_value_rules *value_rules; /* NULL: values are kept as they are */
    uint32_t block_events;
    uint32_t clock_step;
    uint8_t *output; /* of the encoder */
    size_t output_capacity;
    bool (*may_lack_entry)(void *context, uint32_t function); /* NULL: none does */
    void *entry_context;
    bool is_forked;          /* see sj_assembler_options */
    uint64_t inherited_from; /* no call of the parent's that is still open is below this stack */
    sj_assembler_counters counters;
} sj_stream_context;

typedef struct sj_call_stack {
    sj_stream_context *context;
    uint32_t number;
    bool own_stack;
    uint64_t base;       /* highest stack address seen */
    uint64_t lowest;     /* lowest */
    uint64_t gap_serial; /* of the thread's gaps, the last one noted here */
    uint64_t last_ticks; /* of its last event or gap */
    sj_call_trust trust;
    uint32_t uncertain_before; /* trust.uncertain_depth before the last gap of dropped records */

    sj_call_costs costs;
    sj_late_values late;
    sj_stack_frame *frames; /* open calls, outermost first */
    uint32_t depth;
    uint32_t frame_capacity;
    uint32_t stored_depth; /* so many outermost frames are as in `stored` */
    sj_stored_frames *stored;
    uint32_t stored_count;
    uint32_t stored_capacity;
    uint32_t next_stack_block;

    /* The outermost call that an exception has left while native calls above it go on; 0: none.
     * They may have ended together since (sj_managed_pending). */
    uint32_t thrown_depth;
    uint64_t thrown_call; /* that of the last exit that says that an exception left it */
    uint64_t thrown_next; /* the next call, and */
    uint32_t thrown_left; /* the depth, behind that exit */
    uint32_t thrown_run;  /* managed calls that exceptions left one after the other until then */

    /* The last native calls that ended so although they went on, a ring: their own exits still
     * come.
     */
    sj_overtaken_call overtaken[SJ_OVERTAKEN_CALLS];
    uint32_t overtaken_count;

    uint64_t next_event; /* numbers */
    uint64_t next_call;
    uint64_t returned_call; /* that of the last exit that ended one */

    /* the block being filled */
    sj_block_header header;
    bool rootless;       /* its STACK block could not be delivered, so it cannot be either */
    sj_stack_frame *key; /* key-frame */
    uint32_t key_capacity;
    sj_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    sj_block_ending *endings;
    uint32_t ending_count;
    uint32_t ending_capacity;
    uint32_t thrown_count; /* among the endings: with a record of their own */
    uint32_t jumped_count; /* exits by a tail call, whose events are still to come */
    uint32_t landed_count; /* such events */
    uint32_t kept_events;  /* the first ones, which earlier refusals left: counted as refused */
    uint32_t kept_calls;   /* entries among them */
    uint32_t kept_endings;
    sj_gap *gaps;
    uint32_t gap_count;
    uint32_t gap_capacity;
    sj_block_value *values;
    uint32_t value_count;
    uint32_t value_capacity;
    sj_text_store texts; /* of the values */
} sj_call_stack;

SJ_MUST_CHECK sj_status sj_call_stack_new(sj_stream_context *context, uint64_t stack_address,
                                          bool own_stack, uint64_t ticks, sj_call_stack **stream);
void sj_call_stack_free(sj_call_stack *stream);

/* sj_call_stack_cut delivers the block being filled and begins the next. Without `flags`, nothing
 * is done while the block has nothing to report. A block that is refused is filled on with at most
 * half of its events left (refused_block.h). */
SJ_MUST_CHECK sj_status sj_call_stack_cut(sj_call_stack *stream, uint64_t now_ticks,
                                          unsigned flags);

/* sj_call_stack_gap notes that something is missing here. */
SJ_MUST_CHECK sj_status sj_call_stack_gap(sj_call_stack *stream, const sj_gap *gap);

/* sj_call_stack_know notes that the open calls are complete in spite of the last gap: those that it
 * ended have ended, and those that began in it have been entered, late. They count as open across
 * the gap. Begins a block, whose header says so. */
SJ_MUST_CHECK sj_status sj_call_stack_know(sj_call_stack *stream);

/* sj_call_stack_make_value_room cuts the block when it has no room for so many values with so many
 * bytes of texts; before the event that they belong to. sj_call_stack_value adds a value, of the
 * call that was entered or left last; a text that has no room in the block is cut. */
SJ_MUST_CHECK sj_status sj_call_stack_make_value_room(sj_call_stack *stream, size_t count,
                                                      size_t text_bytes);
SJ_MUST_CHECK sj_status sj_call_stack_value(sj_call_stack *stream, const sj_block_value *value);

/* sj_call_stack_renew stores again what is stored apart, for another sink; nothing may be pending
 * but gaps without losses. */
SJ_MUST_CHECK sj_status sj_call_stack_renew(sj_call_stack *stream);

/* sj_call_stack_trim gives back the event array of a stream that has nothing pending. */
void sj_call_stack_trim(sj_call_stack *stream);

/* The slow halves of the functions below. */
SJ_MUST_CHECK sj_status sj_call_stack_grow(sj_call_stack *stream);
SJ_MUST_CHECK sj_status sj_call_stack_skip(sj_call_stack *stream, uint64_t stack, bool inclusive,
                                           uint64_t ticks);
/* sj_call_stack_end_unseen ends the innermost call, whose LEAVE was not seen; sj_call_stack_throw
 * one whose LEAVE says that an exception ended it. */
SJ_MUST_CHECK sj_status sj_call_stack_end_unseen(sj_call_stack *stream, uint64_t ticks);
SJ_MUST_CHECK sj_status sj_call_stack_throw(sj_call_stack *stream, uint64_t ticks);
/* sj_call_stack_end_open ends all calls, which are still open, at `ticks`, the end of what is
 * recorded: their endings say so (SJ_ENDING_OPEN). SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_stack_end_open(sj_call_stack *stream, uint64_t ticks);
SJ_MUST_CHECK sj_status sj_call_stack_orphan(sj_call_stack *stream, uint32_t function,
                                             uint64_t stack, uint64_t ticks, bool jumps);

/* The innermost call has jumped, and what it jumped to has not been entered (yet). */
static inline bool sj_call_stack_has_jumped(const sj_call_stack *stream)
{
    return stream->depth > 0 && stream->frames[stream->depth - 1].left_ticks != 0;
}

/* sj_call_stack_land ends such a call, as what it jumped to is not known: it ended when it jumped.
 * Does nothing when there is none. */
SJ_MUST_CHECK sj_status sj_call_stack_land(sj_call_stack *stream);

/* sj_call_stack_end_chain ends what is left of a chain whose innermost call has ended. */
SJ_MUST_CHECK sj_status sj_call_stack_end_chain(sj_call_stack *stream, uint64_t ticks,
                                                sj_ending ending);

/* sj_call_stack_enter_odd is sj_call_stack_enter where calls have ended before or jump there. */
SJ_MUST_CHECK sj_status sj_call_stack_enter_odd(sj_call_stack *stream, uint32_t function,
                                                uint64_t stack, uint64_t ticks);

/* Bounds of a run of records: those of the stack that the stream is of, a time that none of the
 * records is later than, and the steps in which their times are kept. */
typedef struct sj_record_run {
    uint64_t stack_low;
    uint64_t stack_span;
    uint64_t now_ticks;
    sj_time_steps steps;
} sj_record_run;

/* sj_call_stack_take takes records as long as they are ordinary entries and exits, and returns how
 * many it took; the next one, if any, needs the functions below. `*last_ticks` is the time of the
 * thread's last record, kept up to date. */
size_t sj_call_stack_take(sj_call_stack *stream, const sj_record_run *run, const sj_record *records,
                          size_t count, uint64_t *last_ticks);

/* sj_call_stack_ordinary_depth: leaving calls deeper than this changes nothing of what gaps or
 * stored frames say. */
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

/* sj_call_stack_push opens a call; `tail_call`: see sj_event. */
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

/* sj_call_stack_mark_untimed: no clock was read at the entry of the call that was just opened. */
static inline void sj_call_stack_mark_untimed(sj_call_stack *stream)
{
    stream->events[stream->event_count - 1].tail_call |= SJ_EVENT_UNTIMED;
    stream->frames[stream->depth - 1].flags |= SJ_CALL_UNTIMED;
}

/* sj_call_stack_mark_untimed_exit: no clock is read at the exit, to come next, of the open call of
 * this function at `stack`. Does nothing when there is none. */
void sj_call_stack_mark_untimed_exit(sj_call_stack *stream, uint32_t function, uint64_t stack);

/* sj_call_stack_enter: calls at or below `stack` have ended, but for one at `stack` that has jumped
 * here; a new one opens. */
SJ_MUST_CHECK static inline sj_status sj_call_stack_enter(sj_call_stack *stream, uint32_t function,
                                                          uint64_t stack, uint64_t ticks)
{
    return stream->depth > 0 && (stream->frames[stream->depth - 1].stack <= stack ||
                                 sj_call_stack_has_jumped(stream))
               ? sj_call_stack_enter_odd(stream, function, stack, ticks)
               : sj_call_stack_push(stream, function, stack, ticks, 0);
}

/* Ends the innermost call by its LEAVE; the block has room for one more event. */
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
        stream->stored_depth = depth > 0 ? depth - 1 : 0; /* the caller's callee time changed */
    }
    sj_call_trust_leave(&stream->trust, depth);
}

/* sj_call_stack_leave: calls below `stack` have ended; the innermost left returns, or `jumps`, when
 * it is this one, else the exit is an orphan. */
SJ_MUST_CHECK static inline sj_status sj_call_stack_leave(sj_call_stack *stream, uint32_t function,
                                                          uint64_t stack, uint64_t ticks,
                                                          bool jumps)
{
    SJ_TRY(sj_call_stack_land(stream));
    if (stream->depth > 0 && stream->frames[stream->depth - 1].stack < stack) {
        SJ_TRY(sj_call_stack_skip(stream, stack, false, ticks));
    }
    if (stream->depth == 0 || stream->frames[stream->depth - 1].stack != stack ||
        stream->frames[stream->depth - 1].function != function) {
        return sj_call_stack_orphan(stream, function, stack, ticks, jumps);
    }
    stream->returned_call = stream->frames[stream->depth - 1].call_index;
    if (jumps) {
        stream->context->counters.jumped++;
        stream->jumped_count++;
        stream->frames[stream->depth - 1].left_ticks = ticks > 0 ? ticks : 1;
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
