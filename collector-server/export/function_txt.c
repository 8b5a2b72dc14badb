/* function.txt: one line for each entry and exit of all threads, in time order:
 *
 *   N[SECONDS,NANOSECONDS]enter:NAME tid:TID
 *   N[SECONDS,NANOSECONDS]leave:NAMEret:RESULT tid:TID
 *
 * N counts the lines from 1. The time is real time. NAME has the arguments in brackets: values if
 * they were recorded, else types. RESULT is the recorded result, "-" if none was recorded, "!" if
 * an exception or a jump ended the call, and "?" if its exit was lost. RESULT ends with " errno:N"
 * if errno was recorded. TID is the kernel's number of the thread. A line of an unknown thread has
 * no TID. A call that is still open has no exit line. A line ends with " ~" if its time is an
 * estimate, because no clock was read at the call's entry. Control characters in texts become
 * spaces.
 *
 * Design notes. A separate statement for each stream reads calls in the order of entry. The exit of
 * a call precedes the next call that is not deeper. A heap yields the stream with the earliest next
 * line. Only open calls are held in memory. */
#include "collector-server/export/exporter.h"
#include "collector-server/export/function_line.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/block/block.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S INT64_C(1000000000)
#define ESTIMATE " ~"

enum { THREAD_BYTES = 40 };

typedef struct open_call {
    char *name; /* owned; the result follows its terminating NUL */
    int64_t depth, end_ns;
    bool has_ended, is_estimate;
} open_call;

/* The columns of the statement in open_stream. */
enum {
    COLUMN_CALL,
    COLUMN_NAME,
    COLUMN_START,
    COLUMN_END,
    COLUMN_DEPTH,
    COLUMN_ENDING,
    COLUMN_FLAGS,
    COLUMN_FUNCTION
};

typedef struct line_stream {
    sqlite3_stmt *calls;
    int64_t stream_id;
    bool has_windows; /* the part has windows: calls between two windows are left out */
    sj_call_filter filter;
    bool has_call;          /* the statement is at a row, the next call */
    open_call *open;        /* a stack, the innermost call last */
    size_t count, capacity; /* of `open` */
    int64_t next_ns;        /* time of the next line */
    int64_t tid;            /* kernel's thread id; 0: unknown */
} line_stream;

typedef struct line_writer {
    FILE *output;
    sj_function_values values;
    int64_t started_ns, number;
    line_stream **heap; /* min-heap by next_ns */
    size_t heap_count;
    sqlite3 *database;
    const sj_call_part *part;
    line_stream *streams;
    size_t opened, count; /* of `streams` */
    sj_error *error;
} line_writer;

/* True if the innermost open call ends before the next call begins. The depth shows that, except in
 * a gap between two windows. */
static bool is_next_exit(const line_stream *stream)
{
    if (stream->count == 0 || !stream->has_call) {
        return stream->count != 0;
    }
    const open_call *last = &stream->open[stream->count - 1];
    return last->depth >= sqlite3_column_int64(stream->calls, COLUMN_DEPTH) ||
           (stream->has_windows && last->has_ended &&
            last->end_ns < sqlite3_column_int64(stream->calls, COLUMN_START));
}

/* Sets next_ns, the time of the stream's next line. Removes the open calls that end before it and
 * whose exit is unknown. Returns false if the stream has no further line. */
static bool find_next(line_stream *stream)
{
    while (is_next_exit(stream) && !stream->open[stream->count - 1].has_ended) {
        free(stream->open[--stream->count].name);
    }
    if (is_next_exit(stream)) {
        stream->next_ns = stream->open[stream->count - 1].end_ns;
        return true;
    }
    if (stream->has_call) {
        stream->next_ns = sqlite3_column_int64(stream->calls, COLUMN_START);
    }
    return stream->has_call;
}

static void write_line_start(line_writer *writer, int64_t at_ns, const char *what, const char *name)
{
    const int64_t real_ns = writer->started_ns + at_ns;
    fprintf(writer->output, "%lld[%lld,%lld]%s:%s", (long long)++writer->number,
            (long long)(real_ns / NS_PER_S), (long long)(real_ns % NS_PER_S), what, name);
}

