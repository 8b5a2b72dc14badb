/* The columns of `sojourn report`: the expression of each, and which of them fit a width. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_COLUMNS_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_COLUMNS_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_REPORT_COLUMNS_MAX = 30 };

/* The columns that need waits.h. */
#define SJ_REPORT_WORKING "working"
#define SJ_REPORT_WAITING "waiting"

/* The column with the number of a function's calls that were open at the end of the recording. `o`
 * in its expression is sj_report_open_calls_sql. */
#define SJ_REPORT_OPEN "open"

typedef enum sj_report_kind {
    SJ_REPORT_SHARE, /* share of all recorded time, 0 to 1 */
    SJ_REPORT_BAR,   /* the same share as a bar */
    SJ_REPORT_DURATION,
    SJ_REPORT_COUNT,
    SJ_REPORT_BYTES,
    SJ_REPORT_FILE, /* the file's name in tables, its path in other formats */
    SJ_REPORT_FUNCTION
} sj_report_kind;

typedef struct sj_report_column {
    const char *name; /* the name in --columns, --sort and the heading */
    /* SQL over s (function_stats), f (functions), m (modules). NULL: the share of the sort
     * column. */
    const char *expression;
    sj_report_kind kind;
    int width;    /* width of a cell in a table, without the space after it */
    int rank;     /* in a table, the columns with the lowest ranks are shown as far as they fit */
    bool is_data; /* shown in other formats unless --columns names the columns */
} sj_report_column;

/* True for rows of functions whose calls were measured. */
#define SJ_REPORT_MEASURED "(s.cpu_ns IS NOT NULL OR s.allocated_bytes IS NOT NULL)"

typedef struct sj_report_selection {
    const sj_report_column *columns[SJ_REPORT_COLUMNS_MAX];
    size_t count;
} sj_report_selection;

/* Returns the column of that name (`length` bytes), or NULL. */
const sj_report_column *sj_report_column_find(const char *name, size_t length);

/* Parses a list of columns in the format of --columns. Fails with SJ_EINVAL if a column does not
 * exist or there are too many. */
SJ_MUST_CHECK sj_status sj_report_columns_parse(const char *list, sj_report_selection *selection,
                                                sj_error *error);

/* Chooses the columns for a table of `width` columns of the terminal; 0: unlimited. A name keeps 30
 * columns (of 60 and more). `sources`: source lines can be shown (source_lines.h). `opens`: there
 * are open calls. */
void sj_report_columns_fit(int width, bool sources, bool opens, sj_report_selection *selection);

/* Chooses the columns of CSV, JSON and Markdown. */
void sj_report_columns_data(sj_report_selection *selection);

/* True if the column is selected or is the sort column. */
bool sj_report_asks_for(const sj_report_selection *selection, const char *sort, const char *name);

#endif
