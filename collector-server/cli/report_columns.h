/* The columns of `sojourn report`: what each selects, and which of them fit a width. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_COLUMNS_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_COLUMNS_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_REPORT_COLUMNS_MAX = 30 };

/* The columns that waits.h is needed for. */
#define SJ_REPORT_WORKING "working"
#define SJ_REPORT_WAITING "waiting"

/* The column of how many calls of a function were open at the end of what was recorded; `o` in its
 * expression is SJ_REPORT_OPEN_CALLS of report_table.h. */
#define SJ_REPORT_OPEN "open"

typedef enum sj_report_kind {
    SJ_REPORT_SHARE, /* of all recorded time, 0 to 1 */
    SJ_REPORT_BAR,   /* the same, drawn */
    SJ_REPORT_DURATION,
    SJ_REPORT_COUNT,
    SJ_REPORT_BYTES,
    SJ_REPORT_FILE, /* the file's name in tables, its path in other formats */
    SJ_REPORT_FUNCTION
} sj_report_kind;

typedef struct sj_report_column {
    const char *name;       /* in --columns, --sort and the heading */
    const char *expression; /* SQL over s (function_stats), f (functions), m (modules); NULL:
                             * the share, of what the report is sorted by */
    sj_report_kind kind;
    int width;    /* of a cell in a table, without the space behind it */
    int rank;     /* in a table: those with the least ranks are shown as far as they fit */
    bool is_data; /* in other formats unless --columns says otherwise */
} sj_report_column;

/* What the rows of functions whose calls were measured have. */
#define SJ_REPORT_MEASURED "(s.cpu_ns IS NOT NULL OR s.allocated_bytes IS NOT NULL)"

typedef struct sj_report_selection {
    const sj_report_column *columns[SJ_REPORT_COLUMNS_MAX];
    size_t count;
} sj_report_selection;

/* sj_report_column_find returns the column of that name (`length` bytes), or NULL. */
const sj_report_column *sj_report_column_find(const char *name, size_t length);

/* sj_report_columns_parse takes a list as of --columns. SJ_EINVAL: no such column, or too many. */
SJ_MUST_CHECK sj_status sj_report_columns_parse(const char *list, sj_report_selection *selection,
                                                sj_error *error);

/* sj_report_columns_fit chooses those of a table of `width` columns, so that a name keeps 30 (of 60
 * and more); 0: any width. `sources`: there are lines of source to show (source_lines.h); `opens`:
 * there are open calls. */
void sj_report_columns_fit(int width, bool sources, bool opens, sj_report_selection *selection);

/* sj_report_columns_data chooses those of CSV, JSON and Markdown. */
void sj_report_columns_data(sj_report_selection *selection);

/* sj_report_asks_for returns whether a column is selected, or sorted by. */
bool sj_report_asks_for(const sj_report_selection *selection, const char *sort, const char *name);

#endif
