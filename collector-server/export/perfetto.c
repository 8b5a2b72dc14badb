/* perfetto: Perfetto's binary trace format (perfetto.proto). A call is a slice on the track of its
 * thread, coroutine or signal stack. Names of functions are interned. The categories of a call are
 * "estimate" if its times are estimates; "tail_call" if the call was reached by a tail call; "open"
 * if the call was open at the end of the recording; "truncated" if its exit was lost. The
 * annotation "recorded" holds the recorded data of a call as JSON (call_arguments.h). The counter
 * "lost calls" of a track is above 0 while calls were lost. Times are nanoseconds since the start
 * of the session; an earlier time becomes 0.
 *
 * Design notes. A packet is written as soon as a call is read. Memory grows with the number of
 * functions and processes, because the exporter stores their ids to write each name once. */
#include "collector-server/export/call_arguments.h"
#include "collector-server/export/call_events.h"
#include "collector-server/export/clean_name.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/message_stream.h"
#include "collector-server/store/sql.h"
#include "export/perfetto.pb-c.h"
#include "proto/base/hash_map.h"

#include <stdlib.h>
#include <string.h>

enum { PACKET = 1 }; /* the field of Trace */

typedef struct trace_writer {
    sj_message_stream stream;
    sj_call_arguments_reader arguments;
    sj_hash_map named; /* functions whose name was written */
    sj_hash_map processes;
    int64_t stream_id;      /* the current track */
    int64_t last_ns;        /* the latest time on the current track */
    bool is_begun;          /* a packet was written */
    int64_t loss_stream_id; /* the current track of losses */
    sj_error *error;
} trace_writer;

/* The uuid of a track is unique: 1 modulo 2 for a stream; 2 modulo 4 for the counter of the
 * stream's lost calls; 0 modulo 4 for a process. */
static uint64_t stream_uuid(int64_t stream_id)
{
    return (uint64_t)stream_id * 2 + 1;
}

static uint64_t loss_uuid(int64_t stream_id)
{
    return (uint64_t)stream_id * 4 + 2;
}

static uint64_t process_uuid(int64_t pid)
{
    return (uint64_t)pid * 4;
}

static sj_status write_packet(trace_writer *writer, Perfetto__TracePacket *packet)
{
    packet->has_trusted_packet_sequence_id = true;
    packet->trusted_packet_sequence_id = 1;
    packet->has_sequence_flags = true;
    packet->sequence_flags = writer->is_begun
                                 ? PERFETTO__SEQUENCE_FLAGS__SEQ_NEEDS_INCREMENTAL_STATE
                                 : PERFETTO__SEQUENCE_FLAGS__SEQ_INCREMENTAL_STATE_CLEARED;
    writer->is_begun = true;
    return sj_message_stream_field(&writer->stream, PACKET, &packet->base);
}

static sj_status write_descriptor(trace_writer *writer, Perfetto__TrackDescriptor *descriptor)
{
    descriptor->has_uuid = true;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.track_descriptor = descriptor;
    return write_packet(writer, &packet);
}

static sj_status write_process(trace_writer *writer, const sj_call_track *track)
{
    if (sj_hash_map_find(&writer->processes, (uint64_t)track->pid, 1) != NULL) {
        return SJ_OK;
    }
    SJ_TRY(sj_hash_map_put(&writer->processes,
                           &(sj_hash_entry){.key = (uint64_t)track->pid, .sub = 1}));
    char *name = sj_clean_name(track->process_name);
    Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
    process.has_pid = true;
    process.pid = (int32_t)track->pid;
    process.process_name = name;
    Perfetto__TrackDescriptor descriptor = PERFETTO__TRACK_DESCRIPTOR__INIT;
    descriptor.uuid = process_uuid(track->pid);
    descriptor.process = &process;
    const sj_status status = name != NULL ? write_descriptor(writer, &descriptor) : SJ_ENOMEM;
    free(name);
    return status;
}

static sj_status write_track(trace_writer *writer, const sj_call_track *track)
{
    SJ_TRY(write_process(writer, track));
    char *name = sj_clean_name(track->name);
    Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;
    thread.has_pid = thread.has_tid = true;
    thread.pid = (int32_t)track->pid;
    thread.tid = (int32_t)track->number;
    thread.thread_name = name;
    Perfetto__TrackDescriptor descriptor = PERFETTO__TRACK_DESCRIPTOR__INIT;
    descriptor.uuid = stream_uuid(track->stream_id);
    descriptor.has_parent_uuid = true;
    descriptor.parent_uuid = process_uuid(track->pid);
    if (track->is_own_stack) {
        descriptor.thread = &thread;
    } else {
        descriptor.name = name;
    }
    const sj_status status = name != NULL ? write_descriptor(writer, &descriptor) : SJ_ENOMEM;
    free(name);
    return status;
}

/* Writes a packet. Adds the name of the event's function if no earlier packet has it. */
static sj_status write_event_packet(trace_writer *writer, Perfetto__TracePacket *packet,
                                    const sj_call_event *event)
{
    const uint64_t key = (uint64_t)event->function_id;
    if (!event->is_begin || sj_hash_map_find(&writer->named, key, 1) != NULL) {
        return write_packet(writer, packet);
    }
    SJ_TRY(sj_hash_map_put(&writer->named, &(sj_hash_entry){.key = key, .sub = 1}));
    Perfetto__EventName name = PERFETTO__EVENT_NAME__INIT;
    name.has_iid = true;
    name.iid = key + 1;
    name.name = sj_clean_name(event->name);
    Perfetto__InternedData interned = PERFETTO__INTERNED_DATA__INIT;
    Perfetto__EventName *names[] = {&name};
    interned.n_event_names = 1;
    interned.event_names = names;
    packet->interned_data = &interned;
    const sj_status status = name.name != NULL ? write_packet(writer, packet) : SJ_ENOMEM;
    free(name.name);
    return status;
}

