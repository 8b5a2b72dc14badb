/* Design notes.
 *
 * The assembler writes events directly into the arrays that the encoder reads. The key-frame of a
 * block is a copy of the innermost frames, made when the block starts. If the stack is deeper than
 * a key-frame may be, DEEP_FRAMES blocks deliver the outer frames once. The outermost
 * `stored_depth` frames are still as those blocks describe them. A call that ends changes the
 * callee time of its caller. So the caller's frame no longer counts as stored.
 *
 * If the sink refuses a block, the assembler removes the calls that began and ended in the block,
 * and fills it further (refused_block.h). If too much would stay, a gap at the start of the next
 * block replaces the block. */
#include "agent/assembler/call_stack.h"

#include "agent/assembler/refused_block.h"
#include "agent/assembler/tail_calls.h"

#include <stdlib.h>

enum {
    FIRST_EVENTS = 64,
    MAX_GAPS = SJ_BLOCK_MAX_GAPS / 2,
    /* DEEP_FRAMES blocks leave this many frames inline, so that the next cut needs no further
     * DEEP_FRAMES block. */
    INLINE_TARGET = SJ_BLOCK_MAX_INLINE_FRAMES / 2
};

static sj_status reserve(void **array, uint32_t *capacity, uint32_t needed, size_t size)
{
    if (needed <= *capacity) {
        return SJ_OK;
    }
    uint32_t grown = *capacity > 0 ? *capacity : 16;
    while (grown < needed) {
        grown *= 2;
    }
    void *moved = realloc(*array, grown * size);
    if (moved == NULL) {
        return SJ_ENOMEM;
    }
    *array = moved;
    *capacity = grown;
    return SJ_OK;
}

static void set_key_flags(sj_call_stack *stream, sj_stack_frame *frames, uint32_t first,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        frames[i].flags &= ~SJ_TAIL_HEAD;
        frames[i].flags |= sj_call_trust_flags(&stream->trust, first + i);
    }
}

/* Encodes a block and passes it to the sink. Returns the error of the encoder or of the sink. */
static sj_status deliver(sj_call_stack *stream, const sj_block_input *input)
{
    sj_stream_context *context = stream->context;
    const size_t bound = sj_block_bound(input);
    if (bound > context->output_capacity) {
        uint8_t *grown = realloc(context->output, bound);
        if (grown == NULL) {
            return SJ_ENOMEM;
        }
        context->output = grown;
        context->output_capacity = bound;
    }
    size_t size;
    SJ_TRY(
        sj_block_encode(context->encoder, input, context->output, context->output_capacity, &size));
    sj_block_header header;
    const sj_slice bytes = {.data = context->output, .size = size};
    SJ_TRY(sj_block_read_header(bytes, &header));
    SJ_TRY(context->sink.block(context->sink.context, &header, bytes));
    context->counters.blocks++;
    context->counters.block_bytes += size;
    return SJ_OK;
}

static sj_block_header new_header(const sj_call_stack *stream, sj_block_kind kind)
{
    return (sj_block_header){.version = SJ_BLOCK_VERSION,
                             .kind = (uint8_t)kind,
                             .session = stream->context->session,
                             .stream = stream->number,
                             .clock_step = stream->context->clock_step};
}

/* Delivers the frames from stored_depth to `end` (exclusive) as one DEEP_FRAMES block. Overwrites
 * the key-frame. */
