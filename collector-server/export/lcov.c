/* lcov: a tracefile for genhtml and other readers of coverage (geninfo(1)). The file lists each
 * function that the session watched and whose file and line are known, with the number of its
 * calls, and the lines of each source file (coverage.h). */
#include "collector-server/export/clean_name.h"
#include "collector-server/export/coverage.h"
#include "collector-server/export/exporter.h"

#include <inttypes.h>

static void write_file(void *context, const sj_covered_file *file)
{
    FILE *output = context;
    fputs("TN:\nSF:", output);
    sj_write_in_line(output, file->name);
    fputc('\n', output);
    for (size_t i = 0; i < file->function_count; i++) {
        const sj_covered_function *function = &file->functions[i];
        fprintf(output, "FN:%" PRId64 ",", function->line);
        sj_write_in_line(output, function->name);
        fprintf(output, "\nFNDA:%" PRId64 ",", function->count);
        sj_write_in_line(output, function->name);
        fputc('\n', output);
    }
    for (size_t i = 0; i < file->line_count; i++) {
        fprintf(output, "DA:%" PRId64 ",%" PRId64 "\n", file->lines[i].line, file->lines[i].count);
    }
    fprintf(output, "FNF:%zu\nFNH:%zu\nLF:%zu\nLH:%zu\nend_of_record\n", file->function_count,
            file->entered_functions, file->line_count, file->entered_lines);
}

static sj_status write_lcov(sqlite3 *database, const sj_call_part *part, FILE *output,
                            sj_error *error)
{
    return sj_coverage_read(database, part->session_id, write_file, output, error);
}

const sj_exporter sj_exporter_lcov = {
    .name = "lcov",
    .endings = ".info .lcov",
    .summary = "coverage of functions and lines, for genhtml",
    .is_whole = true,
    .write = write_lcov,
};
