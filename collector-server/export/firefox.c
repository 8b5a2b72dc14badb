/* firefox: the processed profile of the Firefox Profiler (profiler.firefox.com), version 61 of its
 * format (docs-developer/CHANGELOG-formats.md of the Profiler). A track is a thread. A thread has a
 * sample at each entry and exit: the call stack from then on, and as its weight the time until the
 * next sample. So the self and total times of the samples are those of the calls. Lost calls are
 * markers. The format cannot hold single calls, their number, values, estimates, and moments
 * shorter than a ns. A call without an end event (call_events.h) ends with its track.
 *
 * Design notes. The file has the stacks, times and weights of a thread as three lists, one after
 * the other. Stacks are written as the calls are read. Meanwhile a temporary file keeps the
 * differences of the times, some three bytes a sample. Memory grows with the number of call stacks.
 */
#include "schema/queries/export/firefox.h"
#include "collector-server/export/call_events.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/firefox_tables.h"
#include "collector-server/export/json_text.h"
#include "proto/base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Columns of sj_firefox_losses_sql. */
enum { LOSS_STREAM, LOSS_CALLS, LOSS_START, LOSS_END };

enum { NS_OF_MS = 1000000, VARINT_BITS = 7, VARINT_MORE = 0x80 };

typedef struct profile_writer {
    FILE *output;
    FILE *times; /* the current thread: differences of the times of its samples, as varints */
    sqlite3 *database;
    sj_error *error;
    int64_t session_id;
    sj_firefox_tables tables;
    sj_hash_map written; /* streams that are threads of the file */
    int64_t stream_id;   /* the current thread; 0: none */
    uint32_t *open;      /* 1 + index of the stacks of the open calls */
    size_t open_count, open_capacity;
    uint32_t stack;         /* 1 + index of the current stack; 0: no call is open */
    bool is_begun;          /* the current stack begins with an entry */
    int64_t first_ns;       /* time of the first sample */
    int64_t last_ns;        /* begin of the current stack */
    int64_t last_sample_ns; /* time of the last written sample */
    uint64_t samples;
    bool has_other_losses; /* streams that are not in the file lost calls */
} profile_writer;

static void write_ms(FILE *output, int64_t ns)
{
    const uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    fprintf(output, "%s%" PRIu64 ".%06u", ns < 0 ? "-" : "", size / NS_OF_MS,
            (unsigned)(size % NS_OF_MS));
}

static void write_difference(FILE *file, uint64_t difference)
{
    while (difference >> VARINT_BITS != 0) {
        fputc((int)(difference & (VARINT_MORE - 1)) | VARINT_MORE, file);
        difference >>= VARINT_BITS;
    }
    fputc((int)difference, file);
}

static int64_t read_difference(FILE *file)
{
    uint64_t difference = 0;
    for (unsigned shift = 0; shift < 64; shift += VARINT_BITS) {
        const int byte = fgetc(file);
        if (byte == EOF) {
            break;
        }
        difference |= (uint64_t)(byte & (VARINT_MORE - 1)) << shift;
        if ((byte & VARINT_MORE) == 0) {
            break;
        }
    }
    return (int64_t)difference;
}

/* Writes the current stack as a sample. */
static void write_sample(profile_writer *writer)
{
    if (writer->samples == 0) {
        writer->first_ns = writer->last_sample_ns = writer->last_ns;
    } else {
        fputc(',', writer->output);
        write_difference(writer->times, (uint64_t)(writer->last_ns - writer->last_sample_ns));
    }
    if (writer->stack == 0) {
        fputs("null", writer->output);
    } else {
        fprintf(writer->output, "%" PRIu32, writer->stack - 1);
    }
    writer->last_sample_ns = writer->last_ns;
    writer->samples++;
}

static void write_times(profile_writer *writer)
{
    int64_t at_ns = writer->first_ns;
    rewind(writer->times);
    for (uint64_t i = 0; i < writer->samples; i++) {
        if (i != 0) {
            fputc(',', writer->output);
            at_ns += read_difference(writer->times);
        }
        write_ms(writer->output, at_ns);
    }
}