static sj_status store_frames(sj_call_stack *stream, uint32_t end, uint64_t ticks)
{
    const uint32_t first = stream->stored_depth;
    SJ_TRY(reserve((void **)&stream->stored, &stream->stored_capacity, stream->stored_count + 1,
                   sizeof(*stream->stored)));
    SJ_TRY(
        reserve((void **)&stream->key, &stream->key_capacity, end - first, sizeof(*stream->key)));
    memcpy(stream->key, stream->frames + first, (end - first) * sizeof(*stream->key));
    set_key_flags(stream, stream->key, first, end - first);
    sj_block_input input = {.header = new_header(stream, SJ_BLOCK_DEEP_FRAMES),
                            .frames = stream->key};
    sj_block_header *header = &input.header;
    header->first_event = stream->next_stack_block;
    header->first_ticks = ticks;
    header->last_ticks = ticks;
    header->open_depth = end;
    header->end_depth = end;
    header->stack_frames = first;
    header->stack_reference =
        stream->stored_count > 0 ? stream->stored[stream->stored_count - 1].number : 0;
    SJ_TRY(deliver(stream, &input));
    stream->stored[stream->stored_count++] =
        (sj_stored_frames){.number = stream->next_stack_block++, .first = first, .end = end};
    stream->stored_depth = end;
    return SJ_OK;
}

/* Delivers the outer frames of a deep stack in DEEP_FRAMES blocks. First drops the blocks whose
 * frames are no longer all open or have changed. */
static sj_status store_deep_frames(sj_call_stack *stream, uint64_t ticks)
{
    while (stream->stored_count > 0 &&
           stream->stored[stream->stored_count - 1].first >= stream->stored_depth) {
        stream->stored_count--;
    }
    if (stream->depth - stream->stored_depth <= SJ_BLOCK_MAX_INLINE_FRAMES) {
        return SJ_OK;
    }
    const uint32_t target = stream->depth - INLINE_TARGET;
    while (stream->stored_depth < target) {
        const uint32_t left = target - stream->stored_depth;
        const uint32_t count =
            left < SJ_BLOCK_MAX_INLINE_FRAMES ? left : SJ_BLOCK_MAX_INLINE_FRAMES;
        SJ_TRY(store_frames(stream, stream->stored_depth + count, ticks));
    }
    return SJ_OK;
}

static sj_status begin_block(sj_call_stack *stream)
{
    stream->event_count = 0;
    stream->ending_count = 0;
    stream->thrown_count = 0;
    stream->ended_jumped_count = 0;
    stream->gap_count = 0;
    stream->value_count = 0;
    sj_text_store_clear(&stream->texts);
    const sj_status stored = store_deep_frames(stream, stream->last_ticks);
    if (stored == SJ_ENOMEM) {
        return stored;
    }
    stream->rootless = stored != SJ_OK;
    const uint32_t outer = stream->stored_count > 0 ? stream->stored_depth : 0;
    const uint32_t inner = stream->rootless ? 0 : stream->depth - outer;
    SJ_TRY(reserve((void **)&stream->key, &stream->key_capacity, inner, sizeof(*stream->key)));
    if (inner > 0) {
        memcpy(stream->key, stream->frames + outer, inner * sizeof(*stream->key));
        set_key_flags(stream, stream->key, outer, inner);
    }
    stream->header = new_header(stream, SJ_BLOCK_CALLS);
    sj_block_header *header = &stream->header;
    header->first_event = stream->next_event;
    header->first_call = stream->next_call;
    header->open_depth = stream->depth;
    header->stack_frames = outer;
    header->stack_reference = outer > 0 ? stream->stored[stream->stored_count - 1].number : 0;
    header->gap_depth = stream->trust.gap_depth;
    header->waited_depth = stream->trust.waited_depth;
    header->uncertain_depth = stream->trust.uncertain_depth;
    return SJ_OK;
}

sj_status sj_call_stack_new(sj_stream_context *context, uint64_t stack_address, bool own_stack,
                            uint64_t ticks, sj_call_stack **stream)
{
    sj_call_stack *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->context = context;
    made->own_stack = own_stack;
    made->base = stack_address;
    made->lowest = stack_address;
    made->next_stack_block = 1;
    made->last_ticks = ticks;
    made->number =
        context->sink.open_stream(context->sink.context, stack_address, own_stack, ticks);
    const sj_status status = begin_block(made);
    if (status != SJ_OK) {
        sj_call_stack_free(made);
        return status;
    }
    context->counters.streams++;
    *stream = made;
    return SJ_OK;
}

