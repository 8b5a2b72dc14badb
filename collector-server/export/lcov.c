/* lcov: a tracefile for genhtml and other readers of coverage (geninfo(1)). A function counts if
 * the session watched it and its file and line are known. Its count is the number of its calls.
 * Lines of a file have counts of their own if the session recorded them (`record --lines`); a line
 * was entered or not, which is a count of 1 or 0. Other files have one line a function, where it
 * begins, with the count of the function. */
#include "schema/queries/export/lcov.h"
#include "collector-server/export/clean_name.h"
#include "collector-server/export/exporter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_FILE, COLUMN_LINE, COLUMN_NAME, COLUMN_COUNT };

typedef struct line_sums {
    int64_t found, hit;
} line_sums;

typedef struct file_writer {
    FILE *output;
    sqlite3_stmt *recorded; /* the recorded lines of a file */
    char *file;             /* whose section is being written; NULL: none */
    FILE *own;              /* the lines where functions begin, which go to `own_lines` */
    char *own_lines;
    size_t own_size;
    line_sums own_sums;
    int64_t line, line_count; /* where the latest functions begin, and the most of their counts */
    int64_t functions, entered;
} file_writer;

static const char lines_sql[] = "SELECT line, max(entered) FROM source_lines "
                                "WHERE session_id = ?1 AND file = ?2 AND entered IS NOT NULL "
                                "GROUP BY line ORDER BY line";

static void write_line(FILE *output, int64_t line, int64_t count, line_sums *sums)
{
    fprintf(output, "DA:%" PRId64 ",%" PRId64 "\n", line, count);
    sums->found++;
    sums->hit += count != 0 ? 1 : 0;
}

static void write_recorded_lines(file_writer *writer, line_sums *sums)
{
    sqlite3_bind_text(writer->recorded, 2, writer->file, -1, SQLITE_TRANSIENT);
    while (sqlite3_step(writer->recorded) == SQLITE_ROW) {
        write_line(writer->output, sqlite3_column_int64(writer->recorded, 0),
                   sqlite3_column_int64(writer->recorded, 1) != 0, sums);
    }
    sqlite3_reset(writer->recorded);
}

/* Several functions may begin in one line. */
static void end_line(file_writer *writer)
{
    if (writer->line != 0) {
        write_line(writer->own, writer->line, writer->line_count, &writer->own_sums);
    }
    writer->line = writer->line_count = 0;
}

static void end_file(file_writer *writer)
{
    if (writer->file == NULL) {
        return;
    }
    FILE *output = writer->output;
    end_line(writer);
    const bool is_whole = fclose(writer->own) == 0;
    line_sums sums = {0};
    write_recorded_lines(writer, &sums);
    if (sums.found == 0 && is_whole) {
        fwrite(writer->own_lines, 1, writer->own_size, output);
        sums = writer->own_sums;
    }
    fprintf(output,
            "FNF:%" PRId64 "\nFNH:%" PRId64 "\nLF:%" PRId64 "\nLH:%" PRId64 "\nend_of_record\n",
            writer->functions, writer->entered, sums.found, sums.hit);
    free(writer->own_lines);
    free(writer->file);
    *writer = (file_writer){.output = output, .recorded = writer->recorded};
}

static sj_status begin_file(file_writer *writer, const char *file)
{
    end_file(writer);
    writer->own = open_memstream(&writer->own_lines, &writer->own_size);
    if (writer->own == NULL) {
        return SJ_ENOMEM;
    }
    writer->file = strdup(file);
    if (writer->file == NULL) {
        (void)fclose(writer->own);
        free(writer->own_lines);
        return SJ_ENOMEM;
    }
    fputs("TN:\nSF:", writer->output);
    sj_write_in_line(writer->output, file);
    fputc('\n', writer->output);
    return SJ_OK;
}

static sj_status write_function(file_writer *writer, sqlite3_stmt *row)
{
    const char *file = (const char *)sqlite3_column_text(row, COLUMN_FILE);
    const char *name = (const char *)sqlite3_column_text(row, COLUMN_NAME);
    const int64_t line = sqlite3_column_int64(row, COLUMN_LINE);
    const int64_t count = sqlite3_column_int64(row, COLUMN_COUNT);
    if (writer->file == NULL || strcmp(writer->file, file) != 0) {
        SJ_TRY(begin_file(writer, file));
    }
    fprintf(writer->output, "FN:%" PRId64 ",", line);
    sj_write_in_line(writer->output, name);
    fprintf(writer->output, "\nFNDA:%" PRId64 ",", count);
    sj_write_in_line(writer->output, name);
    fputc('\n', writer->output);
    writer->functions++;
    writer->entered += count != 0 ? 1 : 0;
    if (line != writer->line) {
        end_line(writer);
        writer->line = line;
    }
    writer->line_count = count > writer->line_count ? count : writer->line_count;
    return SJ_OK;
}

static sj_status write_functions(sqlite3 *database, sqlite3_stmt *row, file_writer *writer,
                                 sj_error *error)
{
    sj_status status = SJ_OK;
    bool has_any = false;
    int result = SQLITE_DONE;
    while (status == SJ_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        has_any = true;
        status = write_function(writer, row);
    }
    end_file(writer);
    if (status != SJ_OK) {
        return sj_fail(error, status, "no memory for the lines of a file");
    }
    if (result != SQLITE_DONE) {
        return sj_fail(error, SJ_EIO, "cannot read the functions: %s", sqlite3_errmsg(database));
    }
    return has_any ? SJ_OK
                   : sj_fail(error, SJ_ENOTFOUND,
                             "the file and line of no watched function is known; add debug data "
                             "with `sojourn symbols`");
}

static sj_status write_lcov(sqlite3 *database, const sj_call_part *part, FILE *output,
                            sj_error *error)
{
    file_writer writer = {.output = output};
    sqlite3_stmt *row = NULL;
    sj_status status;
    if (sqlite3_prepare_v2(database, sj_lcov_functions_sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(database, lines_sql, -1, &writer.recorded, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, part->session_id);
        sqlite3_bind_int64(writer.recorded, 1, part->session_id);
        status = write_functions(database, row, &writer, error);
    } else {
        status = sj_fail(error, SJ_EIO, "cannot read the functions: %s", sqlite3_errmsg(database));
    }
    sqlite3_finalize(row);
    sqlite3_finalize(writer.recorded);
    return status;
}

const sj_exporter sj_exporter_lcov = {
    .name = "lcov",
    .endings = ".info .lcov",
    .summary = "coverage of functions and lines, for genhtml",
    .is_whole = true,
    .write = write_lcov,
};
