/* ctf: the Common Trace Format 1.8, a folder with a file of bytes for each track and a description
 * of them (ctf_metadata.h). An event is the begin or the end of a call. A packet has the events of
 * one track, and names its process and thread. Lost calls are discarded events of an empty packet
 * at their time. Times are ns since the start of the session; an earlier time becomes 0. Functions
 * are an enumeration, whose numbers are function ids. `recorded` has the recorded data of a call as
 * JSON (call_arguments.h).
 *
 * Design notes. A packet is kept in memory until it has PACKET_BYTES, because its head has its size
 * and its last time. Memory grows with the number of functions. */
#include "schema/queries/export/ctf.h"
#include "collector-server/export/call_arguments.h"
#include "collector-server/export/call_events.h"
#include "collector-server/export/clean_name.h"
#include "collector-server/export/ctf_metadata.h"
#include "collector-server/export/exporter.h"
#include "proto/base/array.h"
#include "proto/base/byte_buffer.h"
#include "proto/base/hash_map.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PACKET_BYTES = 1 << 16, MAGIC_BYTES = 4, BITS_OF_BYTE = 8 };

#define MAGIC 0xC1FC1FC1U

/* Offsets of the numbers of a packet's head that are known at its end. */
enum {
    AT_BEGIN = MAGIC_BYTES + SJ_CTF_UUID_BYTES + 4 + 8,
    AT_END = AT_BEGIN + 8,
    AT_CONTENT_SIZE = AT_END + 8,
    AT_PACKET_SIZE = AT_CONTENT_SIZE + 8,
    AT_DISCARDED = AT_PACKET_SIZE + 8
};

typedef struct trace_writer {
    const char *folder;
    sqlite3 *database;
    sj_error *error;
    sj_ctf_trace trace;
    sj_call_arguments_reader arguments;
    sj_hash_map known;    /* functions of the trace */
    sj_hash_map written;  /* streams that have a file */
    sqlite3_stmt *losses; /* the statement is at the next loss of the track */
    bool has_loss;
    /* The current track. */
    FILE *file; /* NULL: none */
    int64_t stream_id, pid, number;
    char *process, *thread; /* owned */
    int64_t last_ns;
    uint64_t discarded;
    sj_byte_buffer packet;
    uint64_t events;  /* in the packet */
    uint64_t packets; /* in the file */
} trace_writer;

static sj_status fail_writing(const trace_writer *writer, const char *name)
{
    return sj_fail(writer->error, SJ_EIO, "cannot write %s/%s: %s", writer->folder, name,
                   strerror(errno));
}

static FILE *open_file(const trace_writer *writer, const char *name)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof(path), "%s/%s", writer->folder, name);
    if (size < 0 || (size_t)size >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(path, "wxe");
}

static void put_text(sj_byte_buffer *packet, const char *text)
{
    sj_byte_buffer_put(packet, text, strlen(text) + 1);
}

static void begin_packet(trace_writer *writer)
{
    sj_byte_buffer *packet = &writer->packet;
    sj_byte_buffer_clear(packet);
    sj_byte_buffer_put_number(packet, MAGIC, MAGIC_BYTES);
    sj_byte_buffer_put(packet, writer->trace.uuid, SJ_CTF_UUID_BYTES);
    sj_byte_buffer_put_number(packet, 0, 4);
    sj_byte_buffer_put_number(packet, (uint64_t)writer->stream_id, 8);
    for (int i = 0; i < 5; i++) {
        sj_byte_buffer_put_number(packet, 0, 8);
    }
    sj_byte_buffer_put_number(packet, (uint64_t)writer->pid, 8);
    sj_byte_buffer_put_number(packet, (uint64_t)writer->number, 8);
    put_text(packet, writer->process);
    put_text(packet, writer->thread);
    sj_byte_buffer_set(packet, AT_BEGIN, (uint64_t)writer->last_ns, 8);
    writer->events = 0;
}

static sj_status end_packet(trace_writer *writer)
{
    sj_byte_buffer *packet = &writer->packet;
    if (packet->failed) {
        return SJ_ENOMEM;
    }
    sj_byte_buffer_set(packet, AT_END, (uint64_t)writer->last_ns, 8);
    sj_byte_buffer_set(packet, AT_CONTENT_SIZE, (uint64_t)packet->size * BITS_OF_BYTE, 8);
    sj_byte_buffer_set(packet, AT_PACKET_SIZE, (uint64_t)packet->size * BITS_OF_BYTE, 8);
    sj_byte_buffer_set(packet, AT_DISCARDED, writer->discarded, 8);
    fwrite(packet->bytes, 1, packet->size, writer->file);
    writer->packets++;
    sj_byte_buffer_clear(packet);
    return SJ_OK;
}

/* Ends the current packet if it has events. */
static sj_status flush_packet(trace_writer *writer)
{
    const bool has_events = writer->packet.size != 0 && writer->events != 0;
    return has_events ? end_packet(writer) : SJ_OK;
}