void sj_call_stack_free(sj_call_stack *stream)
{
    if (stream == NULL) {
        return;
    }
    sj_call_costs_deinit(&stream->costs);
    sj_late_values_deinit(&stream->late);
    free(stream->frames);
    free(stream->stored);
    free(stream->key);
    free(stream->events);
    free(stream->endings);
    free(stream->gaps);
    free(stream->values);
    sj_text_store_deinit(&stream->texts);
    free(stream);
}

static sj_status add_gap(sj_call_stack *stream, const sj_gap *gap)
{
    sj_gap *last = stream->gap_count > 0 ? &stream->gaps[stream->gap_count - 1] : NULL;
    if (last != NULL && last->before_event == stream->event_count && last->reason == gap->reason) {
        last->calls += gap->calls;
        last->events += gap->events;
        last->end_ticks = gap->end_ticks;
    } else {
        SJ_TRY(reserve((void **)&stream->gaps, &stream->gap_capacity, stream->gap_count + 1,
                       sizeof(*stream->gaps)));
        stream->gaps[stream->gap_count] = *gap;
        stream->gaps[stream->gap_count++].before_event = stream->event_count;
    }
    stream->header.lost_calls += gap->calls;
    stream->header.lost_events += gap->events;
    stream->next_call += gap->calls;
    sj_call_trust_gap(&stream->trust, gap->reason, stream->depth);
    stream->last_ticks = gap->end_ticks > stream->last_ticks ? gap->end_ticks : stream->last_ticks;
    return SJ_OK;
}

sj_status sj_call_stack_gap(sj_call_stack *stream, const sj_gap *gap)
{
    if (gap->reason != SJ_GAP_WAITED) {
        SJ_TRY(sj_call_stack_end_jumped(stream));
    }
    if (stream->gap_count >= MAX_GAPS && stream->event_count > 0) {
        SJ_TRY(sj_call_stack_cut(stream, gap->start_ticks, 0));
    }
    if (gap->reason == SJ_GAP_RING_FULL) {
        stream->uncertain_before = stream->trust.uncertain_depth;
    }
    return add_gap(stream, gap);
}

sj_status sj_call_stack_confirm_open(sj_call_stack *stream)
{
    sj_call_trust *trust = &stream->trust;
    if (trust->uncertain_depth <= stream->uncertain_before ||
        (stream->event_count == 0 && stream->header.lost_events == 0)) {
        /* the open calls are certain already, or the block is empty, and sj_call_stack_cut would
         * deliver nothing */
        return SJ_OK;
    }
    trust->uncertain_depth = stream->uncertain_before;
    trust->gap_depth = stream->depth;
    return sj_call_stack_cut(stream, stream->last_ticks, 0);
}

/* Copies the text of a value into the block's text store. Cuts a text that does not fit. */
static sj_status keep_text(sj_call_stack *stream, sj_block_value *value)
{
    const size_t capacity = SJ_BLOCK_MAX_TEXT_BYTES - stream->texts.total_bytes;
    char *text;
    if (value->text_bytes > capacity) {
        value->text_bytes = (uint16_t)capacity;
        value->note = SJ_VALUE_CUT;
    }
    SJ_TRY(sj_text_store_add(&stream->texts, value->text_bytes, &text));
    memcpy(text, value->text, value->text_bytes);
    value->text = text;
    return SJ_OK;
}

sj_status sj_call_stack_value(sj_call_stack *stream, const sj_block_value *value)
{
    SJ_TRY(reserve((void **)&stream->values, &stream->value_capacity, stream->value_count + 1,
                   sizeof(*stream->values)));
    sj_block_value *kept = &stream->values[stream->value_count];
    *kept = *value;
    SJ_TRY(kept->text_bytes != 0 ? keep_text(stream, kept) : SJ_OK);
    stream->value_count++;
    return SJ_OK;
}