static void write_line_end(line_writer *writer, const line_stream *stream, bool is_estimate)
{
    char text[THREAD_BYTES];
    sj_cut_text thread = sj_cut_text_init(text, sizeof(text));
    sj_call_text_thread(stream->tid, &thread);
    fprintf(writer->output, "%s%s\n", text, is_estimate ? ESTIMATE : "");
}

static sj_status fail_reading(const line_writer *writer, int result)
{
    return sj_fail(writer->error, sj_database_status(result), "cannot read the calls: %s",
                   sqlite3_errmsg(writer->database));
}

/* Moves the statement to the next call that the filter passes. write_lines merges the rows of many
 * statements, so this loop ends at each passed row. */
static sj_status find_call(const line_writer *writer, line_stream *stream)
{
    int result;
    while ((result = sqlite3_step(stream->calls)) == SQLITE_ROW &&
           !sj_call_filter_passes(&stream->filter, stream->stream_id,
                                  sqlite3_column_int64(stream->calls, COLUMN_DEPTH),
                                  sqlite3_column_int64(stream->calls, COLUMN_FUNCTION))) {
    }
    stream->has_call = result == SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE ? SJ_OK : fail_reading(writer, result);
}

static sj_status write_entry(line_writer *writer, line_stream *stream)
{
    sj_function_line line;
    const char *ending = (const char *)sqlite3_column_text(stream->calls, COLUMN_ENDING);
    SJ_TRY(sj_function_line_make(&writer->values, sqlite3_column_int64(stream->calls, COLUMN_CALL),
                                 (const char *)sqlite3_column_text(stream->calls, COLUMN_NAME),
                                 ending != NULL ? ending : "", &line, writer->error));
    const bool is_estimate =
        (sqlite3_column_int64(stream->calls, COLUMN_FLAGS) & SJ_CALL_UNTIMED) != 0;
    write_line_start(writer, stream->next_ns, "enter", line.name);
    write_line_end(writer, stream, is_estimate);
    SJ_TRY(sj_array_reserve(&stream->open, &stream->capacity, stream->count, 1,
                            sizeof(*stream->open)));
    const size_t name_bytes = strlen(line.name) + 1;
    const size_t result_bytes = strlen(line.result) + 1;
    char *texts = malloc(name_bytes + result_bytes);
    if (texts == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(texts, line.name, name_bytes);
    memcpy(texts + name_bytes, line.result, result_bytes);
    stream->open[stream->count++] =
        (open_call){.name = texts,
                    .is_estimate = is_estimate,
                    .depth = sqlite3_column_int64(stream->calls, COLUMN_DEPTH),
                    .end_ns = sqlite3_column_int64(stream->calls, COLUMN_END),
                    .has_ended = sqlite3_column_type(stream->calls, COLUMN_END) != SQLITE_NULL};
    return find_call(writer, stream);
}

static void write_exit(line_writer *writer, line_stream *stream)
{
    const open_call *call = &stream->open[--stream->count];
    write_line_start(writer, stream->next_ns, "leave", call->name);
    fprintf(writer->output, "ret:%s", call->name + strlen(call->name) + 1);
    write_line_end(writer, stream, call->is_estimate);
    free(call->name);
}

static void sift_down(line_writer *writer, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < writer->heap_count;
             child++) {
            least = writer->heap[child]->next_ns < writer->heap[least]->next_ns ? child : least;
        }
        if (least == at) {
            return;
        }
        line_stream *moved = writer->heap[at];
        writer->heap[at] = writer->heap[least];
        writer->heap[least] = moved;
        at = least;
    }
}

static sj_status write_lines(line_writer *writer)
{
    for (size_t i = writer->heap_count; i-- > 0;) {
        sift_down(writer, i);
    }
    while (writer->heap_count != 0) {
        line_stream *stream = writer->heap[0];
        if (is_next_exit(stream)) {
            write_exit(writer, stream);
        } else {
            SJ_TRY(write_entry(writer, stream));
        }
        if (!find_next(stream)) {
            writer->heap[0] = writer->heap[--writer->heap_count];
        }
        sift_down(writer, 0);
    }
    return SJ_OK;
}