/* The last sample of a thread has the weight 0. */
static void write_weights(profile_writer *writer)
{
    rewind(writer->times);
    for (uint64_t i = 0; i < writer->samples; i++) {
        const bool is_last = i + 1 == writer->samples;
        write_ms(writer->output, is_last ? 0 : read_difference(writer->times));
        if (!is_last) {
            fputc(',', writer->output);
        }
    }
}

/* One column of the lost calls of a thread. */
typedef struct loss_column {
    profile_writer *writer;
    int column; /* LOSS_CALLS, LOSS_START or LOSS_END */
    uint64_t count;
} loss_column;

static sj_status write_loss(void *context, sqlite3_stmt *row)
{
    loss_column *losses = context;
    profile_writer *writer = losses->writer;
    const uint64_t stream = (uint64_t)sqlite3_column_int64(row, LOSS_STREAM);
    if (writer->stream_id == 0 && sj_hash_map_find(&writer->written, stream, 1) != NULL) {
        return SJ_OK;
    }
    if (losses->count++ != 0) {
        fputc(',', writer->output);
    }
    if (losses->column == LOSS_CALLS) {
        fprintf(writer->output, "{\"type\":\"LostCalls\",\"calls\":%lld}",
                (long long)sqlite3_column_int64(row, LOSS_CALLS));
    } else {
        write_ms(writer->output, sqlite3_column_int64(row, losses->column));
    }
    return SJ_OK;
}

/* Writes one column of the lost calls of the current thread, and counts them. Without a thread: of
 * all streams that are not threads of the file. */
static sj_status write_loss_column(profile_writer *writer, int column, uint64_t *count)
{
    loss_column losses = {.writer = writer, .column = column};
    SJ_TRY(sj_sql_each(writer->database, sj_firefox_losses_sql,
                       SJ_SQL_INTS(writer->session_id, writer->stream_id), write_loss, &losses,
                       writer->error));
    *count = losses.count;
    return SJ_OK;
}

static void write_constants(FILE *output, const char *key, int value, uint64_t count)
{
    fprintf(output, "],\n\"%s\":[", key);
    for (uint64_t i = 0; i < count; i++) {
        fprintf(output, i == 0 ? "%d" : ",%d", value);
    }
}

static sj_status write_losses(profile_writer *writer)
{
    enum { PHASE_INTERVAL = 1 };
    uint64_t count;
    fputs("\"markers\":{\"data\":[", writer->output);
    SJ_TRY(write_loss_column(writer, LOSS_CALLS, &count));
    fputs("],\n\"startTime\":[", writer->output);
    SJ_TRY(write_loss_column(writer, LOSS_START, &count));
    fputs("],\n\"endTime\":[", writer->output);
    SJ_TRY(write_loss_column(writer, LOSS_END, &count));
    write_constants(writer->output, "name", SJ_FIREFOX_TEXT_LOSS, count);
    write_constants(writer->output, "phase", PHASE_INTERVAL, count);
    write_constants(writer->output, "category", 0, count);
    fprintf(writer->output, "],\"length\":%" PRIu64 "}", count);
    return SJ_OK;
}

static void begin_thread(profile_writer *writer, const char *name, const char *process, int64_t pid,
                         int64_t number, bool is_main)
{
    FILE *output = writer->output;
    fputs(writer->written.count != 0 ? ",\n{\"name\":" : "\n{\"name\":", output);
    sj_json_text(output, name);
    fputs(",\"processName\":", output);
    sj_json_text(output, process);
    fprintf(output,
            ",\"pid\":\"%" PRId64 "\",\"tid\":%" PRId64 ",\"isMainThread\":%s,"
            "\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
            "\"pausedRanges\":[],\"showMarkersInTimeline\":true,\n"
            "\"samples\":{\"weightType\":\"tracing-ms\",\"stack\":[",
            pid, number, is_main ? "true" : "false");
    writer->samples = 0;
    writer->open_count = 0;
    writer->stack = 0;
    writer->is_begun = false;
}

