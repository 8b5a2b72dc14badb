/* Design notes.
 *
 * The block keeps an event if the entry or the exit of its call is outside the block. All events
 * between two kept events belong to complete calls and are dropped. A gap before the later kept
 * event counts the dropped events and calls, so that the numbers of later ones do not change. Only
 * calls that are open at this gap get the flag SJ_CALL_GAP. */
#include "agent/assembler/refused_block.h"

#include <stdlib.h>

enum { GAP_REASONS = SJ_GAP_BEFORE_RECORDING };

typedef struct shrinking {
    sj_call_stack *stream;
    bool *stays; /* indexed by event */
    sj_gap *gaps;
    uint32_t gap_count;
    uint32_t event_count; /* number of events kept so far */
    uint32_t call_count;
    uint32_t ending_count;
    uint32_t depth;
    uint32_t gap_depth; /* number of open calls that contain dropped events */
    sj_gap dropped;     /* events dropped since the last kept event or gap */
    uint64_t dropped_calls;
    uint64_t dropped_events;
} shrinking;

static uint32_t calls_of(const sj_call_stack *stream)
{
    return (uint32_t)(stream->next_call - stream->header.first_call - stream->header.lost_calls);
}

void sj_refused_block_count(sj_call_stack *stream)
{
    sj_assembler_counters *counters = &stream->context->counters;
    counters->refused_blocks++;
    counters->refused_events += stream->event_count - stream->kept_events;
    counters->refused_calls += calls_of(stream) - stream->kept_calls;
    counters->refused_values += stream->value_count;
    stream->kept_events = stream->kept_calls = stream->kept_endings = 0;
}

void sj_refused_block_delivered(sj_call_stack *stream)
{
    sj_assembler_counters *counters = &stream->context->counters;
    counters->refused_events -= stream->kept_events;
    counters->refused_calls -= stream->kept_calls;
    stream->kept_events = stream->kept_calls = stream->kept_endings = 0;
}

/* Marks the events to keep in `stays`. Returns their number. */
static uint32_t mark_events(const sj_call_stack *stream, bool *stays)
{
    uint32_t open = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < stream->event_count; i++) {
        if (stream->events[i].function != SJ_EVENT_LEAVE) {
            open++;
        } else if (open > 0) {
            open--;
        } else {
            stays[i] = true;
            count++;
        }
    }
    uint32_t closed = 0;
    for (uint32_t i = stream->event_count; i > 0; i--) {
        if (stays[i - 1]) {
            continue;
        }
        if (stream->events[i - 1].function == SJ_EVENT_LEAVE) {
            closed++;
        } else if (closed > 0) {
            closed--;
        } else {
            stays[i - 1] = true;
            count++;
        }
    }
    return count;
}

/* Returns the gap with this reason before the next kept event, or NULL if there is none. */
static sj_gap *find_gap(shrinking *run, uint32_t reason)
{
    for (uint32_t i = run->gap_count; i > 0; i--) {
        sj_gap *gap = &run->gaps[i - 1];
        if (gap->before_event != run->event_count) {
            return NULL;
        }
        if (gap->reason == reason) {
            return gap;
        }
    }
    return NULL;
}

/* Adds a gap before the next kept event, or merges it into an earlier gap there with the same
 * reason. A merged SJ_GAP_WAITED is as long as both waits together. Any other merged gap ends with
 * the later one. */
static void put_gap(shrinking *run, const sj_gap *gap)
{
    sj_gap *there = find_gap(run, gap->reason);
    if (there == NULL) {
        run->gaps[run->gap_count] = *gap;
        run->gaps[run->gap_count++].before_event = run->event_count;
        return;
    }
    there->calls += gap->calls;
    there->events += gap->events;
    there->end_ticks = gap->reason == SJ_GAP_WAITED
                           ? there->end_ticks + (gap->end_ticks - gap->start_ticks)
                           : gap->end_ticks;
}

static void end_dropped(shrinking *run)
{
    if (run->dropped.events == 0) {
        return;
    }
    put_gap(run, &run->dropped);
    run->gap_depth = run->depth;
    run->dropped_calls += run->dropped.calls;
    run->dropped_events += run->dropped.events;
    run->dropped = (sj_gap){0};
}