static sj_status open_stream(const line_writer *writer, line_stream *stream)
{
    const sj_call_part *part = writer->part;
    static const char columns[] =
        "c.call_id, f.name, c.start_ns, iif(c.ending = 'open', NULL, c.end_ns), c.depth,"
        " c.ending, c.flags, c.function_id";
    sj_status status =
        sj_call_part_prepare(writer->database, part, columns,
                             "LEFT JOIN functions AS f ON f.function_id = c.function_id",
                             "AND c.stream_id = ?2", &stream->calls);
    if (status == SJ_OK) {
        status = sj_call_filter_open(&stream->filter, writer->database, part);
    }
    if (status != SJ_OK) {
        return sj_fail(writer->error, status, "cannot read the calls: %s",
                       sqlite3_errmsg(writer->database));
    }
    sqlite3_bind_int64(stream->calls, 2, stream->stream_id);
    stream->has_windows = part->selection != NULL;
    return find_call(writer, stream);
}

static void free_stream(line_stream *stream)
{
    while (stream->count != 0) {
        free(stream->open[--stream->count].name);
    }
    free(stream->open);
    sj_call_filter_close(&stream->filter);
    sqlite3_finalize(stream->calls);
}

static sj_status add_stream(void *context, sqlite3_stmt *row)
{
    line_writer *writer = context;
    if (writer->opened == writer->count) {
        return SJ_EEXIST; /* the session got a stream meanwhile */
    }
    line_stream *stream = &writer->streams[writer->opened++];
    stream->stream_id = sqlite3_column_int64(row, 0);
    stream->tid = sqlite3_column_int64(row, 1);
    SJ_TRY(open_stream(writer, stream));
    if (find_next(stream)) {
        writer->heap[writer->heap_count++] = stream;
    }
    return SJ_OK;
}

static sj_status open_streams(line_writer *writer)
{
    static const char sql[] = "SELECT s.stream_id, coalesce(t.tid, 0) FROM streams AS s "
                              "LEFT JOIN threads AS t ON t.thread_id = s.thread_id "
                              "WHERE s.session_id = ?1 ORDER BY 1";
    writer->streams = calloc(writer->count + 1, sizeof(*writer->streams));
    writer->heap = calloc(writer->count + 1, sizeof(*writer->heap));
    if (writer->streams == NULL || writer->heap == NULL) {
        return SJ_ENOMEM;
    }
    const sj_status status =
        sj_sql_each(writer->database, sql, SJ_SQL_INTS(writer->part->session_id), add_stream,
                    writer, writer->error);
    return status == SJ_EEXIST ? SJ_OK : status;
}

static sj_status write_function_txt(sqlite3 *database, const sj_call_part *part, FILE *output,
                                    sj_error *error)
{
    line_writer writer = {.output = output, .database = database, .part = part, .error = error};
    const sj_sql_binds session = SJ_SQL_INTS(part->session_id);
    int64_t count = 0;
    sj_status status =
        sj_sql_number(database, "SELECT started_realtime_ns FROM sessions WHERE session_id = ?1",
                      session, &writer.started_ns, error);
    if (status == SJ_OK) {
        status = sj_sql_number(database, "SELECT count(*) FROM streams WHERE session_id = ?1",
                               session, &count, error);
        writer.count = (size_t)count;
    }
    if (status == SJ_OK) {
        status = sj_function_values_open(database, part->session_id, &writer.values, error);
    }
    if (status == SJ_OK) {
        status = open_streams(&writer);
    }
    if (status == SJ_OK) {
        status = write_lines(&writer);
    }
    for (size_t i = 0; i < writer.opened; i++) {
        free_stream(&writer.streams[i]);
    }
    free(writer.streams);
    free(writer.heap);
    sj_function_values_close(&writer.values);
    /* a removed session has no lines */
    return status == SJ_ENOMEM      ? sj_fail(error, status, "no memory for the open calls")
           : status == SJ_ENOTFOUND ? SJ_OK
                                    : status;
}

const sj_exporter sj_exporter_function_txt = {
    .name = "function.txt",
    .summary =
        "one line for each entry and exit: N[SECONDS,NANOSECONDS]leave:NAMEret:RESULT tid:TID",
    .lists_calls = true,
    .write = write_function_txt,
};
