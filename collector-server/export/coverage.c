#include "collector-server/export/coverage.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "schema/queries/export/lcov.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMN_FILE, COLUMN_LINE, COLUMN_NAME, COLUMN_COUNT };

typedef struct coverage_reader {
    sj_coverage_receiver receive;
    void *context;
    sqlite3_stmt *recorded; /* reads the recorded lines of a file */
    sj_covered_file file;   /* the current file; its name is NULL before the first one */
    sj_error *error;
    bool has_any; /* a function was read */
} coverage_reader;

static const char lines_sql[] = "SELECT line, max(entered) FROM source_lines "
                                "WHERE session_id = ?1 AND file = ?2 AND entered IS NOT NULL "
                                "GROUP BY line ORDER BY line";

/* Adds a count to a line, which is the last one or a later one. */
static sj_status add_line(sj_covered_file *file, int64_t line, int64_t count)
{
    sj_covered_line *last = file->line_count != 0 ? &file->lines[file->line_count - 1] : NULL;
    if (last == NULL || last->line != line) {
        SJ_TRY(sj_array_reserve(&file->lines, &file->line_capacity, file->line_count, 1,
                                sizeof(*file->lines)));
        last = &file->lines[file->line_count++];
        *last = (sj_covered_line){.line = line};
    }
    file->entered_lines += last->count == 0 && count != 0 ? 1 : 0;
    last->count = count > last->count ? count : last->count;
    return SJ_OK;
}

static void clear_file(sj_covered_file *file)
{
    for (size_t i = 0; i < file->function_count; i++) {
        free(file->functions[i].name);
    }
    free(file->name);
    file->name = NULL;
    file->function_count = file->line_count = 0;
    file->entered_functions = file->entered_lines = 0;
}

static sj_status add_recorded_line(void *file, sqlite3_stmt *row)
{
    return add_line(file, sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1) != 0);
}

/* Adds the lines of the current file, then passes it. */
static sj_status end_file(coverage_reader *reader)
{
    sj_covered_file *file = &reader->file;
    if (file->name == NULL) {
        return SJ_OK;
    }
    sqlite3_bind_text(reader->recorded, 2, file->name, -1, SQLITE_STATIC);
    sj_status status = sj_sql_each_row(reader->recorded, add_recorded_line, file, reader->error);
    const bool has_recorded = file->line_count != 0;
    for (size_t i = 0; i < file->function_count && status == SJ_OK && !has_recorded; i++) {
        status = add_line(file, file->functions[i].line, file->functions[i].count);
    }
    if (status == SJ_OK) {
        reader->receive(reader->context, file);
    }
    clear_file(file);
    return status;
}

static sj_status add_function(void *context, sqlite3_stmt *row)
{
    coverage_reader *reader = context;
    sj_covered_file *file = &reader->file;
    reader->has_any = true;
    const char *name = (const char *)sqlite3_column_text(row, COLUMN_FILE);
    if (file->name == NULL || strcmp(file->name, name) != 0) {
        SJ_TRY(end_file(reader));
        file->name = strdup(name);
    }
    SJ_TRY(sj_array_reserve(&file->functions, &file->function_capacity, file->function_count, 1,
                            sizeof(*file->functions)));
    sj_covered_function *function = &file->functions[file->function_count];
    *function =
        (sj_covered_function){.name = strdup((const char *)sqlite3_column_text(row, COLUMN_NAME)),
                              .line = sqlite3_column_int64(row, COLUMN_LINE),
                              .count = sqlite3_column_int64(row, COLUMN_COUNT)};
    if (function->name == NULL || file->name == NULL) {
        free(function->name);
        return SJ_ENOMEM;
    }
    file->function_count++;
    file->entered_functions += function->count != 0 ? 1 : 0;
    return SJ_OK;
}

static sj_status read_functions(sqlite3 *database, int64_t session_id, coverage_reader *reader)
{
    SJ_TRY(sj_sql_each(database, sj_lcov_functions_sql, SJ_SQL_INTS(session_id), add_function,
                       reader, reader->error));
    const sj_status status = end_file(reader);
    if (status == SJ_ENOMEM) {
        return sj_fail(reader->error, status, "no memory for the lines of a file");
    }
    return status != SJ_OK || reader->has_any
               ? status
               : sj_fail(reader->error, SJ_ENOTFOUND,
                         "the file and line of no watched function is known; add debug data "
                         "with `sojourn symbols`");
}

sj_status sj_coverage_read(sqlite3 *database, int64_t session_id, sj_coverage_receiver receive,
                           void *context, sj_error *error)
{
    coverage_reader reader = {.receive = receive, .context = context, .error = error};
    sj_status status;
    if (sqlite3_prepare_v2(database, lines_sql, -1, &reader.recorded, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(reader.recorded, 1, session_id);
        status = read_functions(database, session_id, &reader);
    } else {
        status = sj_fail(error, SJ_EIO, "cannot read the functions: %s", sqlite3_errmsg(database));
    }
    sqlite3_finalize(reader.recorded);
    clear_file(&reader.file);
    free(reader.file.functions);
    free(reader.file.lines);
    return status;
}
