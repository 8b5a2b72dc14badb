/* Questions to a cluster: the shipped questions (schema/cluster_queries), their parameters, and
 * the answer as a table. If a question also exists for one lab, both have the same name. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_QUESTION_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_QUESTION_H

#include "collector-server/forward/forward_target.h"
#include "collector-server/query/shipped_queries.h"

/* Returns all shipped questions, sorted by name. Borrowed. */
const sj_shipped_query *sj_cluster_questions(size_t *count);
/* Returns the shipped question with this name, borrowed, or NULL if there is none. */
const sj_shipped_query *sj_cluster_question_find(const char *name);

/* Replaces each :NAME outside of texts and comments by the value that `find` returns for it. If
 * the value is a number, it is written as it is, else as a quoted text. The caller frees `*filled`.
 * Returns SJ_EINVAL if `find` returns NULL, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_cluster_fill(const char *sql,
                                        const char *(*find)(void *context, const char *name),
                                        void *context, char **filled, sj_error *error);

/* Converts a pattern with the wildcards * and ? to a pattern for SQL's LIKE. The caller frees it.
 * Returns NULL if out of memory. */
char *sj_cluster_pattern(const char *pattern);

typedef struct sj_cluster_limits {
    int64_t rows; /* 0: a million */
    int64_t time_ms;
} sj_cluster_limits;

/* Runs a statement on the shards that can be reached. `*reply` is a database in memory whose table
 * `answer` has the resulting rows; the caller closes it. Sets `*is_cut` if there were more rows
 * than the limit. Returns SJ_EINVAL if the cluster refuses the statement, as it does for every
 * statement that writes. Returns SJ_EIO if the answer cannot be read. Other errors are those of
 * sj_clickhouse_ask. */
SJ_MUST_CHECK sj_status sj_cluster_ask(sj_forward_target *target, const char *sql,
                                       const sj_cluster_limits *limits, sqlite3 **reply,
                                       bool *is_cut, sj_error *error);

/* As sj_cluster_ask, but writes the rows to a new table temp.answer of `database`. Replaces an
 * older table of this name. Returns the same errors. */
SJ_MUST_CHECK sj_status sj_cluster_ask_into(sj_forward_target *target, const char *sql,
                                            const sj_cluster_limits *limits, sqlite3 *database,
                                            bool *is_cut, sj_error *error);

#endif
