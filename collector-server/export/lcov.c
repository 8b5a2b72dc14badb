/* lcov: a tracefile for genhtml and other readers of coverage (geninfo(1)). The file lists each
 * function that the session watched and whose file and line are known, with the number of its
 * calls. If the session recorded the lines of a source file (`record --lines`), each of them has a
 * count of 1 (entered) or 0. Else the source file has one line per function, where the function
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
    sqlite3_stmt *recorded; /* reads the recorded lines of a file */
    char *file;             /* the file whose section is being written; NULL: none */
    FILE *first_lines;      /* collects the lines where functions begin, in `first_text` */
    char *first_text;
    size_t first_size;
    line_sums first_sums;
    int64_t line, line_count;   /* a line where functions begin, and the largest of their counts */
    int64_t functions, entered; /* numbers of functions in the current file */
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

/* Writes the line of the latest functions. Several functions may begin in one line. */
static void end_line(file_writer *writer)
{
    if (writer->line != 0) {
        write_line(writer->first_lines, writer->line, writer->line_count, &writer->first_sums);
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
    const bool is_complete = fclose(writer->first_lines) == 0;
    line_sums sums = {0};
    write_recorded_lines(writer, &sums);
    if (sums.found == 0 && is_complete) {
        fwrite(writer->first_text, 1, writer->first_size, output);
        sums = writer->first_sums;
    }
    fprintf(output,
            "FNF:%" PRId64 "\nFNH:%" PRId64 "\nLF:%" PRId64 "\nLH:%" PRId64 "\nend_of_record\n",
            writer->functions, writer->entered, sums.found, sums.hit);
    free(writer->first_text);
    free(writer->file);
    *writer = (file_writer){.output = output, .recorded = writer->recorded};
}

static sj_status begin_file(file_writer *writer, const char *file)
{
    end_file(writer);
    writer->first_lines = open_memstream(&writer->first_text, &writer->first_size);
    if (writer->first_lines == NULL) {
        return SJ_ENOMEM;
    }
    writer->file = strdup(file);
    if (writer->file == NULL) {
        (void)fclose(writer->first_lines);
        free(writer->first_text);
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
