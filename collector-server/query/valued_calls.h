/* Finds the calls of a block with wanted values in the table `arguments`. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_VALUED_CALLS_H
#define SJ_COLLECTOR_SERVER_QUERY_VALUED_CALLS_H

#include "collector-server/query/block_scan.h"
#include "collector-server/query/lost_calls.h"

/* Conditions on an argument: its position, and its value (equal, at least, at most). NULL: none. */
typedef struct sj_value_filter {
    sqlite3_value *position, *same, *least, *greatest;
} sj_value_filter;

/* All zero: empty and not open. */
typedef struct sj_valued_calls {
    sqlite3_stmt *select;
    uint64_t *indexes; /* sorted numbers in the stream of the found calls of the block */
    size_t count, capacity;
    size_t next; /* in `indexes`: the first that sj_valued_calls_has did not pass */
    sj_lost_calls lost;
} sj_valued_calls;

/* sj_valued_calls_open prepares the search with a filter. sj_valued_calls_enter finds the calls of
 * the current block of a scan. sj_valued_calls_close frees the memory; it is safe on zeroed calls.
 * The functions return SQLite result codes. */
int sj_valued_calls_open(sj_valued_calls *calls, sqlite3 *database, const sj_value_filter *filter);
void sj_valued_calls_close(sj_valued_calls *calls);
int sj_valued_calls_enter(sj_valued_calls *calls, const sj_block_scan *scan);

/* True if the call of row `row` of the block was found. Pass rows in ascending order. */
bool sj_valued_calls_has(sj_valued_calls *calls, const sj_block *block, uint32_t row);

#endif