static sj_status step_losses(trace_writer *writer)
{
    const int result = sqlite3_step(writer->losses);
    writer->has_loss = result == SQLITE_ROW;
    return writer->has_loss || result == SQLITE_DONE
               ? SJ_OK
               : sj_fail(writer->error, SJ_EIO, "cannot read the losses: %s",
                         sqlite3_errmsg(writer->database));
}

/* Writes the current loss as an empty packet, which ends at `limit_ns` at the latest. Readers
 * compare the number of discarded events with that of the packet before, so there must be one. */
static sj_status write_loss(trace_writer *writer, int64_t limit_ns)
{
    const int64_t start_ns = sqlite3_column_int64(writer->losses, 0);
    const int64_t end_ns = sqlite3_column_int64(writer->losses, 1);
    SJ_TRY(flush_packet(writer));
    if (writer->packets == 0) {
        begin_packet(writer);
        SJ_TRY(end_packet(writer));
    }
    writer->last_ns = start_ns > writer->last_ns ? start_ns : writer->last_ns;
    begin_packet(writer);
    const int64_t limited_ns = end_ns < limit_ns ? end_ns : limit_ns;
    writer->last_ns = limited_ns > writer->last_ns ? limited_ns : writer->last_ns;
    writer->discarded += (uint64_t)sqlite3_column_int64(writer->losses, 2);
    SJ_TRY(end_packet(writer));
    return step_losses(writer);
}

/* Writes the losses of the track that begin before `at_ns`. */
static sj_status write_losses_before(trace_writer *writer, int64_t at_ns)
{
    while (writer->has_loss && sqlite3_column_int64(writer->losses, 0) < at_ns) {
        SJ_TRY(write_loss(writer, at_ns));
    }
    return SJ_OK;
}

/* Closes the file of the current track. */
static sj_status close_track(trace_writer *writer)
{
    const bool failed = ferror(writer->file) != 0;
    const bool closed = fclose(writer->file) == 0;
    writer->file = NULL;
    free(writer->process);
    free(writer->thread);
    writer->process = writer->thread = NULL;
    return failed || !closed ? fail_writing(writer, "a stream") : SJ_OK;
}

static sj_status end_track(trace_writer *writer)
{
    if (writer->file == NULL) {
        return SJ_OK;
    }
    sj_status status = write_losses_before(writer, INT64_MAX);
    if (status == SJ_OK) {
        status = flush_packet(writer);
    }
    const sj_status closed = close_track(writer);
    return status != SJ_OK ? status : closed;
}

/* Opens the file of a track, and finds its first loss. */
static sj_status begin_track(trace_writer *writer, const sj_call_track *track)
{
    char name[32];
    SJ_TRY(end_track(writer));
    (void)snprintf(name, sizeof(name), "stream_%" PRId64, track->stream_id);
    writer->file = open_file(writer, name);
    if (writer->file == NULL) {
        return fail_writing(writer, name);
    }
    writer->stream_id = track->stream_id;
    writer->pid = track->pid;
    writer->number = track->number;
    writer->process = sj_clean_name(track->process_name);
    writer->thread = sj_clean_name(track->name);
    writer->last_ns = 0;
    writer->discarded = 0;
    writer->events = writer->packets = 0;
    sj_byte_buffer_clear(&writer->packet);
    if (writer->process == NULL || writer->thread == NULL) {
        return SJ_ENOMEM;
    }
    SJ_TRY(sj_hash_map_put(&writer->written,
                           &(sj_hash_entry){.key = (uint64_t)track->stream_id, .sub = 1}));
    sqlite3_reset(writer->losses);
    sqlite3_bind_int64(writer->losses, 1, writer->trace.session_id);
    sqlite3_bind_int64(writer->losses, 2, track->stream_id);
    return step_losses(writer);
}

static sj_status note_function(trace_writer *writer, int64_t function_id)
{
    sj_ctf_trace *trace = &writer->trace;
    if (sj_hash_map_find(&writer->known, (uint64_t)function_id, 1) != NULL) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&trace->function_ids, &trace->function_capacity, trace->function_count,
                            1, sizeof(*trace->function_ids)));
    trace->function_ids[trace->function_count++] = function_id;
    return sj_hash_map_put(&writer->known,
                           &(sj_hash_entry){.key = (uint64_t)function_id, .sub = 1});
}

/* Appends the recorded data of a call as a text. */
static sj_status put_recorded(trace_writer *writer, const sj_call_event *event)
{
    char *text = NULL;
    SJ_TRY(sj_call_arguments_text(&writer->arguments, event->function_id, event->call_id, &text,
                                  writer->error));
    put_text(&writer->packet, text != NULL ? text : "");
    free(text);
    return SJ_OK;
}

