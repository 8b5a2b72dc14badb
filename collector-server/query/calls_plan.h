/* Plans queries of the table `calls`: converts the constraints of an SQL query into the filter of a
 * block scan. calls_table.c uses the plan; lineage_table.c and statement_table.c use only the
 * numbers of the columns. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_CALLS_PLAN_H
#define SJ_COLLECTOR_SERVER_QUERY_CALLS_PLAN_H

#include "collector-server/query/block_scan.h"

/* Columns of `calls`, in the order of their declaration. */
typedef enum sj_calls_column {
    SJ_CALLS_CALL_ID,
    SJ_CALLS_SESSION_ID,
    SJ_CALLS_STREAM_ID,
    SJ_CALLS_THREAD_ID,
    SJ_CALLS_FUNCTION_ID,
    SJ_CALLS_PARENT_ID,
    SJ_CALLS_DEPTH,
    SJ_CALLS_START_NS,
    SJ_CALLS_END_NS,
    SJ_CALLS_DURATION_NS,
    SJ_CALLS_SELF_NS,
    SJ_CALLS_ENDING,
    SJ_CALLS_FLAGS,
    SJ_CALLS_CALLER_FUNCTION_ID,
    SJ_CALLS_TAIL_CALLER_ID,
    SJ_CALLS_PHYSICAL_PARENT_ID,
    SJ_CALLS_PHYSICAL_DURATION_NS,
    SJ_CALLS_CPU_NS,
    SJ_CALLS_CPU_SELF_NS,
    SJ_CALLS_ALLOCATIONS,
    SJ_CALLS_ALLOCATED_BYTES,
    SJ_CALLS_FREES,
    SJ_CALLS_FREED_BYTES,
    SJ_CALLS_NET_BYTES,
    SJ_CALLS_ALLOCATED_SELF_BYTES,
    SJ_CALLS_COLUMN_COUNT
} sj_calls_column;

/* Bits of idxNum, above one bit per used column. SJ_CALLS_GROUPED: rows are sorted by function.
 * SJ_CALLS_LONGEST: rows are sorted by duration, longest first. SJ_CALLS_DISTINCT: one row per
 * function is enough. */
enum { SJ_CALLS_GROUPED = 1 << 28, SJ_CALLS_LONGEST = 1 << 29, SJ_CALLS_DISTINCT = 1 << 30 };

/* Implements xBestIndex. Returns an SQLite result code. */
int sj_calls_plan(sj_query_state *state, sqlite3_index_info *info);

/* The integers of a constraint x IN (...), sorted. All zero: empty. */
typedef struct sj_calls_set {
    int64_t *numbers;
    size_t count, capacity;
} sj_calls_set;

/* Reads the integers of the plan's IN constraint into `set`; without one, empties `set`. The caller
 * frees `numbers`. Returns an SQLite result code. */
int sj_calls_read_set(const char *plan, int argc, sqlite3_value **argv, sj_calls_set *set);

/* Returns the OFFSET of the plan, 0 if it has none. */
int64_t sj_calls_offset(const char *plan, int argc, sqlite3_value **argv);

/* Makes the filter of a plan from its idxStr and arguments. Borrows `set`. Returns false if no call
 * can match. */
bool sj_calls_filter(const char *plan, int argc, sqlite3_value **argv, const sj_calls_set *set,
                     sj_scan_filter *filter);

#endif
