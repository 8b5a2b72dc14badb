/* ClickHouse over HTTP, from Debian 12's 18.16 on: the tables that hold the sums of many labs.
 *
 * Each row says which version of its session it belongs to; views show those of the newest version
 * whose row in `sessions` has arrived, which is written last. So nothing is seen twice or in part,
 * however often a session is sent, and whoever is killed meanwhile.
 *
 * A database of one node has `raw_X` and the view `X` for each table; of a cluster `raw_X` and the
 * view `part_X` on each node, and `put_X` and `X` that distribute writing and reading by session.
 */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_H

#include "collector-server/forward/forward_target.h"

#include <stdio.h>

/* 2: calls; 3: commands; 4: threads, open_calls, unhooked, removals; 5: left_out;
 * 6: columns of estimates in function_stats */
enum { SJ_CLICKHOUSE_SCHEMA = 6 };

/* The setting of questions that are answered without shards that are away; sj_clickhouse_explain
 * says then that the answer is partial. */
#define SJ_CLICKHOUSE_PARTIAL "&skip_unavailable_shards=1"

extern const sj_forward_target_kind sj_forward_clickhouse;

typedef struct sj_clickhouse_layout {
    const char *cluster; /* as the server's configuration names it; NULL: one node */
    bool is_replicated;  /* the node's macros are {shard} and {replica} */
} sj_clickhouse_layout;

/* sj_clickhouse_init makes what is missing on the node; again does no harm, and adds what an older
 * version had not. SJ_EVERSION: there are tables of a newer version; SJ_EINVAL: of another layout;
 * SJ_EPERM, SJ_EAGAIN, SJ_EIO.
 */
SJ_MUST_CHECK sj_status sj_clickhouse_init(sj_forward_target *target,
                                           const sj_clickhouse_layout *layout, sj_error *error);

/* sj_clickhouse_ask runs one reading statement within the server's limits for `timeout_ms` at most
 * and gives its answer as a string, to be freed. `settings` is added to the request's URL ("" for
 * none). SJ_EINVAL: the server refuses the statement, SJ_EPERM, SJ_EAGAIN, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_clickhouse_ask(sj_forward_target *target, const char *sql,
                                          const char *settings, int64_t timeout_ms, char **answer,
                                          size_t *size, sj_error *error);

/* sj_clickhouse_count_shards counts the shards that answer now; 1 where the tables are of one node.
 * To be asked before questions, for sj_clickhouse_explain. As sj_clickhouse_ask. */
SJ_MUST_CHECK sj_status sj_clickhouse_count_shards(sj_forward_target *target, uint64_t *answering,
                                                   sj_error *error);

/* sj_clickhouse_explain says in one line which server answers, and for how many labs and sessions;
 * how many of its shards are away, or were before (`answered`: the number of those that did), and
 * which tables some labs do not give. */
SJ_MUST_CHECK sj_status sj_clickhouse_explain(sj_forward_target *target, uint64_t answered,
                                              char *line, size_t capacity, sj_error *error);

#endif
