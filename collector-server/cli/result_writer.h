/* Rows of a query as text: aligned table, CSV, JSON or markdown. */
#ifndef SJ_COLLECTOR_SERVER_CLI_RESULT_WRITER_H
#define SJ_COLLECTOR_SERVER_CLI_RESULT_WRITER_H

#include "collector-server/cli/terminal.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum sj_result_format {
    SJ_RESULT_TABLE,
    SJ_RESULT_CSV,  /* RFC 4180, with a header */
    SJ_RESULT_JSON, /* as json_output.h says; blobs as hexadecimal */
    SJ_RESULT_MARKDOWN
} sj_result_format;

/* Tables align their columns over this many first rows, then go on with those widths, so that
 * memory stays bounded and output starts early. */
enum { SJ_RESULT_ALIGNED_ROWS = 1000, SJ_RESULT_MAX_WIDTH = 60 };

typedef struct sj_result_writer {
    FILE *output;
    sj_result_format format;
    int columns;
    int *widths;
    bool *numeric; /* columns aligned to the right */
    char **held;   /* cells of the rows held for alignment */
    size_t held_rows, rows;
    bool aligned;          /* widths are fixed, rows go straight out */
    bool failed;           /* memory */
    bool wide;             /* never cut a cell */
    int room;              /* columns of the terminal; 0: any */
    sj_terminal *terminal; /* a table goes through its pager; NULL: it does not */
    const char *const
        *hidden_first; /* columns of a table (patterns) that go, in this order, until
                          it fits the room; NULL at the end; NULL: tables may be wider */
} sj_result_writer;

void sj_result_writer_init(sj_result_writer *writer, FILE *output, sj_result_format format);

/* sj_result_writer_row has the shape of sj_sql_row: names first, then each row. */
bool sj_result_writer_row(void *writer, sqlite3_stmt *statement, bool values);

/* sj_result_writer_end writes what is held and frees; false when memory or the output failed. */
bool sj_result_writer_end(sj_result_writer *writer);

#endif
