#include "agent/drain/thread_emitter.h"

#include "agent/drain/block_sink.h"
#include "agent/host/clock.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

static const sj_slice no_payload = {0};

/* Adds what the thread's slot counts to its frame. */
static void add_slot_counters(const sj_thread_emitter *emitter, Sojourn__Thread *message,
                              uint64_t memory[SJ_SLOT_MEMORY])
{
    const sj_thread_slot *slot = sj_arena_view_slot(emitter->view, emitter->slot);
    message->dropped_calls = atomic_load(&slot->dropped_calls) + emitter->discarded_calls;
    message->dropped_events = atomic_load(&slot->dropped_events) + emitter->discarded_events;
    message->waited_ticks = atomic_load(&slot->waited_ticks);
    message->cpu_ns_and_one = atomic_load(&slot->cpu_ns);
    message->allocated_bytes_and_one = atomic_load(&slot->allocated_bytes);
    message->n_memory_and_one = atomic_load(&slot->memory[0]) != 0 ? SJ_SLOT_MEMORY : 0;
    message->memory_and_one = memory;
    for (size_t i = 0; i < message->n_memory_and_one; i++) {
        memory[i] = atomic_load(&slot->memory[i]);
    }
}

static sj_status send_thread(const sj_thread_emitter *emitter)
{
    Sojourn__Thread message = SOJOURN__THREAD__INIT;
    sj_frame_writer *writer = emitter->shared->options.writer;
    uint64_t memory[SJ_SLOT_MEMORY];
    message.session_id = sj_frame_writer_session_bytes(writer);
    message.process = emitter->process;
    message.thread = emitter->number;
    message.tid = emitter->tid;
    message.name = (char *)(uintptr_t)emitter->name;
    message.started_ticks = emitter->start_ticks;
    message.ended_ticks = emitter->ended_ticks;
    message.n_stream = emitter->stream_count;
    message.stream = emitter->streams;
    message.is_main = emitter->is_main;
    if (emitter->view != NULL) {
        add_slot_counters(emitter, &message, memory);
    }
    return sj_frame_writer_send(writer, SJ_FRAME_THREAD, &message.base, no_payload);
}

sj_status sj_thread_emitter_announce(sj_thread_emitter *emitter)
{
    emitter->is_announced = true;
    return send_thread(emitter);
}

sj_status sj_thread_emitter_update(sj_thread_emitter *emitter)
{
    return emitter->is_announced ? send_thread(emitter) : SJ_OK;
}

void sj_thread_emitter_start_earlier(sj_thread_emitter *emitter, uint64_t ticks)
{
    if (ticks < emitter->start_ticks) {
        emitter->start_ticks = ticks;
        sj_arena_view_slot(emitter->view, emitter->slot)->start_ticks = ticks;
    }
}

void sj_thread_emitter_rename(sj_thread_emitter *emitter, const char name[SJ_THREAD_NAME_BYTES])
{
    sj_thread_slot *slot = sj_arena_view_slot(emitter->view, emitter->slot);
    memcpy(emitter->name, name, sizeof(emitter->name));
    memcpy(slot->name, name, sizeof(slot->name));
}

static uint32_t open_stream(void *context, uint64_t stack_address, bool own_stack,
                            uint64_t first_ticks)
{
    sj_thread_emitter *emitter = context;
    const uint32_t stream = sj_drain_next_stream(emitter->shared, emitter->tid);
    (void)stack_address;
    (void)own_stack;
    (void)first_ticks;
    if (sj_array_reserve(&emitter->streams, &emitter->stream_capacity, emitter->stream_count, 1,
                         sizeof(*emitter->streams)) == SJ_OK) {
        emitter->streams[emitter->stream_count++] = stream;
        /* An error can be ignored: the next frame of the thread contains the same. */
        (void)!sj_thread_emitter_update(emitter);
    }
    return stream;
}

/* The records and losses of a block that are not in the spool yet. */
typedef struct held_records {
    uint64_t calls; /* lost calls */
    uint64_t events;
    /* endings without a record: of this block, or of a refused block that this one accounts for */
    int64_t endings;
} held_records;

static held_records count_held(const sj_thread_emitter *emitter, const sj_block_header *header)
{
    sj_assembler_counters counters;
    sj_assembler_get_counters(emitter->assembler, &counters);
    const int64_t offered = counters.offered_endings - emitter->known_endings;
    const int64_t reported = (int64_t)(header->event_count + header->lost_events);
    const int64_t endings = offered < reported ? offered : reported;
    return (held_records){.calls = header->lost_calls + counters.offered_kept_calls,
                          .events = (uint64_t)(reported - endings),
                          .endings = endings};
}

