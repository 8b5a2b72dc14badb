/* Design notes. Calls are read in the order of their ids: stream by stream, in the order of
 * entry. */
#include "collector-server/export/call_events.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/block/block.h"
#include "schema/queries/export/call_events.h"

#include <stdlib.h>
#include <string.h>

/* The columns of the statement in sj_call_events_read. */
enum {
    COLUMN_NAME,
    COLUMN_START,
    COLUMN_END,
    COLUMN_PID,
    COLUMN_TRACK,
    COLUMN_FUNCTION,
    COLUMN_CALL,
    COLUMN_FLAGS,
    COLUMN_ENDING,
    COLUMN_STREAM,
    COLUMN_DEPTH,
    COLUMN_TAIL_CALLER,
    COLUMN_OWN_STACK,
    COLUMN_THREAD_NAME,
    COLUMN_PROCESS_NAME
};

typedef struct open_call {
    int64_t depth, end_ns, function_id;
    size_t name_at; /* offset in event_reader.names */
    bool has_end;
} open_call;

typedef struct event_reader {
    sj_call_event_receiver receive;
    void *context;
    sj_call_filter filter;
    bool has_windows; /* calls between two windows of a stream are left out */
    sj_call_track track;
    open_call *open;
    size_t count, capacity;
    char *names; /* names of the open calls, each terminated by NUL */
    size_t names_capacity;
} event_reader;

/* Removes the innermost open call and passes its end event. If the end of the call is unknown, its
 * nearest caller with an end determines it, or `next_ns` if that is earlier. `next_ns` is the start
 * of the next call, which is not inside the removed one; NULL: there is no further call. Passes
 * nothing if neither is known. */
static sj_status pass_end(event_reader *reader, const int64_t *next_ns)
{
    const open_call *call = &reader->open[--reader->count];
    const open_call *caller_with_end = call;
    while (!caller_with_end->has_end && caller_with_end > reader->open) {
        --caller_with_end;
    }
    int64_t end_ns = caller_with_end->has_end ? caller_with_end->end_ns : 0;
    if (next_ns != NULL && (!caller_with_end->has_end || (!call->has_end && *next_ns < end_ns))) {
        end_ns = *next_ns;
    }
    if (!caller_with_end->has_end && next_ns == NULL) {
        return SJ_OK;
    }
    return reader->receive(reader->context, &(sj_call_event){.track = &reader->track,
                                                             .name = reader->names + call->name_at,
                                                             .function_id = call->function_id,
                                                             .at_ns = end_ns});
}

/* Passes the ends of the open calls whose depth is at least `depth`. */
static sj_status pass_ends(event_reader *reader, int64_t depth, const int64_t *next_ns)
{
    while (reader->count != 0 && reader->open[reader->count - 1].depth >= depth) {
        SJ_TRY(pass_end(reader, next_ns));
    }
    return SJ_OK;
}

/* Passes the ends of the open calls that ended before the next call begins, at `start_ns`. Only
 * needed after a gap between two windows: there, the depth does not show that these calls ended. */
static sj_status pass_earlier_ends(event_reader *reader, int64_t start_ns)
{
    while (reader->has_windows && reader->count != 0) {
        const open_call *last = &reader->open[reader->count - 1];
        if (!last->has_end || last->end_ns >= start_ns) {
            break;
        }
        SJ_TRY(pass_end(reader, &start_ns));
    }
    return SJ_OK;
}

static sj_status push_call(event_reader *reader, sqlite3_stmt *row, const char *name)
{
    const open_call *last = reader->count != 0 ? &reader->open[reader->count - 1] : NULL;
    const size_t at = last != NULL ? last->name_at + strlen(reader->names + last->name_at) + 1 : 0;
    const size_t bytes = strlen(name) + 1;
    SJ_TRY(sj_array_reserve(&reader->names, &reader->names_capacity, at, bytes, 1));
    SJ_TRY(sj_array_reserve(&reader->open, &reader->capacity, reader->count, 1,
                            sizeof(*reader->open)));
    memcpy(reader->names + at, name, bytes);
    reader->open[reader->count++] =
        (open_call){.depth = sqlite3_column_int64(row, COLUMN_DEPTH),
                    .end_ns = sqlite3_column_int64(row, COLUMN_END),
                    .function_id = sqlite3_column_int64(row, COLUMN_FUNCTION),
                    .name_at = at,
                    .has_end = sqlite3_column_type(row, COLUMN_END) != SQLITE_NULL};
    return SJ_OK;
}

