/* Rows of `calls` with the longest first, for ORDER BY duration_ns DESC.
 *
 * Whoever asks so wants some of them, mostly, but SQLite tells a table in a join no LIMIT. So the
 * calls come in passes: first those that last as long as the longest of the sixteenth block by
 * longest call, then eight times as many blocks, and so on up to all; each pass reads only blocks
 * that may hold such a call and keeps at most SJ_LONGEST_MAX_ROWS. What is asked for beyond that is
 * sorted by SQLite. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALLS_LONGEST_H
#define SJ_COLLECTOR_SERVER_QUERY_CALLS_LONGEST_H

#include "collector-server/query/calls_plan.h"
#include "collector-server/query/function_groups.h"

enum { SJ_LONGEST_MAX_ROWS = 1 << 17 }; /* held at once */

/* The walk that rows come from. */
typedef struct sj_longest_source {
    /* begins a walk over the calls that last `min_ns` at least */
    int (*begin)(void *context, int64_t min_ns);
    /* the next rows, in columns of the plan: SQLITE_ROW, SQLITE_DONE, error */
    int (*give)(void *context, sj_group_batch *batch);
    void *context;
    sqlite3 *database;
    const sj_scan_filter *filter; /* of the whole question */
    const char *plan;             /* the same as constraints of `calls` */
    sqlite3_value **arguments;    /* of `plan` */
    int argument_count;
    const int *columns; /* that a batch has; SJ_CALLS_DURATION_NS and SJ_CALLS_CALL_ID are two */
    size_t column_count;
} sj_longest_source;

/* Zeroed is empty. One thread. */
typedef struct sj_calls_longest {
    sj_longest_source source;
    bool end;
    int8_t positions[SJ_CALLS_COLUMN_COUNT]; /* of a column in a row */
    size_t width;                            /* values a row */
    int64_t *rows;
    size_t row_count, row_capacity;
    uint32_t *order;
    size_t at;
    int64_t *bounds; /* longest call of each block, ns, the longest first */
    size_t bound_count, bound_capacity;
    size_t blocks;    /* that the next pass is to reach; 0: there is no other pass */
    int64_t given_ns; /* calls that last as long were given */
    size_t max_rows;  /* SJ_LONGEST_MAX_ROWS; less in tests */
    char *plan;       /* copies for `rest` */
    sqlite3_value **arguments;
    sqlite3_stmt *rest; /* SQLite's order; its columns are those of `positions` */
} sj_calls_longest;

/* sj_calls_longest_start takes what `source` names (its plan and arguments are copied) and finds
 * the first row; sj_calls_longest_next moves on. `end` is set behind the last. SQLite results. */
int sj_calls_longest_start(sj_calls_longest *longest, const sj_longest_source *source);
int sj_calls_longest_next(sj_calls_longest *longest);

/* sj_calls_longest_value gives a column of the current row as the source gave it; NULL in `*value`
 * when the row is one of SQLite's and the column itself is returned. */
int64_t sj_calls_longest_value(const sj_calls_longest *longest, int column, sqlite3_value **value);

void sj_calls_longest_deinit(sj_calls_longest *longest); /* safe on a zeroed one */

#endif