/* Reports a loss of the thread by a gap frame. If this process is killed meanwhile, the loss is
 * neither missed nor reported twice. */
static sj_status send_gap(sj_thread_emitter *emitter, uint32_t stream, const sj_gap *gap,
                          const held_records *held)
{
    sj_frame_writer *writer = emitter->shared->options.writer;
    sj_read_progress_offer(&emitter->progress, SJ_OFFER_GAP | sj_frame_writer_next_gap(writer),
                           held->calls, held->events);
    const sj_status status =
        sj_frame_writer_gap(writer, (sj_gap_reason)gap->reason, emitter->number, stream, gap->calls,
                            gap->events, gap->start_ticks, gap->end_ticks);
    if (status == SJ_OK) {
        sj_read_progress_sent(&emitter->progress, held->calls, held->events);
    } else {
        sj_read_progress_refused(&emitter->progress);
    }
    return status;
}

/* Writes a block, and subtracts `held` from what is unsent. */
static sj_status write_held(sj_thread_emitter *emitter, const sj_block_header *header,
                            sj_slice bytes, const held_records *held)
{
    const sj_drain_shared *shared = emitter->shared;
    sj_read_progress_save(&emitter->progress);
    sj_read_progress_offer(&emitter->progress, sj_block_sink_next(shared, header), held->calls,
                           held->events);
    const sj_status status = sj_block_sink_write(shared, header, bytes);
    if (status != SJ_OK) {
        sj_read_progress_refused(&emitter->progress);
        return status;
    }
    sj_read_progress_sent(&emitter->progress, held->calls, held->events);
    emitter->known_endings += held->endings;
    return SJ_OK;
}

/* Reports the gaps of a block that is in the sums of a profile. `endings` of their events have no
 * record. A gap that cannot be sent stays unsent: the end of the thread reports it. */
static void send_gaps(sj_thread_emitter *emitter, uint32_t stream, int64_t endings)
{
    size_t count = 0;
    const sj_gap *gaps = sj_profiler_gaps(emitter->shared->profiler, &count);
    for (size_t i = 0; i < count; i++) {
        const sj_gap *gap = &gaps[i];
        const int64_t own = endings < (int64_t)gap->events ? endings : (int64_t)gap->events;
        const held_records held = {
            .calls = gap->calls, .events = gap->events - (uint64_t)own, .endings = own};
        if (gap->reason == SJ_GAP_BEFORE_RECORDING ||
            send_gap(emitter, stream, gap, &held) != SJ_OK) {
            continue;
        }
        endings -= own;
        emitter->known_endings += own;
        emitter->reported_lost_calls += gap->calls;
        emitter->reported_lost_events += gap->events;
    }
}

/* Adds a block to the sums of a profile, then reports its gaps. */
static sj_status write_to_profile(sj_thread_emitter *emitter, const sj_block_header *header,
                                  sj_slice bytes)
{
    const held_records held = count_held(emitter, header);
    const int64_t events = header->event_count;
    held_records summed = {.calls = held.calls - header->lost_calls};
    if (events != 0) { /* without events, the sums do not change */
        summed.endings = held.endings < events ? held.endings : events;
        summed.events = (uint64_t)(events - summed.endings);
    }
    SJ_TRY(write_held(emitter, header, bytes, &summed));
    const int64_t rest = held.endings - summed.endings;
    send_gaps(emitter, header->stream, rest > 0 ? rest : 0);
    return SJ_OK;
}

static sj_status write_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    sj_thread_emitter *emitter = context;
    if (emitter->shared->profiler != NULL) {
        return write_to_profile(emitter, header, bytes);
    }
    const held_records held = count_held(emitter, header);
    SJ_TRY(write_held(emitter, header, bytes, &held));
    emitter->reported_lost_calls += header->lost_calls;
    emitter->reported_lost_events += header->lost_events;
    return SJ_OK;
}

static void write_mark(void *context, uint32_t mark_index, bool end, uint64_t ticks)
{
    const sj_thread_emitter *emitter = context;
    const sj_drain_shared *shared = emitter->shared;
    const sj_arena_mark *mark = sj_arena_view_mark(emitter->view, mark_index);
    char name[SJ_ARENA_MARK_BYTES + 1] = "";
    memcpy(name, mark->name, SJ_ARENA_MARK_BYTES);
    (void)!sj_frame_writer_mark(shared->options.writer, name, end, ticks, emitter->number, "app");
}

