/* The calls of one block after another added to groups (call_groups.h): what group_table.c asks.
 *
 * Goes over a block's events with a small stack: no call becomes a row. Times are those of `calls`,
 * in nanoseconds call by call, so that sums are what GROUP BY over `calls` gives. One thread. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_GROUP_WALK_H
#define SJ_COLLECTOR_SERVER_QUERY_GROUP_WALK_H

#include "collector-server/query/call_groups.h"
#include "collector-server/query/mark_spans.h"
#include "collector-server/query/valued_calls.h"

enum { SJ_ANY_ENDING = -1 };

/* What is asked of calls. */
typedef struct sj_group_question {
    sj_scan_filter filter; /* the scan decides sessions, streams and threads, the walk the rest */
    int64_t longest_ns;    /* with filter.ended */
    int ending;            /* sj_ending, or SJ_ANY_ENDING */
    bool by_value;
    sj_value_filter values;
    bool by[SJ_GROUP_KEYS];
    int64_t bucket_ns;
    bool histogram;
} sj_group_question;

/* Zeroed is empty and unopened. */
typedef struct sj_group_walk {
    sj_group_question asked;
    sj_call_groups groups;
    sj_mark_spans marks;
    sj_valued_calls values;
    sqlite3_stmt *process, *module;
    int64_t stream_id;           /* that keys and phases are of */
    int64_t keys[SJ_GROUP_KEYS]; /* of the stream, then of the call */
    uint32_t *numbers;           /* of groups, plus 1, by dictionary entry; 0: none yet */
    int64_t *modules;            /* by dictionary entry */
    struct sj_recent_group *recent;
    struct sj_walked_call *stack;
    uint64_t *open_indexes;
    size_t number_capacity, module_capacity, recent_capacity, stack_capacity, open_capacity;
} sj_group_walk;

/* sj_group_walk_open prepares; sj_group_walk_close frees all, safe on a zeroed one.
 * sj_group_walk_start forgets the groups and takes a question, whose values it does not keep.
 * SQLite results. */
int sj_group_walk_open(sj_group_walk *walk, sqlite3 *database);
void sj_group_walk_close(sj_group_walk *walk);
int sj_group_walk_start(sj_group_walk *walk, sqlite3 *database, const sj_group_question *asked);

/* sj_group_walk_add adds the calls of the block that a scan (SJ_SCAN_SUMS) is at. A block whose
 * events contradict each other is named in the warnings; what came before of it counts.
 * SQLITE_NOMEM; SQLITE_FULL: there are more groups than may be. */
int sj_group_walk_add(sj_group_walk *walk, sj_block_scan *scan);

#endif