static sj_status end_thread(profile_writer *writer)
{
    FILE *output = writer->output;
    if (fflush(writer->times) != 0 || ferror(writer->times)) {
        return sj_fail(writer->error, SJ_EIO, "cannot write a temporary file: %s", strerror(errno));
    }
    fputs("],\n\"time\":[", output);
    write_times(writer);
    fputs("],\n\"weight\":[", output);
    write_weights(writer);
    fprintf(output, "],\"length\":%" PRIu64 "},\n", writer->samples);
    if (ferror(writer->times) || feof(writer->times)) {
        return sj_fail(writer->error, SJ_EIO, "cannot read a temporary file: %s", strerror(errno));
    }
    SJ_TRY(write_losses(writer));
    fputs(",\n\"registerTime\":", output);
    write_ms(output, writer->samples != 0 ? writer->first_ns : 0);
    fputs(",\"unregisterTime\":", output);
    if (writer->samples != 0) {
        write_ms(output, writer->last_ns);
    } else {
        fputs("null", output);
    }
    fputc('}', output);
    return SJ_OK;
}

static sj_status end_stream(profile_writer *writer)
{
    if (writer->stream_id == 0) {
        return SJ_OK;
    }
    write_sample(writer);
    const sj_status status = end_thread(writer);
    writer->stream_id = 0;
    return status;
}

static sj_status begin_stream(profile_writer *writer, const sj_call_event *event)
{
    const sj_call_track *track = event->track;
    SJ_TRY(end_stream(writer));
    rewind(writer->times);
    if (fflush(writer->times) != 0 || ftruncate(fileno(writer->times), 0) != 0) {
        return sj_fail(writer->error, SJ_EIO, "cannot empty a temporary file: %s", strerror(errno));
    }
    begin_thread(writer, track->name, track->process_name, track->pid, track->number,
                 track->is_own_stack && track->pid == track->number);
    writer->stream_id = track->stream_id;
    writer->last_ns = event->at_ns;
    return sj_hash_map_put(&writer->written,
                           &(sj_hash_entry){.key = (uint64_t)track->stream_id, .sub = 1});
}

static sj_status push_call(profile_writer *writer, int64_t function_id)
{
    uint32_t stack;
    SJ_TRY(sj_firefox_tables_stack(&writer->tables, writer->stack, function_id, &stack));
    SJ_TRY(sj_array_reserve(&writer->open, &writer->open_capacity, writer->open_count, 1,
                            sizeof(*writer->open)));
    writer->open[writer->open_count++] = writer->stack = stack + 1;
    return SJ_OK;
}

static void pop_call(profile_writer *writer)
{
    writer->open_count -= writer->open_count != 0 ? 1 : 0;
    writer->stack = writer->open_count != 0 ? writer->open[writer->open_count - 1] : 0;
}

/* A stack after an exit has no sample of its own if the next event has the same time. */
static sj_status write_event(void *context, const sj_call_event *event)
{
    profile_writer *writer = context;
    const bool is_first = writer->stream_id != event->track->stream_id;
    if (is_first) {
        SJ_TRY(begin_stream(writer, event));
    }
    if (!is_first && (writer->is_begun || event->at_ns > writer->last_ns)) {
        write_sample(writer);
    }
    writer->last_ns = event->at_ns > writer->last_ns ? event->at_ns : writer->last_ns;
    writer->is_begun = event->is_begin;
    if (event->is_begin) {
        return push_call(writer, event->function_id);
    }
    pop_call(writer);
    return SJ_OK;
}

static sj_status find_other_loss(void *context, sqlite3_stmt *row)
{
    profile_writer *writer = context;
    const uint64_t stream = (uint64_t)sqlite3_column_int64(row, 0);
    writer->has_other_losses |= sj_hash_map_find(&writer->written, stream, 1) == NULL;
    return SJ_OK;
}

