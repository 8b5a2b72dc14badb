#include "collector-server/export/span_reader.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

typedef struct open_span {
    char *name;   /* owned */
    char *ending; /* owned */
    int64_t call_id, start_ns;
} open_span;

typedef struct span_reader {
    const sj_span_receiver *receiver;
    void *context;
    uint8_t trace_id[SJ_TRACE_ID_BYTES];
    int64_t started_ns;  /* start of the session since the Unix epoch */
    sj_call_track track; /* a copy of the current track; its names are owned */
    int64_t last_ns;     /* the latest time on it */
    open_span *open;
    size_t count, capacity;
} span_reader;

static sj_status pop_span(span_reader *reader, int64_t at_ns)
{
    open_span *span = &reader->open[--reader->count];
    const int64_t end_ns = at_ns > span->start_ns ? at_ns : span->start_ns;
    const sj_status status = reader->receiver->receive(
        reader->context,
        &(sj_span){.trace_id = reader->trace_id,
                   .track = &reader->track,
                   .name = span->name,
                   .ending = span->ending,
                   .call_id = span->call_id,
                   .parent_id = reader->count != 0 ? reader->open[reader->count - 1].call_id : 0,
                   .start_ns = reader->started_ns + span->start_ns,
                   .end_ns = reader->started_ns + end_ns});
    free(span->name);
    free(span->ending);
    return status;
}

static sj_status push_span(span_reader *reader, const sj_call_event *event)
{
    SJ_TRY(sj_array_reserve(&reader->open, &reader->capacity, reader->count, 1,
                            sizeof(*reader->open)));
    open_span *span = &reader->open[reader->count++];
    *span = (open_span){.name = strdup(event->name),
                        .ending = strdup(event->ending),
                        .call_id = event->call_id,
                        .start_ns = event->at_ns};
    return span->name != NULL && span->ending != NULL ? SJ_OK : SJ_ENOMEM;
}

/* Ends the open spans of the track at its latest time. */
static sj_status end_track(span_reader *reader)
{
    while (reader->count != 0) {
        SJ_TRY(pop_span(reader, reader->last_ns));
    }
    return reader->track.name != NULL ? reader->receiver->end_track(reader->context, &reader->track)
                                      : SJ_OK;
}

static void forget_track(span_reader *reader)
{
    while (reader->count != 0) {
        const open_span *span = &reader->open[--reader->count];
        free(span->name);
        free(span->ending);
    }
    free(reader->track.name);
    free(reader->track.process_name);
    reader->track = (sj_call_track){0};
}

static sj_status begin_track(span_reader *reader, const sj_call_track *track)
{
    SJ_TRY(end_track(reader));
    forget_track(reader);
    reader->track = *track;
    reader->track.name = strdup(track->name);
    reader->track.process_name = strdup(track->process_name);
    return reader->track.name != NULL && reader->track.process_name != NULL ? SJ_OK : SJ_ENOMEM;
}

static sj_status read_event(void *context, const sj_call_event *event)
{
    span_reader *reader = context;
    if (reader->track.stream_id != event->track->stream_id) {
        SJ_TRY(begin_track(reader, event->track));
        reader->last_ns = event->at_ns;
    }
    reader->last_ns = event->at_ns > reader->last_ns ? event->at_ns : reader->last_ns;
    if (event->is_begin) {
        return push_span(reader, event);
    }
    return reader->count != 0 ? pop_span(reader, event->at_ns) : SJ_OK;
}

/* Reads the start of the session, and the number of the trace. */
static sj_status read_session(sqlite3 *database, int64_t session_id, span_reader *reader,
                              sj_error *error)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(
        database, "SELECT started_realtime_ns, uuid FROM sessions WHERE session_id = ?1", -1, &row,
        NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        result = sqlite3_step(row);
    }
    if (result == SQLITE_ROW) {
        reader->started_ns = sqlite3_column_int64(row, 0);
        if (sqlite3_column_bytes(row, 1) == SJ_TRACE_ID_BYTES) {
            memcpy(reader->trace_id, sqlite3_column_blob(row, 1), SJ_TRACE_ID_BYTES);
        }
    }
    sqlite3_finalize(row);
    return result == SQLITE_ROW
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read the session: %s", sqlite3_errmsg(database));
}

sj_status sj_spans_read(sqlite3 *database, const sj_call_part *part, const char *format,
                        const sj_span_receiver *receiver, void *context, sj_error *error)
{
    span_reader reader = {.receiver = receiver, .context = context};
    if (!sj_call_part_is_limited(part)) {
        return sj_fail(error, SJ_EINVAL,
                       "%s has a span for each call: choose a part of the session, for example "
                       "with --function, --mark or --depth",
                       format);
    }
    SJ_TRY(read_session(database, part->session_id, &reader, error));
    sj_status status = sj_call_events_read(database, part, read_event, &reader, error);
    if (status == SJ_OK) {
        status = end_track(&reader);
    }
    if (status == SJ_ENOMEM || status == SJ_ELIMIT) {
        status = sj_fail(error, status, "no memory for the open calls");
    }
    forget_track(&reader);
    free(reader.open);
    return status;
}
