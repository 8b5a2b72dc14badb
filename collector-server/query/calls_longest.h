/* Rows of `calls` sorted by duration, longest first, for ORDER BY duration_ns DESC.
 *
 * Such a query mostly wants a few rows, but SQLite does not pass its LIMIT to a table in a join. So
 * the rows are found in passes. The blocks are sorted by their longest call, longest first. The
 * first pass returns the calls that are at least as long as the longest call of block 16 (from 0).
 * Each further pass uses eight times as many blocks. A pass that would use a quarter of all blocks
 * is the last: it reads all of them. A pass reads only blocks that may hold such calls.
 *
 * A pass keeps at most SJ_LONGEST_MAX_ROWS rows, the longest. If the last pass found more, or too
 * many rows are equally long, SQLite sorts the remaining rows. Rows without a duration come last,
 * also from SQLite. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALLS_LONGEST_H
#define SJ_COLLECTOR_SERVER_QUERY_CALLS_LONGEST_H

#include "collector-server/query/calls_plan.h"
#include "collector-server/query/function_groups.h"

enum { SJ_LONGEST_MAX_ROWS = 1 << 17 }; /* rows in memory */

/* The scan that finds the rows. */
typedef struct sj_longest_source {
    /* Starts a scan for the calls that last at least `min_ns`. */
    int (*begin)(void *context, int64_t min_ns);
    /* Writes the next rows to `batch`. Returns SQLITE_ROW, SQLITE_DONE or an error. */
    int (*give)(void *context, sj_group_batch *batch);
    void *context;
    sqlite3 *database;
    const sj_scan_filter *filter; /* filter of the whole query */
    const char *plan;             /* the same conditions as idxStr of sj_calls_plan */
    sqlite3_value **arguments;    /* arguments of `plan` */
    int argument_count;
    /* columns of a batch, including SJ_CALLS_DURATION_NS and SJ_CALLS_CALL_ID */
    const int *columns;
    size_t column_count;
} sj_longest_source;

/* All zero: empty. Not thread-safe. */
typedef struct sj_calls_longest {
    sj_longest_source source;
    bool end;                                /* there are no more rows */
    int8_t positions[SJ_CALLS_COLUMN_COUNT]; /* by column: its position in a row */
    size_t width;                            /* values per row */
    int64_t *rows;                           /* the rows of the current pass */
    size_t row_count, row_capacity;
    uint32_t *sorted; /* indexes of rows, longest first */
    size_t at;        /* index of the current row in `sorted` */
    int64_t *bounds;  /* longest call of each block in ns, longest first */
    size_t bound_count, bound_capacity;
    size_t blocks;    /* number of blocks for the next pass; 0: no further pass */
    int64_t given_ns; /* passes have returned all calls that are at least this long */
    size_t max_rows;  /* SJ_LONGEST_MAX_ROWS; less in tests */
    /* `plan` and `arguments` are copies of the source's members, for `remaining` */
    char *plan;
    sqlite3_value **arguments;
    sqlite3_stmt
        *remaining; /* the rows that SQLite sorts; columns by `positions`; NULL: none yet */
} sj_calls_longest;

/* sj_calls_longest_start copies the plan and arguments of `source` and moves to the first row.
 * sj_calls_longest_next moves to the next row. Both set `end` if there is none, and return SQLite
 * result codes. */
int sj_calls_longest_start(sj_calls_longest *longest, const sj_longest_source *source);
int sj_calls_longest_next(sj_calls_longest *longest);

/* Returns a column of the current row. If SQLite sorted the row, writes the column to `*value`
 * instead and returns 0; else writes NULL to `*value`. */
int64_t sj_calls_longest_value(const sj_calls_longest *longest, int column, sqlite3_value **value);

void sj_calls_longest_deinit(sj_calls_longest *longest); /* safe on zeroed rows */

#endif