static uint8_t number_of_ending(const char *ending)
{
    static const char *const endings[] = {"returned", "unwound", "open", "truncated"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (strcmp(endings[i], ending) == 0) {
            return (uint8_t)i;
        }
    }
    return 0;
}

static sj_status write_event(void *context, const sj_call_event *event)
{
    trace_writer *writer = context;
    sj_byte_buffer *packet = &writer->packet;
    if (writer->file == NULL || writer->stream_id != event->track->stream_id) {
        SJ_TRY(begin_track(writer, event->track));
    }
    SJ_TRY(write_losses_before(writer, event->at_ns));
    if (packet->size >= PACKET_BYTES) {
        SJ_TRY(end_packet(writer));
    }
    writer->last_ns = event->at_ns > writer->last_ns ? event->at_ns : writer->last_ns;
    if (packet->size == 0) {
        begin_packet(writer);
    }
    writer->events++;
    sj_byte_buffer_put_number(packet, event->is_begin ? SJ_CTF_CALL_BEGIN : SJ_CTF_CALL_END, 1);
    sj_byte_buffer_put_number(packet, (uint64_t)writer->last_ns, 8);
    sj_byte_buffer_put_number(packet, (uint64_t)event->function_id, 4);
    if (!event->is_begin) {
        return SJ_OK;
    }
    sj_byte_buffer_put_number(packet, number_of_ending(event->ending), 1);
    sj_byte_buffer_put_number(packet, event->is_tail_call, 1);
    sj_byte_buffer_put_number(packet, event->is_estimate, 1);
    SJ_TRY(put_recorded(writer, event));
    return note_function(writer, event->function_id);
}

static sj_status write_other_loss(void *context, sqlite3_stmt *row)
{
    trace_writer *writer = context;
    const int64_t stream_id = sqlite3_column_int64(row, 0);
    return sj_hash_map_find(&writer->written, (uint64_t)stream_id, 1) != NULL
               ? SJ_OK
               : begin_track(writer, &(sj_call_track){.stream_id = stream_id,
                                                      .name = "lost calls",
                                                      .process_name = ""});
}

/* Writes the losses of the streams that have no calls in the trace, each stream as a track. */
static sj_status write_other_losses(trace_writer *writer)
{
    SJ_TRY(sj_sql_each(writer->database,
                       "SELECT DISTINCT coalesce(stream_id, 0) FROM gaps "
                       "WHERE session_id = ?1 AND calls > 0",
                       SJ_SQL_INTS(writer->trace.session_id), write_other_loss, writer,
                       writer->error));
    return end_track(writer);
}

static sj_status write_metadata(const trace_writer *writer)
{
    FILE *file = open_file(writer, "metadata");
    if (file == NULL) {
        return fail_writing(writer, "metadata");
    }
    const sj_status status =
        sj_ctf_metadata_write(&writer->trace, writer->database, file, writer->error);
    const bool failed = ferror(file) != 0;
    const bool closed = fclose(file) == 0;
    return status == SJ_OK && (failed || !closed) ? fail_writing(writer, "metadata") : status;
}

static sj_status write_trace(trace_writer *writer, const sj_call_part *part)
{
    if (sqlite3_prepare_v2(writer->database, sj_ctf_losses_sql, -1, &writer->losses, NULL) !=
        SQLITE_OK) {
        return sj_fail(writer->error, SJ_EIO, "cannot read the losses: %s",
                       sqlite3_errmsg(writer->database));
    }
    SJ_TRY(sj_ctf_trace_read(&writer->trace, writer->database, writer->error));
    SJ_TRY(sj_call_arguments_open(writer->database, part->session_id, &writer->arguments,
                                  writer->error));
    SJ_TRY(sj_call_events_read(writer->database, part, write_event, writer, writer->error));
    SJ_TRY(end_track(writer));
    SJ_TRY(write_other_losses(writer));
    return write_metadata(writer);
}

static sj_status write_ctf(sqlite3 *database, const sj_call_part *part, const char *folder,
                           sj_error *error)
{
    trace_writer writer = {.folder = folder,
                           .database = database,
                           .error = error,
                           .trace = {.session_id = part->session_id}};
    sj_status status = write_trace(&writer, part);
    if (status == SJ_ENOMEM || status == SJ_ELIMIT) {
        status = sj_fail(error, status, "no memory for the functions of the trace");
    }
    if (writer.file != NULL) {
        (void)close_track(&writer);
    }
    sqlite3_finalize(writer.losses);
    sj_call_arguments_close(&writer.arguments);
    sj_hash_map_deinit(&writer.known);
    sj_hash_map_deinit(&writer.written);
    sj_byte_buffer_deinit(&writer.packet);
    free(writer.trace.function_ids);
    return status;
}

const sj_exporter sj_exporter_ctf = {
    .name = "ctf",
    .endings = ".ctf",
    .summary = "a folder with a CTF 1.8 trace, for babeltrace2 and Trace Compass",
    .lists_calls = true,
    .write_folder = write_ctf,
};
