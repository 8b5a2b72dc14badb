/* The columns of `sojourn report`: the SQL of each column, and the choice of columns that fit a
 * width. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_COLUMNS_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_COLUMNS_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_REPORT_COLUMNS_MAX = 30 };

/* Names of columns whose SQL needs sj_waits_register (waits.h). */
#define SJ_REPORT_WORKING "working"
#define SJ_REPORT_WAITING "waiting"

/* Name of the column with the number of calls that were open at the end of the recording. Its SQL
 * needs the table `o`, which sj_report_open_calls_sql joins. */
#define SJ_REPORT_OPEN "open"

typedef enum sj_report_kind {
    SJ_REPORT_SHARE, /* share of all recorded time, 0 to 1 */
    SJ_REPORT_BAR,   /* the share of all recorded time, drawn as a bar */
    SJ_REPORT_DURATION,
    SJ_REPORT_COUNT,
    SJ_REPORT_BYTES,
    SJ_REPORT_FILE, /* a file name in tables, a path in other formats */
    SJ_REPORT_FUNCTION
} sj_report_kind;

typedef struct sj_report_column {
    const char *name; /* the name in --columns, --sort and the heading */
    /* SQL over the tables s (function_stats), f (functions) and m (modules). NULL: the function's
     * share of all recorded time; of its self time if the report is sorted by self time, else of
     * its total time. */
    const char *expression;
    sj_report_kind kind;
    int width;    /* columns of the terminal for a cell, without the space after it */
    int rank;     /* a table shows columns up to the highest rank that fits */
    bool is_data; /* CSV, JSON and Markdown show the column if --columns is not given */
} sj_report_column;

/* SQL condition on `s`: CPU time or memory of the function's calls was measured. */
#define SJ_REPORT_MEASURED "(s.cpu_ns IS NOT NULL OR s.allocated_bytes IS NOT NULL)"

typedef struct sj_report_selection {
    const sj_report_column *columns[SJ_REPORT_COLUMNS_MAX];
    size_t count;
} sj_report_selection;

/* Returns the column called `name` (`length` bytes), or NULL. */
const sj_report_column *sj_report_column_find(const char *name, size_t length);

/* Parses a list of columns in the format of --columns. Fails with SJ_EINVAL if a column does not
 * exist or there are too many. */
SJ_MUST_CHECK sj_status sj_report_columns_parse(const char *list, sj_report_selection *selection,
                                                sj_error *error);

/* Chooses the columns for a table that is `width` columns of the terminal wide; 0: unlimited.
 * Counts 30 columns for the function's name. Columns of rank 1 or less are always chosen. `sources`
 * and `opens` permit the columns "source" and "open". */
void sj_report_columns_fit(int width, bool sources, bool opens, sj_report_selection *selection);

/* Chooses the columns with is_data. */
void sj_report_columns_data(sj_report_selection *selection);

/* True if the column is selected or is the sort column. */
bool sj_report_asks_for(const sj_report_selection *selection, const char *sort, const char *name);

#endif
