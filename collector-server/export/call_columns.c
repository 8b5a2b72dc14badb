/* Design notes. The index of a name is the rank of its function id among the ids of all functions
 * of the session's modules. The ids of a module's functions are consecutive, so few ranges are
 * needed. */
#include "collector-server/export/call_columns.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"
#include "proto/base/utf8_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_STREAM_ID = 2,
    COLUMN_FUNCTION_ID = 4,
    COLUMN_DEPTH = 6,
    COLUMN_START_NS = 7,
    COLUMN_END_NS,
    COLUMN_ENDING = 11,
    COLUMN_FLAGS,
    SQL_COLUMNS, /* the columns below are computed; the columns above are columns of calls_sql */
    COLUMN_FUNCTION = SQL_COLUMNS,
    COLUMN_START_TIME,
    COLUMN_END_TIME
};

const sj_call_column sj_call_columns[SJ_CALL_COLUMNS] = {
    {"call_id", SJ_CALL_LONG, false},    {"session_id", SJ_CALL_LONG, false},
    {"stream_id", SJ_CALL_LONG, false},  {"thread_id", SJ_CALL_LONG, true},
    {"function_id", SJ_CALL_LONG, true}, {"parent_id", SJ_CALL_LONG, true},
    {"depth", SJ_CALL_INT, false},       {"start_ns", SJ_CALL_LONG, false},
    {"end_ns", SJ_CALL_LONG, true},      {"duration_ns", SJ_CALL_LONG, true},
    {"self_ns", SJ_CALL_LONG, true},     {"ending", SJ_CALL_ENDING, false},
    {"flags", SJ_CALL_INT, false},       {"function", SJ_CALL_FUNCTION, true},
    {"start_time", SJ_CALL_TIME, false}, {"end_time", SJ_CALL_TIME, true},
};

static const char calls_sql[] =
    "c.call_id, c.session_id, c.stream_id, c.thread_id, c.function_id, c.parent_id, c.depth, "
    "c.start_ns, c.end_ns, c.duration_ns, c.self_ns, c.ending, c.flags";

const char *const sj_call_endings[SJ_CALL_ENDINGS] = {"returned", "unwound", "open", "truncated"};

static sj_status fail_reading(const sj_call_reader *reader, sj_error *error)
{
    return sj_fail(error, SJ_EIO, "cannot read the calls: %s", sqlite3_errmsg(reader->database));
}

static sj_status prepare(const sj_call_reader *reader, const char *sql, sqlite3_stmt **statement,
                         sj_error *error)
{
    return sqlite3_prepare_v2(reader->database, sql, -1, statement, NULL) == SQLITE_OK
               ? SJ_OK
               : fail_reading(reader, error);
}

static sj_status add_function(void *context, sqlite3_stmt *row)
{
    sj_call_reader *reader = context;
    const int64_t id = sqlite3_column_int64(row, 0);
    const char *name = (const char *)sqlite3_column_text(row, 1);
    const sj_function_range *last =
        reader->range_count != 0 ? &reader->ranges[reader->range_count - 1] : NULL;
    if (last == NULL || id != last->first_id + last->count) {
        SJ_TRY(sj_array_reserve(&reader->ranges, &reader->range_capacity, reader->range_count, 1,
                                sizeof(*reader->ranges)));
        reader->ranges[reader->range_count++] =
            (sj_function_range){.first_id = id, .first_place = reader->function_count};
    }
    ++reader->ranges[reader->range_count - 1].count;
    ++reader->function_count;
    reader->name_bytes += name != NULL ? sj_utf8_clean(name, NULL) : 0;
    return SJ_OK;
}

static sj_status read_functions(sj_call_reader *reader, sj_error *error)
{
    static const char sql[] =
        "SELECT function_id, name FROM functions WHERE module_id IN "
        "(SELECT module_id FROM session_modules WHERE session_id = ?1) ORDER BY function_id";
    return sj_sql_each(reader->database, sql, SJ_SQL_INTS(reader->session_id), add_function, reader,
                       error);
}

static sj_status read_start(sj_call_reader *reader, sj_error *error)
{
    const sj_status status = sj_sql_number(
        reader->database, "SELECT started_realtime_ns FROM sessions WHERE session_id = ?1",
        SJ_SQL_INTS(reader->session_id), &reader->started_realtime_ns, error);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_call_reader_open(sj_call_reader *reader, sqlite3 *database, const sj_call_part *part,
                              sj_error *error)
{
    *reader = (sj_call_reader){.database = database, .session_id = part->session_id};
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        reader->values[i] = malloc(SJ_CALL_BATCH_ROWS * sizeof(*reader->values[i]));
        reader->valid[i] = malloc(SJ_CALL_BATCH_ROWS / 8);
        if (reader->values[i] == NULL || reader->valid[i] == NULL) {
            return sj_fail(error, SJ_ENOMEM, "no memory for the columns");
        }
    }
    /* One transaction, so that names, calls and the session's start are of the same moment even
     * while the session is recorded. */
    reader->in_transaction = sqlite3_exec(database, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
    SJ_TRY(read_start(reader, error));
    SJ_TRY(read_functions(reader, error));
    SJ_TRY(
        prepare(reader, "SELECT name FROM functions WHERE function_id = ?1", &reader->name, error));
    return sj_call_part_prepare(database, part, calls_sql, "", "", &reader->calls) == SJ_OK &&
                   sj_call_filter_open(&reader->filter, database, part) == SJ_OK
               ? SJ_OK
               : fail_reading(reader, error);
}

void sj_call_reader_close(sj_call_reader *reader)
{
    sqlite3_finalize(reader->calls);
    sqlite3_finalize(reader->name);
    sj_call_filter_close(&reader->filter);
    if (reader->in_transaction) {
        sqlite3_exec(reader->database, "COMMIT", NULL, NULL, NULL);
    }
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        free(reader->values[i]);
        free(reader->valid[i]);
    }
    free(reader->ranges);
    *reader = (sj_call_reader){0};
}

