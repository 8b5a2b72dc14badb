#include "collector-server/query/coverage_lines.h"

#include "collector-server/store/sql.h"

#include <string.h>

/* The source file whose lines are being read. */
typedef struct file_lines {
    char *name;
    sqlite3_str *missing;                /* sj_lines_row.missing so far */
    int64_t first_missing, last_missing; /* the latest range, not in `missing` yet; 0: none */
    sj_lines_row row;
} file_lines;

static void end_range(file_lines *file)
{
    if (file->first_missing != 0) {
        sqlite3_str_appendf(file->missing,
                            file->first_missing == file->last_missing ? "%s%lld" : "%s%lld-%lld",
                            sqlite3_str_length(file->missing) != 0 ? ", " : "", file->first_missing,
                            file->last_missing);
    }
    file->first_missing = 0;
}

/* Counts a line, and extends or ends the current range of lines that were not entered. A range may
 * include lines without code, which have no rows. */
static void count_line(file_lines *file, int64_t line, bool is_known, bool is_entered)
{
    file->row.lines++;
    file->row.unknown += !is_known;
    file->row.entered += is_entered;
    if (!is_known || is_entered) {
        end_range(file);
        return;
    }
    file->first_missing = file->first_missing != 0 ? file->first_missing : line;
    file->last_missing = line;
}

/* Passes the row of the current file to the sink, if there is a current file. */
static sj_status end_file(file_lines *file, sj_lines_row_sink sink, void *context)
{
    if (file->name == NULL) {
        return SJ_OK;
    }
    end_range(file);
    char *missing = sqlite3_str_finish(file->missing);
    file->row.name = file->name;
    file->row.missing = missing;
    const sj_status status = sink(context, &file->row);
    sqlite3_free(missing);
    sqlite3_free(file->name);
    *file = (file_lines){0};
    return status;
}

static sj_status begin_file(file_lines *file, const char *name)
{
    file->name = sqlite3_mprintf("%s", name);
    file->missing = sqlite3_str_new(NULL);
    return file->name != NULL ? SJ_OK : SJ_ENOMEM;
}

static sj_status pass_line(sqlite3_stmt *row, sj_lines_row_sink sink, void *context)
{
    char *name = sqlite3_mprintf("%s:%lld", sqlite3_column_text(row, 0),
                                 (long long)sqlite3_column_int64(row, 1));
    if (name == NULL) {
        return SJ_ENOMEM;
    }
    const sj_lines_row line = {.name = name,
                               .lines = 1,
                               .unknown = sqlite3_column_type(row, 2) == SQLITE_NULL,
                               .entered = sqlite3_column_int64(row, 2)};
    const sj_status status = sink(context, &line);
    sqlite3_free(name);
    return status;
}

typedef struct line_reading {
    file_lines file;
    bool by_line;
    sj_lines_row_sink sink;
    void *context;
} line_reading;

static sj_status read_line(void *context, sqlite3_stmt *row)
{
    line_reading *reading = context;
    file_lines *file = &reading->file;
    const char *name = (const char *)sqlite3_column_text(row, 0);
    if (reading->by_line) {
        return pass_line(row, reading->sink, reading->context);
    }
    if (file->name == NULL || strcmp(file->name, name) != 0) {
        SJ_TRY(end_file(file, reading->sink, reading->context));
        SJ_TRY(begin_file(file, name));
    }
    count_line(file, sqlite3_column_int64(row, 1), sqlite3_column_type(row, 2) != SQLITE_NULL,
               sqlite3_column_int64(row, 2) != 0);
    return SJ_OK;
}

static sj_status read_rows(sqlite3 *database, const char *sql, sj_sql_binds binds,
                           line_reading *reading, sj_error *error)
{
    const sj_status status = sj_sql_each(database, sql, binds, read_line, reading, error);
    const sj_status ended = end_file(&reading->file, reading->sink, reading->context);
    return status == SJ_OK ? ended : status;
}

/* Returns the session ids of a set as a JSON array, to be freed with sqlite3_free. Returns NULL if
 * out of memory. */
static char *list_sessions(const sj_session_set *set)
{
    sqlite3_str *list = sqlite3_str_new(NULL);
    for (size_t i = 0; i < set->count; i++) {
        sqlite3_str_appendf(list, "%c%lld", i == 0 ? '[' : ',',
                            (long long)set->samples[i].session_id);
    }
    sqlite3_str_appendall(list, set->count != 0 ? "]" : "[]");
    return sqlite3_str_finish(list);
}

sj_status sj_coverage_lines_read(sqlite3 *database, const sj_session_set *set, bool by_line,
                                 sj_lines_row_sink sink, void *context, sj_error *error)
{
    static const char sql[] =
        "SELECT file, line, max(entered) FROM source_lines WHERE session_id IN "
        "(SELECT value FROM json_each(?1)) GROUP BY file, line ORDER BY file, line";
    line_reading reading = {.by_line = by_line, .sink = sink, .context = context};
    for (size_t i = 0; i < set->count; i++) {
        if (set->samples[i].windowed) {
            return sj_fail(error, SJ_EINVAL,
                           "lines are known of whole sessions, not of the time between marks");
        }
    }
    char *list = list_sessions(set);
    if (list == NULL) {
        return SJ_ENOMEM;
    }
    const sj_status status = read_rows(database, sql, SJ_SQL_TEXT(list), &reading, error);
    sqlite3_free(list);
    return status;
}
