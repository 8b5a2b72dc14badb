/* cobertura: coverage as XML, for build servers and their plug-ins
 * (https://github.com/cobertura/cobertura, coverage-04.dtd). Each source file is a class, and each
 * function a method (coverage.h). The format demands its sums at the start, so coverage is read
 * twice. It cannot hold whether an exit was by an exception; branches are not recorded. */
#include "collector-server/export/coverage.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/xml_text.h"

#include <inttypes.h>

typedef struct cobertura_writer {
    FILE *output;
    size_t lines, entered_lines;
} cobertura_writer;

static void write_rate(FILE *output, size_t entered, size_t all)
{
    fprintf(output, " line-rate=\"%.4f\" branch-rate=\"0\"",
            all != 0 ? (double)entered / (double)all : 0.0);
}

static void add_sums(void *context, const sj_covered_file *file)
{
    cobertura_writer *writer = context;
    writer->lines += file->line_count;
    writer->entered_lines += file->entered_lines;
}

static void write_line(FILE *output, int64_t line, int64_t count)
{
    fprintf(output, "<line number=\"%" PRId64 "\" hits=\"%" PRId64 "\" branch=\"false\"/>", line,
            count);
}

static void write_method(FILE *output, const sj_covered_function *function)
{
    fputs("<method name=\"", output);
    sj_xml_text(output, function->name);
    fputs("\" signature=\"\"", output);
    write_rate(output, function->count != 0 ? 1 : 0, 1);
    fputs(" complexity=\"0\"><lines>", output);
    write_line(output, function->line, function->count);
    fputs("</lines></method>\n", output);
}

static void write_file(void *context, const sj_covered_file *file)
{
    FILE *output = ((cobertura_writer *)context)->output;
    fputs("<class name=\"", output);
    sj_xml_text(output, file->name);
    fputs("\" filename=\"", output);
    sj_xml_text(output, file->name);
    fputc('"', output);
    write_rate(output, file->entered_lines, file->line_count);
    fputs(" complexity=\"0\"><methods>\n", output);
    for (size_t i = 0; i < file->function_count; i++) {
        write_method(output, &file->functions[i]);
    }
    fputs("</methods><lines>\n", output);
    for (size_t i = 0; i < file->line_count; i++) {
        write_line(output, file->lines[i].line, file->lines[i].count);
        fputc('\n', output);
    }
    fputs("</lines></class>\n", output);
}

static sj_status write_cobertura(sqlite3 *database, const sj_call_part *part, FILE *output,
                                 sj_error *error)
{
    cobertura_writer writer = {.output = output};
    int64_t started_ms = 0;
    SJ_TRY(sj_coverage_read(database, part->session_id, add_sums, &writer, error));
    SJ_TRY(sj_sql_number(database,
                         "SELECT started_realtime_ns / 1000000 FROM sessions WHERE session_id = ?1",
                         SJ_SQL_INTS(part->session_id), &started_ms, error));
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE coverage SYSTEM "
          "\"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n<coverage",
          output);
    write_rate(output, writer.entered_lines, writer.lines);
    fprintf(output,
            " lines-covered=\"%zu\" lines-valid=\"%zu\" branches-covered=\"0\" "
            "branches-valid=\"0\" complexity=\"0\" version=\"sojourn\" timestamp=\"%" PRId64
            "\">\n<sources><source>/</source></sources>\n<packages><package name=\"\"",
            writer.entered_lines, writer.lines, started_ms);
    write_rate(output, writer.entered_lines, writer.lines);
    fputs(" complexity=\"0\"><classes>\n", output);
    SJ_TRY(sj_coverage_read(database, part->session_id, write_file, &writer, error));
    fputs("</classes></package></packages></coverage>\n", output);
    return SJ_OK;
}

const sj_exporter sj_exporter_cobertura = {
    .name = "cobertura",
    .endings = ".cobertura.xml .cobertura",
    .summary = "coverage of functions and lines as XML, for build servers",
    .is_whole = true,
    .write = write_cobertura,
};