sj_status sj_call_stack_reserve_values(sj_call_stack *stream, size_t count, size_t text_bytes)
{
    return stream->value_count + count <= SJ_BLOCK_MAX_VALUES &&
                   stream->texts.total_bytes + text_bytes <= SJ_BLOCK_MAX_TEXT_BYTES
               ? SJ_OK
               : sj_call_stack_cut(stream, stream->last_ticks, 0);
}

/* Replaces the block by a gap at the start of the next block. The sink refused the block, and it
 * cannot be filled further. */
static sj_status replace_by_gap(sj_call_stack *stream, uint64_t calls, uint64_t now_ticks)
{
    const sj_block_header lost = stream->header;
    const uint32_t events = stream->event_count;
    const uint64_t next_call = stream->next_call;
    sj_refused_block_count(stream);
    SJ_TRY(begin_block(stream));
    stream->header.first_event = lost.first_event;
    stream->header.first_call = lost.first_call;
    const sj_gap gap = {.reason = SJ_GAP_SPOOL_FULL,
                        .calls = calls + lost.lost_calls,
                        .events = events + lost.lost_events,
                        .start_ticks = lost.first_ticks,
                        .end_ticks = now_ticks};
    SJ_TRY(add_gap(stream, &gap));
    stream->next_call = next_call;
    return SJ_OK;
}

static sj_status refuse(sj_call_stack *stream, uint64_t calls)
{
    const sj_status shrunk = stream->rootless ? SJ_EFULL : sj_refused_block_shrink(stream);
    return shrunk == SJ_EFULL ? replace_by_gap(stream, calls, stream->header.last_ticks) : shrunk;
}

static void complete_header(sj_call_stack *stream, uint64_t calls, uint64_t now_ticks,
                            unsigned flags)
{
    sj_block_header *header = &stream->header;
    const uint32_t count = stream->event_count;
    const uint64_t quiet = now_ticks > stream->last_ticks ? now_ticks : stream->last_ticks;
    header->flags = (uint8_t)flags;
    header->event_count = count;
    header->call_count = (uint32_t)calls;
    header->first_ticks = count > 0 ? stream->events[0].ticks : quiet;
    header->last_ticks = count > 0 ? stream->events[count - 1].ticks : quiet;
    header->end_depth = stream->depth;
}

sj_status sj_call_stack_cut(sj_call_stack *stream, uint64_t now_ticks, unsigned flags)
{
    stream->context->counters.offered_endings -= stream->jumped_count;
    stream->jumped_count = 0;
    if (flags == 0 && stream->event_count == 0 && stream->header.lost_events == 0) {
        /* an empty block has the number of the next block: readers could confuse the two */
        return SJ_OK;
    }
    const uint64_t calls =
        stream->next_call - stream->header.first_call - stream->header.lost_calls;
    const sj_value_rules *rules = stream->context->value_rules;
    complete_header(stream, calls, now_ticks, flags);
    const sj_block_input input = {.header = stream->header,
                                  .frames = stream->key,
                                  .events = stream->events,
                                  .endings = stream->endings,
                                  .ending_count = stream->ending_count,
                                  .gaps = stream->gaps,
                                  .gap_count = stream->gap_count,
                                  .values = stream->values,
                                  .value_count = stream->value_count,
                                  .rules = rules != NULL ? rules->names : NULL,
                                  .rule_count = rules != NULL ? rules->count : 0};
    stream->next_event =
        stream->header.first_event + stream->event_count + stream->header.lost_events;
    stream->context->counters.offered_endings += (int64_t)stream->ending_count -
                                                 stream->thrown_count + stream->ended_jumped_count -
                                                 stream->kept_endings;
    stream->context->counters.offered_kept_calls = stream->kept_calls;
    if (stream->rootless || deliver(stream, &input) != SJ_OK) {
        return refuse(stream, calls);
    }
    sj_refused_block_delivered(stream);
    stream->context->counters.events += stream->event_count;
    stream->context->counters.values += stream->value_count;
    return begin_block(stream);
}