static sj_rule_set judge_value(void *context, uint32_t function, const sj_block_value *value,
                               uint64_t ticks)
{
    const sj_thread_emitter *emitter = context;
    const sj_policy_judge judge = sj_drain_judge(emitter->shared);
    return sj_policy_judge_value(&judge, function, value, ticks, emitter->number);
}

static sj_rule_set judge_call(void *context, const sj_assembled_call *call)
{
    const sj_thread_emitter *emitter = context;
    const sj_policy_judge judge = sj_drain_judge(emitter->shared);
    return sj_policy_judge_whole_call(&judge, call, emitter->name, emitter->number);
}

void sj_thread_emitter_sink(sj_thread_emitter *emitter, sj_assembler_sink *sink)
{
    *sink = (sj_assembler_sink){.context = emitter,
                                .open_stream = open_stream,
                                .block = write_block,
                                .mark = write_mark,
                                .value = judge_value,
                                .call = judge_call};
}

void sj_thread_emitter_deinit(sj_thread_emitter *emitter)
{
    free(emitter->streams);
    emitter->streams = NULL;
}

/* Reports `calls` and `events`, which are all that is unsent. */
static sj_status send_last_gap(sj_thread_emitter *emitter, sj_gap_reason reason, uint64_t calls,
                               uint64_t events, uint64_t now_ticks)
{
    static const held_records all = {.calls = UINT64_MAX, .events = UINT64_MAX};
    const sj_gap gap = {.reason = reason,
                        .calls = calls,
                        .events = events,
                        .start_ticks = emitter->start_ticks,
                        .end_ticks = now_ticks};
    return calls == 0 && events == 0
               ? SJ_OK
               : send_gap(emitter, emitter->stream_count != 0 ? emitter->streams[0] : 0, &gap,
                          &all);
}

static uint64_t positive_difference(uint64_t all, uint64_t known)
{
    return all > known ? all - known : 0;
}

/* Writes what the assembler counted as lost and no stored block has reported. A later stored block
 * also reports refused blocks and orphan exits, by gaps. */
static void count_unreported(const sj_thread_emitter *emitter,
                             const sj_assembler_counters *counters, uint64_t *calls,
                             uint64_t *events)
{
    *calls = positive_difference(counters->lost_calls + counters->refused_calls,
                                 emitter->reported_lost_calls);
    *events = positive_difference(counters->lost_events + counters->refused_events +
                                      counters->orphan_exits,
                                  emitter->reported_lost_events);
}

void sj_thread_emitter_settle(sj_thread_emitter *emitter)
{
    sj_assembler_counters counters;
    uint64_t calls;
    uint64_t events;
    sj_assembler_get_counters(emitter->assembler, &counters);
    count_unreported(emitter, &counters, &calls, &events);
    sj_read_progress_settle(&emitter->progress, calls, events);
    /* the endings of refused blocks are in `events` */
    emitter->known_endings = counters.offered_endings;
}

sj_status sj_thread_emitter_report_unsent(sj_thread_emitter *emitter)
{
    const sj_thread_slot *slot = sj_arena_view_slot(emitter->view, emitter->slot);
    const uint64_t calls = slot->unsent_calls;
    const uint64_t events = slot->cursor.unsent > calls ? slot->cursor.unsent : calls;
    return send_last_gap(emitter, SJ_GAP_TORN, calls, events, sj_clock_ticks());
}

/* Reports what the assembler counted as lost and no stored block could report. */
static sj_status report_unreported(sj_thread_emitter *emitter, uint64_t now_ticks)
{
    sj_assembler_counters counters;
    uint64_t calls;
    uint64_t events;
    sj_assembler_get_counters(emitter->assembler, &counters);
    count_unreported(emitter, &counters, &calls, &events);
    return send_last_gap(emitter, SJ_GAP_SPOOL_FULL, calls, events, now_ticks);
}

sj_status sj_thread_emitter_end(sj_thread_emitter *emitter, uint64_t now_ticks)
{
    SJ_TRY(report_unreported(emitter, now_ticks));
    sj_read_progress_settle(&emitter->progress, 0, 0); /* everything is sent or reported */
    emitter->ended_ticks = now_ticks;
    return send_thread(emitter);
}
