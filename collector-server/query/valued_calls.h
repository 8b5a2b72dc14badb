/* The calls of a block that have a value that is asked for (table `arguments`). */
#ifndef SJ_COLLECTOR_SERVER_QUERY_VALUED_CALLS_H
#define SJ_COLLECTOR_SERVER_QUERY_VALUED_CALLS_H

#include "collector-server/query/block_scan.h"
#include "collector-server/query/lost_calls.h"

/* What is asked of values; NULL: nothing. */
typedef struct sj_value_filter {
    sqlite3_value *position, *same, *least, *greatest;
} sj_value_filter;

/* Zeroed is empty and unopened. */
typedef struct sj_valued_calls {
    sqlite3_stmt *select;
    uint64_t *indexes; /* of the block's calls, rising */
    size_t count, capacity;
    size_t next;
    sj_lost_calls lost;
} sj_valued_calls;

/* sj_valued_calls_open prepares for one filter; sj_valued_calls_close frees all, safe on a zeroed
 * one. sj_valued_calls_enter reads those of the block that a scan is at. SQLite results. */
int sj_valued_calls_open(sj_valued_calls *calls, sqlite3 *database, const sj_value_filter *filter);
void sj_valued_calls_close(sj_valued_calls *calls);
int sj_valued_calls_enter(sj_valued_calls *calls, const sj_block_scan *scan);

/* sj_valued_calls_has returns whether the call numbered `row` in the block is one of them; asked of
 * rising ones. */
bool sj_valued_calls_has(sj_valued_calls *calls, const sj_block *block, uint32_t row);

#endif
