/* Group walk: adds the calls of block after block to groups (call_groups.h), for group_table.c. It
 * goes over a block's events with a small stack, so calls do not become rows. Times are those of
 * `calls`, in nanoseconds per call, so that sums equal GROUP BY over `calls`. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_GROUP_WALK_H
#define SJ_COLLECTOR_SERVER_QUERY_GROUP_WALK_H

#include "collector-server/query/call_groups.h"
#include "collector-server/query/mark_spans.h"
#include "collector-server/query/valued_calls.h"

enum { SJ_ANY_ENDING = -1 };

/* A question about calls. */
typedef struct sj_group_question {
    sj_scan_filter filter; /* the scan evaluates sessions, streams and threads, the walk the rest */
    int64_t longest_ns;    /* with filter.ended */
    int ending;            /* sj_ending, or SJ_ANY_ENDING */
    bool by_value;
    sj_value_filter values;
    bool by[SJ_GROUP_KEYS];
    int64_t bucket_ns;
    bool histogram;
} sj_group_question;

/* All zero: empty and not open. */
typedef struct sj_group_walk {
    sj_group_question asked;
    sj_call_groups groups;
    sj_mark_spans marks;
    sj_valued_calls values;
    sqlite3_stmt *process, *module;
    int64_t stream_id;           /* the stream of the keys and phases */
    int64_t keys[SJ_GROUP_KEYS]; /* keys of the stream, then of the call */
    uint32_t *numbers;           /* number of the group, plus 1, by dictionary entry; 0: none yet */
    int64_t *modules;            /* by dictionary entry */
    struct sj_recent_group *recent;
    struct sj_walked_call *stack;
    uint64_t *open_indexes;
    size_t number_capacity, module_capacity, recent_capacity, stack_capacity, open_capacity;
} sj_group_walk;

/* sj_group_walk_open prepares a walk. sj_group_walk_close frees it, safe on a zeroed one.
 * sj_group_walk_start removes all groups and starts a question, whose values it does not keep.
 * Return SQLite result codes. */
int sj_group_walk_open(sj_group_walk *walk, sqlite3 *database);
void sj_group_walk_close(sj_group_walk *walk);
int sj_group_walk_start(sj_group_walk *walk, sqlite3 *database, const sj_group_question *asked);

/* Adds the calls of the current block of a scan (SJ_SCAN_SUMS). If the block's events contradict
 * each other, the warnings name it, and the events before count. Returns SQLITE_NOMEM, or
 * SQLITE_FULL if there are too many groups. */
int sj_group_walk_add(sj_group_walk *walk, sj_block_scan *scan);

#endif