/* Writes a thread without samples that has the losses of all streams that are not in the file, if
 * there are any. */
static sj_status write_other_losses(profile_writer *writer)
{
    SJ_TRY(sj_sql_each(writer->database,
                       "SELECT DISTINCT coalesce(stream_id, 0) FROM gaps "
                       "WHERE session_id = ?1 AND calls > 0",
                       SJ_SQL_INTS(writer->session_id), find_other_loss, writer, writer->error));
    if (!writer->has_other_losses) {
        return SJ_OK;
    }
    begin_thread(writer, "lost calls of other threads", "", 0, 0, false);
    return end_thread(writer);
}

static sj_status write_head(profile_writer *writer)
{
    static const char marker[] =
        "{\"name\":\"LostCalls\",\"display\":[\"marker-chart\",\"marker-table\","
        "\"timeline-overview\"],\"tooltipLabel\":\"Lost calls\",\"tableLabel\":"
        "\"{marker.data.calls} calls were lost\",\"fields\":[{\"key\":\"calls\",\"label\":"
        "\"Calls\",\"format\":\"integer\"}]}";
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(writer->database,
                                    "SELECT started_realtime_ns, coalesce(nullif(name, ''), "
                                    "command) FROM sessions WHERE session_id = ?1",
                                    -1, &row, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, writer->session_id);
        result = sqlite3_step(row);
    }
    if (result == SQLITE_ROW) {
        const char *product = (const char *)sqlite3_column_text(row, 1);
        fputs("{\"meta\":{\"startTime\":", writer->output);
        write_ms(writer->output, sqlite3_column_int64(row, 0));
        fputs(",\"product\":", writer->output);
        sj_json_text(writer->output, product != NULL ? product : "");
        fprintf(writer->output,
                ",\"importedFrom\":\"Sojourn\",\"version\":31,\"preprocessedProfileVersion\":61,"
                "\"interval\":1,\"processType\":0,\"stackwalk\":1,\"symbolicated\":true,"
                "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
                "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},"
                "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":"
                "[\"Other\"]}],\"markerSchema\":[%s]},\n\"libs\":[],\"pages\":[],\"threads\":[",
                marker);
    }
    sqlite3_finalize(row);
    return result == SQLITE_ROW ? SJ_OK
                                : sj_fail(writer->error, SJ_EIO, "cannot read the session: %s",
                                          sqlite3_errmsg(writer->database));
}

static sj_status write_profile(profile_writer *writer, const sj_call_part *part)
{
    SJ_TRY(write_head(writer));
    SJ_TRY(sj_call_events_read(writer->database, part, write_event, writer, writer->error));
    SJ_TRY(end_stream(writer));
    SJ_TRY(write_other_losses(writer));
    fputs("],\n", writer->output);
    SJ_TRY(
        sj_firefox_tables_write(&writer->tables, writer->database, writer->output, writer->error));
    fputs("}\n", writer->output);
    return SJ_OK;
}

static sj_status write_firefox(sqlite3 *database, const sj_call_part *part, FILE *output,
                               sj_error *error)
{
    profile_writer writer = {.output = output,
                             .times = tmpfile(),
                             .database = database,
                             .session_id = part->session_id,
                             .error = error};
    sj_status status =
        writer.times != NULL
            ? write_profile(&writer, part)
            : sj_fail(error, SJ_EIO, "cannot create a temporary file: %s", strerror(errno));
    if (status == SJ_ENOMEM || status == SJ_ELIMIT) {
        status = sj_fail(error, status, "no memory for the call stacks");
    }
    if (writer.times != NULL) {
        fclose(writer.times);
    }
    sj_hash_map_deinit(&writer.written);
    sj_firefox_tables_deinit(&writer.tables);
    free(writer.open);
    return status;
}

const sj_exporter sj_exporter_firefox = {
    .name = "firefox",
    .endings = ".firefox.json .firefox",
    .summary = "call stacks over time, for profiler.firefox.com",
    .lists_calls = true,
    .write = write_firefox,
};