sj_status sj_call_stack_grow(sj_call_stack *stream)
{
    if (stream->event_count == stream->context->block_events) {
        SJ_TRY(sj_call_stack_cut(stream, stream->last_ticks, 0));
    }
    if (stream->event_count == stream->event_capacity) {
        const uint32_t most = stream->context->block_events;
        uint32_t capacity = stream->event_capacity > 0 ? stream->event_capacity * 2 : FIRST_EVENTS;
        capacity = capacity < most ? capacity : most;
        sj_event *moved = realloc(stream->events, capacity * sizeof(*moved));
        if (moved == NULL) {
            return SJ_ENOMEM;
        }
        stream->events = moved;
        stream->event_capacity = capacity;
    }
    if (stream->depth == stream->frame_capacity) {
        SJ_TRY(reserve((void **)&stream->frames, &stream->frame_capacity, stream->depth + 1,
                       sizeof(*stream->frames)));
    }
    return SJ_OK;
}

/* Ends the innermost call at `ticks`. Records the ending if it is not a return. */
static sj_status end_innermost(sj_call_stack *stream, uint64_t ticks, sj_ending ending)
{
    if (sj_call_stack_full(stream)) {
        SJ_TRY(sj_call_stack_grow(stream));
    }
    if (ending != SJ_ENDING_RETURNED) {
        SJ_TRY(reserve((void **)&stream->endings, &stream->ending_capacity,
                       stream->ending_count + 1, sizeof(*stream->endings)));
        stream->endings[stream->ending_count++] =
            (sj_block_ending){.event = stream->event_count, .ending = ending};
    }
    sj_call_stack_pop(stream, ticks);
    return SJ_OK;
}

/* Ends the innermost call, which has jumped. The exit was counted at the time of the jump. */
static sj_status end_innermost_jumped(sj_call_stack *stream, uint64_t ticks, sj_ending ending)
{
    SJ_TRY(end_innermost(stream, ticks, ending));
    stream->thrown_count += ending != SJ_ENDING_RETURNED;
    stream->context->counters.ended_jumped++;
    stream->ended_jumped_count++;
    return SJ_OK;
}

sj_status sj_call_stack_end_chain(sj_call_stack *stream, uint64_t ticks, sj_ending ending)
{
    while (sj_call_stack_has_jumped(stream)) {
        SJ_TRY(end_innermost_jumped(stream, ticks, ending));
    }
    return SJ_OK;
}

sj_status sj_call_stack_end_jumped(sj_call_stack *stream)
{
    if (!sj_call_stack_has_jumped(stream)) {
        return SJ_OK;
    }
    const uint64_t left = stream->frames[stream->depth - 1].jumped_ticks;
    return sj_call_stack_end_chain(stream, left > stream->last_ticks ? left : stream->last_ticks,
                                   SJ_ENDING_RETURNED);
}

/* Enters the function that the innermost call has jumped to. Calls that the chain does not keep end
 * directly before the ENTER, in the same block. */
static sj_status enter_jumped_to(sj_call_stack *stream, uint32_t function, uint64_t stack,
                                 uint64_t ticks)
{
    const uint32_t kept = sj_tail_chain_keep(stream->frames, stream->depth, function);
    const uint32_t ended = stream->depth - kept;
    if (stream->event_count + ended + 1 > stream->context->block_events) {
        SJ_TRY(sj_call_stack_cut(stream, stream->last_ticks, 0));
    }
    while (stream->depth > kept) {
        SJ_TRY(end_innermost_jumped(stream, ticks, SJ_ENDING_RETURNED));
    }
    if (ended == 0) {
        stream->frames[stream->depth - 1].jumped_ticks = ticks > 0 ? ticks : 1;
    }
    const uint32_t tail_call = stream->event_count >= ended ? 1 + ended : 0;
    return sj_call_stack_push(stream, function, stack, ticks, tail_call);
}