static char *dup_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return strdup(text != NULL ? text : "");
}

static void end_track(sj_call_track *track)
{
    free(track->name);
    free(track->process_name);
    *track = (sj_call_track){0};
}

static sj_status begin_track(event_reader *reader, sqlite3_stmt *row)
{
    SJ_TRY(pass_ends(reader, 0, NULL));
    end_track(&reader->track);
    reader->track = (sj_call_track){.stream_id = sqlite3_column_int64(row, COLUMN_STREAM),
                                    .pid = sqlite3_column_int64(row, COLUMN_PID),
                                    .number = sqlite3_column_int64(row, COLUMN_TRACK),
                                    .is_own_stack = sqlite3_column_int(row, COLUMN_OWN_STACK) != 0,
                                    .name = dup_text(row, COLUMN_THREAD_NAME),
                                    .process_name = dup_text(row, COLUMN_PROCESS_NAME)};
    return reader->track.name != NULL && reader->track.process_name != NULL ? SJ_OK : SJ_ENOMEM;
}

static sj_status pass_call(event_reader *reader, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
    const char *ending = (const char *)sqlite3_column_text(row, COLUMN_ENDING);
    if (reader->track.stream_id != sqlite3_column_int64(row, COLUMN_STREAM)) {
        SJ_TRY(begin_track(reader, row));
    }
    const sj_call_event event = {
        .track = &reader->track,
        .name = name != NULL ? name : "(unknown function)",
        .ending = ending != NULL ? ending : "",
        .function_id = sqlite3_column_int64(row, COLUMN_FUNCTION),
        .call_id = sqlite3_column_int64(row, COLUMN_CALL),
        .at_ns = sqlite3_column_int64(row, COLUMN_START),
        .is_begin = true,
        .is_tail_call = sqlite3_column_type(row, COLUMN_TAIL_CALLER) != SQLITE_NULL,
        .is_estimate = (sqlite3_column_int64(row, COLUMN_FLAGS) & SJ_CALL_UNTIMED) != 0};
    SJ_TRY(pass_ends(reader, sqlite3_column_int64(row, COLUMN_DEPTH), &event.at_ns));
    SJ_TRY(pass_earlier_ends(reader, event.at_ns));
    SJ_TRY(reader->receive(reader->context, &event));
    return push_call(reader, row, event.name);
}

static sj_status read_row(void *context, sqlite3_stmt *row)
{
    event_reader *reader = context;
    return sj_call_filter_passes(&reader->filter, sqlite3_column_int64(row, COLUMN_STREAM),
                                 sqlite3_column_int64(row, COLUMN_DEPTH),
                                 sqlite3_column_int64(row, COLUMN_FUNCTION))
               ? pass_call(reader, row)
               : SJ_OK;
}

static sj_status read_rows(sqlite3_stmt *row, event_reader *reader, sj_error *error)
{
    sj_status status = sj_sql_each_row(row, read_row, reader, error);
    if (status == SJ_OK) {
        status = pass_ends(reader, 0, NULL);
    }
    return status == SJ_ENOMEM || status == SJ_ELIMIT
               ? sj_fail(error, status, "no memory for the open calls")
               : status;
}

sj_status sj_call_events_read(sqlite3 *database, const sj_call_part *part,
                              sj_call_event_receiver receive, void *context, sj_error *error)
{
    sqlite3_stmt *row;
    if (sj_call_part_prepare(database, part, sj_call_events_columns_sql, sj_call_events_joins_sql,
                             "", &row) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the calls: %s", sqlite3_errmsg(database));
    }
    event_reader reader = {
        .receive = receive, .context = context, .has_windows = part->selection != NULL};
    sj_status status = sj_call_filter_open(&reader.filter, database, part);
    status = status == SJ_OK ? read_rows(row, &reader, error)
                             : sj_fail(error, status, "cannot read the chosen functions");
    sj_call_filter_close(&reader.filter);
    end_track(&reader.track);
    free(reader.open);
    free(reader.names);
    sqlite3_finalize(row);
    return status;
}