static void drop_event(shrinking *run, const sj_event *event)
{
    if (run->dropped.events == 0) {
        run->dropped = (sj_gap){.reason = SJ_GAP_SPOOL_FULL, .start_ticks = event->ticks};
    }
    run->dropped.calls += event->function != SJ_EVENT_LEAVE;
    run->dropped.events++;
    run->dropped.end_ticks = event->ticks;
}

/* Returns the `tail_call` of a kept entry. A value above 1 is 1 + the number of exits directly
 * before the entry. These exits may be dropped, so the entry then loses its mark of a tail call. */
static uint32_t keep_tail_call(uint32_t tail_call)
{
    const uint32_t untimed = tail_call & SJ_EVENT_UNTIMED;
    return (tail_call & ~(uint32_t)SJ_EVENT_UNTIMED) > 1 ? untimed : tail_call;
}

static void keep_event(shrinking *run, sj_event event)
{
    end_dropped(run);
    if (event.function != SJ_EVENT_LEAVE) {
        event.tail_call = keep_tail_call(event.tail_call);
        run->depth++;
        run->call_count++;
    } else {
        run->depth--;
        run->gap_depth = run->gap_depth < run->depth ? run->gap_depth : run->depth;
    }
    run->stream->events[run->event_count++] = event;
}

/* Keeps or drops each event with its ending. Moves kept events and endings forward in their arrays.
 * Writes all gaps to a new array. */
static void shrink(shrinking *run)
{
    sj_call_stack *stream = run->stream;
    uint32_t gap = 0;
    uint32_t ending = 0;
    for (uint32_t i = 0; i <= stream->event_count; i++) {
        for (; gap < stream->gap_count && stream->gaps[gap].before_event == i; gap++) {
            end_dropped(run);
            put_gap(run, &stream->gaps[gap]);
        }
        if (i == stream->event_count) {
            break;
        }
        const bool has_ending = ending < stream->ending_count && stream->endings[ending].event == i;
        if (has_ending && run->stays[i]) {
            stream->endings[run->ending_count++] = (sj_block_ending){
                .event = run->event_count, .ending = stream->endings[ending].ending};
        }
        ending += has_ending;
        if (run->stays[i]) {
            keep_event(run, stream->events[i]);
        } else {
            drop_event(run, &stream->events[i]);
        }
    }
    end_dropped(run);
}

static void use(const shrinking *run)
{
    sj_call_stack *stream = run->stream;
    free(stream->gaps);
    stream->gaps = run->gaps;
    stream->gap_count = run->gap_count;
    stream->event_count = stream->kept_events = run->event_count;
    stream->kept_calls = run->call_count;
    stream->ending_count = stream->kept_endings = run->ending_count;
    stream->thrown_count = 0;
    stream->ended_jumped_count = 0;
    stream->value_count = 0;
    sj_text_store_clear(&stream->texts);
    stream->header.lost_calls += run->dropped_calls;
    stream->header.lost_events += run->dropped_events;
    if (run->gap_depth > stream->trust.gap_depth) {
        stream->trust.gap_depth = run->gap_depth;
    }
}

sj_status sj_refused_block_shrink(sj_call_stack *stream)
{
    shrinking run = {.stream = stream, .depth = stream->header.open_depth};
    if (stream->header.stack_frames > 0) {
        return SJ_EFULL;
    }
    run.stays = calloc((size_t)stream->event_count + 1, sizeof(*run.stays));
    if (run.stays == NULL) {
        return SJ_ENOMEM;
    }
    const uint32_t count = mark_events(stream, run.stays);
    const uint32_t most = stream->gap_count * 2 + count + 2;
    const uint32_t gaps = most < (count + 1) * GAP_REASONS ? most : (count + 1) * GAP_REASONS;
    sj_status status = SJ_OK;
    if (count > stream->context->block_events / 2 || gaps > SJ_BLOCK_MAX_GAPS / 4) {
        status = SJ_EFULL;
    } else if ((run.gaps = calloc(gaps, sizeof(*run.gaps))) == NULL) {
        status = SJ_ENOMEM;
    } else {
        sj_refused_block_count(stream);
        shrink(&run);
        use(&run);
        stream->gap_capacity = gaps;
    }
    free(run.stays);
    return status;
}