sj_status sj_call_stack_enter_slow(sj_call_stack *stream, uint32_t function, uint64_t stack,
                                   uint64_t ticks)
{
    if (sj_call_stack_has_jumped(stream) && stream->frames[stream->depth - 1].stack == stack) {
        return enter_jumped_to(stream, function, stack, ticks);
    }
    SJ_TRY(sj_call_stack_end_jumped(stream));
    SJ_TRY(sj_call_stack_unwind_to(stream, stack, true, ticks));
    return sj_call_stack_push(stream, function, stack, ticks, 0);
}

sj_status sj_call_stack_end_unseen(sj_call_stack *stream, uint64_t ticks)
{
    if (stream->depth <= stream->trust.uncertain_depth) {
        /* A gap may have ended the call. So the call ends at the stream's latest time, not at
         * `ticks`. */
        SJ_TRY(end_innermost(stream, stream->last_ticks, SJ_ENDING_TRUNCATED));
        stream->context->counters.truncated++;
        return sj_call_stack_end_chain(stream, stream->last_ticks, SJ_ENDING_TRUNCATED);
    }
    SJ_TRY(end_innermost(stream, ticks, SJ_ENDING_UNWOUND));
    stream->context->counters.unwound++;
    return sj_call_stack_end_chain(stream, ticks, SJ_ENDING_UNWOUND);
}

sj_status sj_call_stack_end_open(sj_call_stack *stream, uint64_t ticks)
{
    while (stream->depth > 0) {
        if (sj_call_stack_has_jumped(stream)) {
            SJ_TRY(end_innermost_jumped(stream, ticks, SJ_ENDING_OPEN));
        } else {
            SJ_TRY(end_innermost(stream, ticks, SJ_ENDING_OPEN));
            stream->context->counters.left_open++;
        }
    }
    return SJ_OK;
}

sj_status sj_call_stack_throw(sj_call_stack *stream, uint64_t ticks)
{
    SJ_TRY(end_innermost(stream, ticks, SJ_ENDING_UNWOUND));
    stream->thrown_count++;
    stream->context->counters.unwound++;
    stream->context->counters.thrown++;
    return sj_call_stack_end_chain(stream, ticks, SJ_ENDING_UNWOUND);
}

sj_status sj_call_stack_unwind_to(sj_call_stack *stream, uint64_t stack, bool inclusive,
                                  uint64_t ticks)
{
    SJ_TRY(sj_call_stack_end_jumped(stream));
    while (stream->depth > 0) {
        const uint64_t innermost = stream->frames[stream->depth - 1].stack;
        if (innermost > stack || (innermost == stack && !inclusive)) {
            break;
        }
        SJ_TRY(sj_call_stack_end_unseen(stream, ticks));
    }
    return SJ_OK;
}

/* True if the exit belongs to a native call that the assembler ended together with the managed call
 * that made it. Each such call matches one exit. */
static bool claim_overtaken(sj_call_stack *stream, uint32_t function, uint64_t stack)
{
    const uint32_t count =
        stream->overtaken_count < SJ_OVERTAKEN_CALLS ? stream->overtaken_count : SJ_OVERTAKEN_CALLS;
    for (uint32_t i = 1; i <= count; i++) {
        sj_overtaken_call *call =
            &stream->overtaken[(stream->overtaken_count - i) % SJ_OVERTAKEN_CALLS];
        if (call->function == function && call->stack == stack) {
            call->function = 0;
            return true;
        }
    }
    return false;
}

/* True if the exit belongs to a call that the parent entered before it forked this process. Counts
 * the exit. Such calls are callers of all calls entered here, and return from the inner to the
 * outer. False if the entry may be among lost records. */
