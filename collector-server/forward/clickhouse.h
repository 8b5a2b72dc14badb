/* ClickHouse over HTTP: the tables that hold the sums of many labs. A lab is one collector's
 * database. Needs ClickHouse 18.16 (Debian 12) or newer.
 *
 * Each row names the version of its session that it belongs to. Views show the rows of the newest
 * version whose row in `sessions` has arrived; that row is written last. Readers therefore never
 * see a session twice or in part, however often it is sent and whichever process is killed
 * meanwhile.
 *
 * On one node, a database has `raw_X` and the view `X` for each table. In a cluster, each node
 * has `raw_X` and the view `part_X`. `put_X` distributes writes by session, and `X` distributes
 * reads. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_H

#include "collector-server/forward/forward_target.h"

#include <stdio.h>

/* Version of the tables. Additions: 2: calls. 3: commands. 4: threads, open_calls, unhooked and
 * removals. 5: left_out. 6: columns of estimates in function_stats. */
enum { SJ_CLICKHOUSE_SCHEMA = 6 };

/* A value of `settings` for sj_clickhouse_ask: the server skips shards that do not answer.
 * sj_clickhouse_explain then says that the answer is partial. */
#define SJ_CLICKHOUSE_PARTIAL "&skip_unavailable_shards=1"

extern const sj_forward_target_kind sj_forward_clickhouse;

typedef struct sj_clickhouse_layout {
    const char *cluster; /* name in the server's configuration; NULL: one node */
    bool is_replicated;  /* if true, the node must define the macros {shard} and {replica} */
} sj_clickhouse_layout;

/* Creates the database and the tables that the node lacks. Adds the columns that tables of an older
 * version lack. May be called again. Returns SJ_EVERSION if the tables are of a newer version.
 * Returns SJ_EINVAL if they have another layout, or if the cluster's name is invalid. Other errors
 * are those of sj_clickhouse_ask. */
SJ_MUST_CHECK sj_status sj_clickhouse_init(sj_forward_target *target,
                                           const sj_clickhouse_layout *layout, sj_error *error);

/* Lets the tables drop sessions that began more than `days` days ago, and commands of that age.
 * The rows of `sessions` are dropped a week before the other rows, so that readers see no session
 * without its sums. Rows that mark a session as removed stay. The server drops rows when it merges
 * parts, hours later. Replaces an earlier limit. Returns SJ_EINVAL if the server is too old for
 * this (18.16). Other errors are those of sj_clickhouse_init. */
SJ_MUST_CHECK sj_status sj_clickhouse_retain(sj_forward_target *target, unsigned days,
                                             sj_error *error);

/* Runs one read-only statement within the server's limits, for at most `timeout_ms` (0: no limit
 * as long as bytes of the answer arrive). The caller frees the answer, which is NUL-terminated.
 * `settings` is appended to the request's URL ("" for none). Returns SJ_EINVAL if the server
 * refuses the statement. Other errors: those of sj_clickhouse_refusal, SJ_EAGAIN if the server does
 * not answer, and SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_clickhouse_ask(sj_forward_target *target, const char *sql,
                                          const char *settings, int64_t timeout_ms, char **reply,
                                          size_t *size, sj_error *error);

/* Counts the shards that answer now; 1 if the tables are on one node. Call it before a series of
 * questions, and pass the result to sj_clickhouse_explain after them. Errors are those of
 * sj_clickhouse_ask. */
SJ_MUST_CHECK sj_status sj_clickhouse_count_shards(sj_forward_target *target, uint64_t *answering,
                                                   sj_error *error);

/* Writes one line: which server answered, for how many labs and sessions, and which tables some
 * labs do not send. `answered` is the result of sj_clickhouse_count_shards before the questions. If
 * shards did not answer then, or do not answer now, the line also says how many. Returns SJ_EIO if
 * the server does not answer like ClickHouse. Other errors are those of sj_clickhouse_ask. */
SJ_MUST_CHECK sj_status sj_clickhouse_explain(sj_forward_target *target, uint64_t answered,
                                              char *line, size_t capacity, sj_error *error);

#endif
