/* pprof: a profile for `go tool pprof` and other readers of profile.proto. Each call path is a
 * sample with two values: the number of its calls, and their self time. Readers compute inclusive
 * times from these. A location is a function, with file and line if the session has them. The
 * format cannot hold single calls, nor errors of estimates. */
#include "collector-server/export/clean_name.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/message_stream.h"
#include "export/profile.pb-c.h"
#include "proto/base/array.h"
#include "proto/base/hash_map.h"

#include <stdlib.h>

typedef Perftools__Profiles__Profile profile;

/* Indexes of the first strings of the string table. */
enum { TEXT_EMPTY, TEXT_CALLS, TEXT_COUNT, TEXT_TIME, TEXT_NANOSECONDS, TEXTS };

enum {
    COLUMN_DEPTH,
    COLUMN_FUNCTION,
    COLUMN_NAME,
    COLUMN_CALLS,
    COLUMN_SELF,
    COLUMN_FILE,
    COLUMN_LINE,
    COLUMN_SYMBOL
};

typedef struct profile_writer {
    sj_message_stream stream;
    sj_hash_map known; /* functions that were written */
    uint64_t *path;    /* the current call path: location ids, the outermost first */
    size_t path_capacity;
    uint64_t *reversed; /* the same path, the innermost first, as the format requires */
    size_t reversed_capacity;
    int64_t text_count;
} profile_writer;

/* Appends a string to the string table and writes its index to `*index`. */
static sj_status write_text(profile_writer *writer, const char *text, int64_t *index)
{
    char *clean = sj_clean_name(text != NULL ? text : "");
    if (clean == NULL) {
        return SJ_ENOMEM;
    }
    profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    part.n_string_table = 1;
    part.string_table = &clean;
    const sj_status status = sj_message_stream_part(&writer->stream, &part.base);
    free(clean);
    *index = writer->text_count++;
    return status;
}

static sj_status read_times(void *context, sqlite3_stmt *row)
{
    profile *head = context;
    head->time_nanos = sqlite3_column_int64(row, 0);
    head->duration_nanos = sqlite3_column_int64(row, 1);
    return SJ_OK;
}

static sj_status write_head(sqlite3 *database, int64_t session_id, profile_writer *writer,
                            sj_error *error)
{
    Perftools__Profiles__ValueType calls = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
    calls.type = TEXT_CALLS;
    calls.unit = TEXT_COUNT;
    Perftools__Profiles__ValueType time = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
    time.type = TEXT_TIME;
    time.unit = TEXT_NANOSECONDS;
    Perftools__Profiles__ValueType *types[] = {&calls, &time};
    char *texts[] = {"", "calls", "count", "time", "nanoseconds"};
    profile head = PERFTOOLS__PROFILES__PROFILE__INIT;
    head.n_sample_type = 2;
    head.sample_type = types;
    head.n_string_table = TEXTS;
    head.string_table = texts;
    head.default_sample_type = TEXT_TIME;
    SJ_TRY(sj_sql_each(database,
                       "SELECT started_realtime_ns, (SELECT max(last_leave_ns) FROM streams "
                       "WHERE session_id = ?1) FROM sessions WHERE session_id = ?1",
                       SJ_SQL_INTS(session_id), read_times, &head, error));
    writer->text_count = TEXTS;
    return sj_message_stream_part(&writer->stream, &head.base);
}

