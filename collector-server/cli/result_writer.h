/* Writes rows of a query as text: aligned table, CSV, JSON or Markdown. */
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

/* A table computes its column widths from this many first rows and keeps them for the rest. So
 * memory stays bounded and output starts early. */
enum { SJ_RESULT_ALIGNED_ROWS = 1000, SJ_RESULT_MAX_WIDTH = 60 };

typedef struct sj_result_writer {
    FILE *output;
    sj_result_format format;
    int columns;
    int *widths;
    bool *numeric; /* columns aligned to the right */
    char **held;   /* cells of the rows that wait until the widths are known */
    size_t held_rows, rows;
    bool aligned;          /* the widths are known; rows are written directly */
    bool failed;           /* out of memory */
    bool wide;             /* never cut a cell */
    int space;             /* columns of the terminal; 0: unlimited */
    sj_terminal *terminal; /* a table goes through its pager; NULL: without pager */
    const char *const
        /* patterns of the columns that are hidden, in this order, until the table fits;
         * NULL-terminated. NULL: no columns are hidden */
        *hidden_first;
} sj_result_writer;

void sj_result_writer_init(sj_result_writer *writer, FILE *output, sj_result_format format);

/* Writes a row. A callback of type sj_sql_row: the first call writes the column names. */
bool sj_result_writer_row(void *writer, sqlite3_stmt *statement, bool values);

/* Writes the waiting rows and frees the writer's memory. Returns false if memory or the output
 * failed. */
bool sj_result_writer_end(sj_result_writer *writer);

#endif