static const sj_function_range *find_range(const sj_call_reader *reader, int64_t id)
{
    const size_t after = SJ_BISECT(0, reader->range_count, i, reader->ranges[i].first_id <= id);
    const sj_function_range *range = after != 0 ? &reader->ranges[after - 1] : NULL;
    return range != NULL && id - range->first_id < range->count ? range : NULL;
}

static void put(sj_call_reader *reader, int column, size_t row, int64_t value)
{
    reader->values[column][row] = value;
    reader->valid[column][row / 8] |= (uint8_t)(1u << row % 8);
}

static void put_null(sj_call_reader *reader, int column, size_t row)
{
    reader->values[column][row] = 0;
    ++reader->null_count[column];
}

/* Returns the index in sj_call_endings. */
static int64_t find_ending(const char *text)
{
    for (int i = 0; text != NULL && i < SJ_CALL_ENDINGS; ++i) {
        if (strcmp(text, sj_call_endings[i]) == 0) {
            return i;
        }
    }
    return 2; /* "open" */
}

static void put_computed_columns(sj_call_reader *reader, size_t row)
{
    /* Unsigned, because the sum of wrong clock values may overflow. */
    const uint64_t start = (uint64_t)reader->started_realtime_ns;
    put(reader, COLUMN_START_TIME, row,
        (int64_t)(start + (uint64_t)reader->values[COLUMN_START_NS][row]));
    if (sqlite3_column_type(reader->calls, COLUMN_END_NS) != SQLITE_NULL) {
        put(reader, COLUMN_END_TIME, row,
            (int64_t)(start + (uint64_t)reader->values[COLUMN_END_NS][row]));
    } else {
        put_null(reader, COLUMN_END_TIME, row);
    }
    const int64_t id = reader->values[COLUMN_FUNCTION_ID][row];
    const sj_function_range *range = find_range(reader, id);
    if (range != NULL) {
        put(reader, COLUMN_FUNCTION, row, range->first_place + (id - range->first_id));
    } else {
        put_null(reader, COLUMN_FUNCTION, row);
    }
}

static void put_row(sj_call_reader *reader, size_t row)
{
    for (int column = 0; column < SQL_COLUMNS; ++column) {
        if (column == COLUMN_ENDING) {
            put(reader, column, row,
                find_ending((const char *)sqlite3_column_text(reader->calls, column)));
        } else if (sqlite3_column_type(reader->calls, column) != SQLITE_NULL) {
            put(reader, column, row, sqlite3_column_int64(reader->calls, column));
        } else {
            put_null(reader, column, row);
        }
    }
    put_computed_columns(reader, row);
}

sj_status sj_call_reader_next(sj_call_reader *reader, sj_error *error)
{
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        memset(reader->valid[i], 0, SJ_CALL_BATCH_ROWS / 8);
        reader->null_count[i] = 0;
    }
    reader->rows = 0;
    if (reader->names_failed) {
        return sj_fail(error, SJ_EIO, "the names of functions cannot be read");
    }
    while (reader->rows < SJ_CALL_BATCH_ROWS && reader->calls != NULL) {
        const int result = sqlite3_step(reader->calls);
        if (result == SQLITE_DONE) {
            sqlite3_finalize(reader->calls);
            reader->calls = NULL;
        } else if (result != SQLITE_ROW) {
            return fail_reading(reader, error);
        } else if (sj_call_filter_passes(&reader->filter,
                                         sqlite3_column_int64(reader->calls, COLUMN_STREAM_ID),
                                         sqlite3_column_int64(reader->calls, COLUMN_DEPTH),
                                         sqlite3_column_int64(reader->calls, COLUMN_FUNCTION_ID))) {
            put_row(reader, reader->rows++);
        }
    }
    return SJ_OK;
}

const char *sj_call_reader_name(sj_call_reader *reader, uint32_t place)
{
    const size_t after =
        SJ_BISECT(1, reader->range_count, i, reader->ranges[i].first_place <= place);
    const sj_function_range *range = &reader->ranges[after - 1];
    sqlite3_reset(reader->name);
    sqlite3_bind_int64(reader->name, 1, range->first_id + (place - range->first_place));
    const int result = sqlite3_step(reader->name);
    reader->names_failed |= result != SQLITE_ROW && result != SQLITE_DONE;
    const char *name =
        result == SQLITE_ROW ? (const char *)sqlite3_column_text(reader->name, 0) : NULL;
    return name != NULL ? name : "";
}
