/* Finds the calls of a block that have a wanted value (table `arguments`). */
#ifndef SJ_COLLECTOR_SERVER_QUERY_VALUED_CALLS_H
#define SJ_COLLECTOR_SERVER_QUERY_VALUED_CALLS_H

#include "collector-server/query/block_scan.h"
#include "collector-server/query/lost_calls.h"

/* Conditions on values; NULL: none. */
typedef struct sj_value_filter {
    sqlite3_value *position, *same, *least, *greatest;
} sj_value_filter;

/* All zero: empty and not open. */
typedef struct sj_valued_calls {
    sqlite3_stmt *select;
    uint64_t *indexes; /* indexes of the block's calls, sorted */
    size_t count, capacity;
    size_t next;
    sj_lost_calls lost;
} sj_valued_calls;

/* sj_valued_calls_open prepares for one filter. sj_valued_calls_close frees everything, safe on a
 * zeroed one. sj_valued_calls_enter reads the calls of the current block of a scan. Return SQLite
 * result codes. */
int sj_valued_calls_open(sj_valued_calls *calls, sqlite3 *database, const sj_value_filter *filter);
void sj_valued_calls_close(sj_valued_calls *calls);
int sj_valued_calls_enter(sj_valued_calls *calls, const sj_block_scan *scan);

/* True if call number `row` of the block is one of them; call it with rising numbers. */
bool sj_valued_calls_has(sj_valued_calls *calls, const sj_block *block, uint32_t row);

#endif