static size_t set_categories(const sj_call_event *event, char *categories[3])
{
    size_t count = 0;
    if (event->is_estimate) {
        categories[count++] = "estimate";
    }
    if (event->is_tail_call) {
        categories[count++] = "tail_call";
    }
    if (strcmp(event->ending, "open") == 0 || strcmp(event->ending, "truncated") == 0) {
        categories[count++] = (char *)event->ending;
    }
    return count;
}

static sj_status write_begin(trace_writer *writer, Perfetto__TracePacket *packet,
                             const sj_call_event *event)
{
    Perfetto__TrackEvent *slice = packet->track_event;
    char *categories[3];
    slice->n_categories = set_categories(event, categories);
    slice->categories = categories;
    slice->has_name_iid = true;
    slice->name_iid = (uint64_t)event->function_id + 1;
    Perfetto__DebugAnnotation recorded = PERFETTO__DEBUG_ANNOTATION__INIT;
    Perfetto__DebugAnnotation *annotations[] = {&recorded};
    recorded.name = "recorded";
    SJ_TRY(sj_call_arguments_text(&writer->arguments, event->function_id, event->call_id,
                                  &recorded.legacy_json_value, writer->error));
    slice->n_debug_annotations = recorded.legacy_json_value != NULL ? 1 : 0;
    slice->debug_annotations = annotations;
    const sj_status status = write_event_packet(writer, packet, event);
    free(recorded.legacy_json_value);
    return status;
}

static sj_status write_event(void *context, const sj_call_event *event)
{
    trace_writer *writer = context;
    if (writer->stream_id != event->track->stream_id) {
        writer->stream_id = event->track->stream_id;
        writer->last_ns = 0;
        SJ_TRY(write_track(writer, event->track));
    }
    writer->last_ns = event->at_ns > writer->last_ns ? event->at_ns : writer->last_ns;
    Perfetto__TrackEvent slice = PERFETTO__TRACK_EVENT__INIT;
    slice.has_type = true;
    slice.type = event->is_begin ? PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN
                                 : PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END;
    slice.has_track_uuid = true;
    slice.track_uuid = stream_uuid(event->track->stream_id);
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.has_timestamp = true;
    packet.timestamp = (uint64_t)writer->last_ns;
    packet.track_event = &slice;
    return event->is_begin ? write_begin(writer, &packet, event)
                           : write_event_packet(writer, &packet, event);
}

static sj_status write_loss(trace_writer *writer, int64_t stream_id, int64_t at_ns, int64_t calls)
{
    Perfetto__TrackEvent counter = PERFETTO__TRACK_EVENT__INIT;
    counter.has_type = true;
    counter.type = PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER;
    counter.has_track_uuid = true;
    counter.track_uuid = loss_uuid(stream_id);
    counter.has_counter_value = true;
    counter.counter_value = calls;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.has_timestamp = true;
    packet.timestamp = at_ns > 0 ? (uint64_t)at_ns : 0;
    packet.track_event = &counter;
    return write_packet(writer, &packet);
}

static sj_status write_loss_track(trace_writer *writer, int64_t stream_id)
{
    Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
    counter.unit_name = "calls";
    Perfetto__TrackDescriptor descriptor = PERFETTO__TRACK_DESCRIPTOR__INIT;
    descriptor.uuid = loss_uuid(stream_id);
    descriptor.name = "lost calls";
    descriptor.counter = &counter;
    descriptor.has_parent_uuid = stream_id != 0;
    descriptor.parent_uuid = stream_uuid(stream_id);
    return write_descriptor(writer, &descriptor);
}

static sj_status write_gap(void *context, sqlite3_stmt *row)
{
    trace_writer *writer = context;
    const int64_t stream_id = sqlite3_column_int64(row, 0);
    if (stream_id != writer->loss_stream_id) {
        SJ_TRY(write_loss_track(writer, stream_id));
        writer->loss_stream_id = stream_id;
    }
    SJ_TRY(
        write_loss(writer, stream_id, sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 3)));
    return write_loss(writer, stream_id, sqlite3_column_int64(row, 2), 0);
}

static sj_status write_losses(sqlite3 *database, int64_t session_id, trace_writer *writer)
{
    writer->loss_stream_id = -1;
    return sj_sql_each(database,
                       "SELECT coalesce(stream_id, 0), start_ns, end_ns, calls FROM gaps "
                       "WHERE session_id = ?1 AND calls > 0 ORDER BY 1, 2",
                       SJ_SQL_INTS(session_id), write_gap, writer, writer->error);
}

static sj_status write_perfetto(sqlite3 *database, const sj_call_part *part, FILE *output,
                                sj_error *error)
{
    trace_writer writer = {.stream = {.output = output}, .error = error};
    sj_status status = sj_call_arguments_open(database, part->session_id, &writer.arguments, error);
    if (status == SJ_OK) {
        status = sj_call_events_read(database, part, write_event, &writer, error);
    }
    if (status == SJ_OK) {
        status = write_losses(database, part->session_id, &writer);
    }
    sj_call_arguments_close(&writer.arguments);
    sj_hash_map_deinit(&writer.named);
    sj_hash_map_deinit(&writer.processes);
    sj_message_stream_deinit(&writer.stream);
    return status;
}

const sj_exporter sj_exporter_perfetto = {
    .name = "perfetto",
    .endings = ".perfetto .pftrace .perfetto-trace",
    .summary = "Perfetto's binary trace, for ui.perfetto.dev",
    .lists_calls = true,
    .write = write_perfetto,
};
