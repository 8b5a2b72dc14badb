/* Writes the rows of a query as an aligned table, CSV, JSON or Markdown. */
#ifndef SJ_COLLECTOR_SERVER_CLI_RESULT_WRITER_H
#define SJ_COLLECTOR_SERVER_CLI_RESULT_WRITER_H

#include "collector-server/cli/terminal.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum sj_result_format {
    SJ_RESULT_TABLE,
    SJ_RESULT_CSV,  /* RFC 4180, with a header */
    SJ_RESULT_JSON, /* as json_output.h describes; blobs are hexadecimal */
    SJ_RESULT_MARKDOWN
} sj_result_format;

/* A table computes its column widths from the first SJ_RESULT_ALIGNED_ROWS rows, so that memory is
 * bounded and output starts early. */
enum { SJ_RESULT_ALIGNED_ROWS = 1000, SJ_RESULT_MAX_WIDTH = 60 };

typedef struct sj_result_writer {
    FILE *output;
    sj_result_format format;
    int columns;
    int *widths;
    bool *numeric; /* by column: all cells so far are numbers, so it is aligned right */
    char **held;   /* cells of the rows that are kept until the widths are known */
    size_t held_rows, rows;
    bool aligned; /* the widths are known; rows are written directly */
    bool failed;  /* out of memory */
    /* The caller may set these after sj_result_writer_init: */
    bool wide;             /* never cut a cell */
    int space;             /* maximum width of a table, in columns; 0: unlimited */
    sj_terminal *terminal; /* its pager shows a table; NULL: without pager */
    /* Patterns of column names, NULL-terminated. If a table is too wide, matching columns are
     * hidden in this order until it fits. NULL: none. */
    const char *const *hidden_first;
} sj_result_writer;

void sj_result_writer_init(sj_result_writer *writer, FILE *output, sj_result_format format);

/* A callback of type sj_sql_row_callback. Writes the current row of the statement; the first call
 * also writes the column names. `writer` is an sj_result_writer. */
bool sj_result_writer_row(void *writer, sqlite3_stmt *statement, bool values);

/* Writes the rows that were kept and frees the writer's memory. Returns false if memory ran out or
 * a write to the output failed. */
bool sj_result_writer_end(sj_result_writer *writer);

#endif