static bool count_inherited(sj_call_stack *stream, uint64_t stack)
{
    sj_stream_context *context = stream->context;
    if (!context->is_forked || stream->depth != 0 || stack < context->inherited_from ||
        context->counters.lost_events != 0 || context->counters.bad_records != 0 ||
        context->counters.orphan_exits != 0) {
        return false;
    }
    context->inherited_from = stack;
    context->counters.inherited_exits++;
    return true;
}

sj_status sj_call_stack_leave_unmatched(sj_call_stack *stream, uint32_t function, uint64_t stack,
                                        uint64_t ticks, bool jumps)
{
    if (stream->depth > 0 && stream->depth <= stream->trust.uncertain_depth &&
        stream->frames[stream->depth - 1].stack == stack) {
        /* The exit of another function at this address proves that the uncertain call has ended. */
        SJ_TRY(sj_call_stack_end_unseen(stream, ticks));
        if (stream->depth > 0 && stream->frames[stream->depth - 1].stack == stack &&
            stream->frames[stream->depth - 1].function == function) {
            return sj_call_stack_leave(stream, function, stack, ticks, jumps);
        }
    }
    if (claim_overtaken(stream, function, stack)) {
        stream->thrown_count++;
        stream->context->counters.overtaken++;
        return SJ_OK;
    }
    if (count_inherited(stream, stack)) {
        return SJ_OK;
    }
    stream->context->counters.orphan_exits++;
    const sj_gap gap = {.reason = SJ_GAP_ORPHAN,
                        .events = 1,
                        .start_ticks = stream->last_ticks,
                        .end_ticks = ticks};
    return sj_call_stack_gap(stream, &gap);
}

sj_status sj_call_stack_restore_frames(sj_call_stack *stream)
{
    const uint32_t gap_count = stream->gap_count;
    if (stream->stored_count == 0 || stream->event_count != 0) {
        return SJ_OK;
    }
    stream->stored_count = 0;
    stream->stored_depth = 0;
    SJ_TRY(begin_block(stream));
    stream->gap_count = gap_count;
    return SJ_OK;
}

void sj_call_stack_trim(sj_call_stack *stream)
{
    if (stream->event_count == 0 && stream->event_capacity > FIRST_EVENTS) {
        free(stream->events);
        stream->events = NULL;
        stream->event_capacity = 0;
    }
}

/* Returns the event that opened the frame at index `place`. Returns NULL if the event is in an
 * earlier block, or names another function. */
static sj_event *entry_of(const sj_call_stack *stream, uint32_t place)
{
    /* frames from `place` on whose entries the search has not passed yet */
    uint32_t left = stream->depth - place;
    uint32_t closed = 0;
    for (uint32_t i = stream->event_count; i > 0; i--) {
        sj_event *event = &stream->events[i - 1];
        if (event->function == SJ_EVENT_LEAVE) {
            closed++;
        } else if (closed != 0) {
            closed--;
        } else if (--left == 0) {
            return event->function == stream->frames[place].function ? event : NULL;
        }
    }
    return NULL;
}

void sj_call_stack_mark_untimed_exit(sj_call_stack *stream, uint32_t function, uint64_t stack)
{
    uint32_t place = stream->depth;
    while (place > 0 && stream->frames[place - 1].stack < stack) {
        place--; /* these calls have ended without an exit */
    }
    if (place == 0 || stream->frames[place - 1].stack != stack ||
        stream->frames[place - 1].function != function) {
        return;
    }
    sj_stack_frame *frame = &stream->frames[--place];
    sj_event *entry = entry_of(stream, place);
    frame->flags |= SJ_CALL_UNTIMED;
    if (entry != NULL) {
        entry->tail_call |= SJ_EVENT_UNTIMED;
    }
    const uint32_t outer = stream->header.stack_frames;
    if (entry == NULL && !stream->rootless && place >= outer && place < stream->header.open_depth &&
        stream->key[place - outer].call_index == frame->call_index) {
        stream->key[place - outer].flags |= SJ_CALL_UNTIMED;
    }
}