static sj_status write_function(profile_writer *writer, sqlite3_stmt *row)
{
    const uint64_t id = (uint64_t)sqlite3_column_int64(row, COLUMN_FUNCTION);
    Perftools__Profiles__Function function = PERFTOOLS__PROFILES__FUNCTION__INIT;
    function.id = id;
    const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
    SJ_TRY(write_text(writer, name != NULL ? name : "(unknown function)", &function.name));
    SJ_TRY(write_text(writer, (const char *)sqlite3_column_text(row, COLUMN_SYMBOL),
                      &function.system_name));
    SJ_TRY(write_text(writer, (const char *)sqlite3_column_text(row, COLUMN_FILE),
                      &function.filename));
    function.start_line = sqlite3_column_int64(row, COLUMN_LINE);
    Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT;
    line.function_id = id;
    line.line = function.start_line;
    Perftools__Profiles__Line *lines[] = {&line};
    Perftools__Profiles__Location location = PERFTOOLS__PROFILES__LOCATION__INIT;
    location.id = id;
    location.n_line = 1;
    location.line = lines;
    Perftools__Profiles__Function *functions[] = {&function};
    Perftools__Profiles__Location *locations[] = {&location};
    profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    part.n_function = 1;
    part.function = functions;
    part.n_location = 1;
    part.location = locations;
    return sj_message_stream_part(&writer->stream, &part.base);
}

static sj_status write_sample(profile_writer *writer, sqlite3_stmt *row, size_t depth)
{
    SJ_TRY(sj_array_reserve(&writer->reversed, &writer->reversed_capacity, 0, depth + 1,
                            sizeof(*writer->reversed)));
    for (size_t i = 0; i <= depth; i++) {
        writer->reversed[i] = writer->path[depth - i];
    }
    int64_t values[] = {sqlite3_column_int64(row, COLUMN_CALLS),
                        sqlite3_column_int64(row, COLUMN_SELF)};
    Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT;
    sample.n_location_id = depth + 1;
    sample.location_id = writer->reversed;
    sample.n_value = 2;
    sample.value = values;
    Perftools__Profiles__Sample *samples[] = {&sample};
    profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    part.n_sample = 1;
    part.sample = samples;
    return sj_message_stream_part(&writer->stream, &part.base);
}

static sj_status write_path(void *context, sqlite3_stmt *row)
{
    profile_writer *writer = context;
    const size_t depth = (size_t)sqlite3_column_int64(row, COLUMN_DEPTH);
    const uint64_t id = (uint64_t)sqlite3_column_int64(row, COLUMN_FUNCTION);
    SJ_TRY(
        sj_array_reserve(&writer->path, &writer->path_capacity, depth, 1, sizeof(*writer->path)));
    writer->path[depth] = id;
    if (sj_hash_map_find(&writer->known, id, 1) == NULL) {
        SJ_TRY(sj_hash_map_put(&writer->known, &(sj_hash_entry){.key = id, .sub = 1}));
        SJ_TRY(write_function(writer, row));
    }
    return sqlite3_column_int64(row, COLUMN_CALLS) != 0 ? write_sample(writer, row, depth) : SJ_OK;
}

static sj_status write_paths(sqlite3 *database, const sj_call_part *part, profile_writer *writer,
                             sj_error *error)
{
    const sj_status status = sj_sql_each(
        database,
        "SELECT t.depth, t.function_id, t.name, t.calls, t.self_ns, l.file, l.line, f.symbol "
        "FROM call_tree(?1, ?2, ?3) AS t LEFT JOIN functions AS f USING (function_id) "
        "LEFT JOIN function_lines AS l USING (function_id) WHERE ?4 = 0 OR t.depth < ?4",
        sj_call_part_tree_binds(part), write_path, writer, error);
    return status == SJ_ENOMEM ? sj_fail(error, status, "no memory for the names of a call path")
                               : status;
}

static sj_status write_pprof(sqlite3 *database, const sj_call_part *part, FILE *output,
                             sj_error *error)
{
    profile_writer writer = {.stream = {.output = output}};
    sj_status status = write_head(database, part->session_id, &writer, error);
    if (status == SJ_OK) {
        status = write_paths(database, part, &writer, error);
    }
    sj_hash_map_deinit(&writer.known);
    free(writer.path);
    free(writer.reversed);
    sj_message_stream_deinit(&writer.stream);
    return status;
}

const sj_exporter sj_exporter_pprof = {
    .name = "pprof",
    .endings = ".pprof .pb",
    .summary = "call paths with calls and self time, for go tool pprof",
    .write = write_pprof,
};
