/* Rows of `calls` sorted by duration, longest first, for ORDER BY duration_ns DESC.
 *
 * Such a query mostly wants a few rows, but SQLite does not tell a table in a join its LIMIT. So
 * the calls come in passes. The first pass gives the calls that last at least as long as the
 * longest call of the sixteenth block, sorted by longest call. Each further pass uses eight times
 * as many blocks, up to all. A pass reads only blocks that may hold such a call, and keeps at most
 * SJ_LONGEST_MAX_ROWS. SQLite sorts the rows beyond that. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALLS_LONGEST_H
#define SJ_COLLECTOR_SERVER_QUERY_CALLS_LONGEST_H

#include "collector-server/query/calls_plan.h"
#include "collector-server/query/function_groups.h"

enum { SJ_LONGEST_MAX_ROWS = 1 << 17 }; /* held at once */

/* The walk that gives the rows. */
typedef struct sj_longest_source {
    /* Starts a walk over the calls that last at least `min_ns`. */
    int (*begin)(void *context, int64_t min_ns);
    /* Gives the next rows, in columns of the plan. Returns SQLITE_ROW, SQLITE_DONE or an error. */
    int (*give)(void *context, sj_group_batch *batch);
    void *context;
    sqlite3 *database;
    const sj_scan_filter *filter; /* filter of the whole query */
    const char *plan;             /* the same conditions, as constraints of `calls` */
    sqlite3_value **arguments;    /* arguments of `plan` */
    int argument_count;
    /* columns of a batch, including SJ_CALLS_DURATION_NS and SJ_CALLS_CALL_ID */
    const int *columns;
    size_t column_count;
} sj_longest_source;

/* All zero: empty. Not thread-safe. */
typedef struct sj_calls_longest {
    sj_longest_source source;
    bool end;
    int8_t positions[SJ_CALLS_COLUMN_COUNT]; /* position of a column in a row */
    size_t width;                            /* values per row */
    int64_t *rows;
    size_t row_count, row_capacity;
    uint32_t *order;
    size_t at;
    int64_t *bounds; /* longest call of each block in ns, longest first */
    size_t bound_count, bound_capacity;
    size_t blocks;    /* number of blocks that the next pass must reach; 0: no further pass */
    int64_t given_ns; /* calls at least this long were given */
    size_t max_rows;  /* SJ_LONGEST_MAX_ROWS; less in tests */
    char *plan;       /* copies for `rest` */
    sqlite3_value **arguments;
    sqlite3_stmt *rest; /* sorted by SQLite; its columns are those of `positions` */
} sj_calls_longest;

/* sj_calls_longest_start copies the plan and arguments of `source` and finds the first row.
 * sj_calls_longest_next moves to the next one, and sets `end` after the last. Return SQLite result
 * codes. */
int sj_calls_longest_start(sj_calls_longest *longest, const sj_longest_source *source);
int sj_calls_longest_next(sj_calls_longest *longest);

/* Returns a column of the current row as the source gave it. If SQLite sorted the row, `*value` is
 * the column instead of NULL. */
int64_t sj_calls_longest_value(const sj_calls_longest *longest, int column, sqlite3_value **value);

void sj_calls_longest_deinit(sj_calls_longest *longest); /* safe on a zeroed one */

#endif
