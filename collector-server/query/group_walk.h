/* Group walk: adds the calls of blocks to groups (call_groups.h), for group_table.c. It reads the
 * events of a block with a stack of open calls, without making rows. Each call's times are
 * converted to ns as in `calls`, so that the sums are equal to the sums of GROUP BY over `calls`.
 * Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_GROUP_WALK_H
#define SJ_COLLECTOR_SERVER_QUERY_GROUP_WALK_H

#include "collector-server/query/call_groups.h"
#include "collector-server/query/mark_spans.h"
#include "collector-server/query/valued_calls.h"

enum { SJ_ANY_ENDING = -1 };

/* Selects the calls to add, and the keys to group them by. */
typedef struct sj_group_question {
    sj_scan_filter filter;
    int64_t longest_ns; /* maximum duration; only with filter.ended */
    int ending;         /* sj_ending, or SJ_ANY_ENDING */
    bool by_value;      /* only calls with a recorded value that `values` describes */
    sj_value_filter values;
    bool by[SJ_GROUP_KEYS]; /* keys to group by */
    int64_t bucket_ns;      /* length of a bucket; only with SJ_KEY_BUCKET */
    bool histogram;         /* groups have histograms */
} sj_group_question;

/* All zero: empty and not open. */
typedef struct sj_group_walk {
    sj_group_question asked;
    sj_call_groups groups;
    sj_mark_spans marks;
    sj_valued_calls values;
    sqlite3_stmt *process, *module;
    int64_t stream_id;           /* the stream of the latest block */
    int64_t keys[SJ_GROUP_KEYS]; /* keys of the stream, and of the latest group */
    uint32_t *numbers; /* by dictionary entry: number of the group + 1; 0: not found yet */
    int64_t *modules;  /* by dictionary entry: module_id */
    struct sj_recent_group *recent;
    struct sj_walked_call *stack;
    uint64_t *open_indexes;
    size_t number_capacity, module_capacity, recent_capacity, stack_capacity, open_capacity;
} sj_group_walk;

/* sj_group_walk_open initializes a walk. sj_group_walk_close frees it; it is safe on a zeroed walk.
 * sj_group_walk_start removes all groups and copies `*asked`. It does not copy the values that
 * asked->values points to, and reads them only during the call. sj_group_walk_open and
 * sj_group_walk_start return SQLite result codes. */
int sj_group_walk_open(sj_group_walk *walk, sqlite3 *database);
void sj_group_walk_close(sj_group_walk *walk);
int sj_group_walk_start(sj_group_walk *walk, sqlite3 *database, const sj_group_question *asked);

/* Adds the calls of the current block of a scan (SJ_SCAN_SUMS). If the block's events contradict
 * each other, adds the calls before the contradiction, and the warnings name the block. Returns
 * SQLITE_OK, SQLITE_NOMEM, SQLITE_FULL if there are too many groups or histograms, or an error of
 * the database. */
int sj_group_walk_add(sj_group_walk *walk, sj_block_scan *scan);

#endif
