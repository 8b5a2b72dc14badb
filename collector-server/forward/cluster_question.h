/* Questions to a cluster: the shipped questions (schema/cluster_queries), their parameters, and
 * the answer as a table. A question that also exists for one lab has the same name there. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_QUESTION_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_QUESTION_H

#include "collector-server/forward/forward_target.h"
#include "collector-server/query/shipped_queries.h"

/* Returns all shipped questions, sorted by name. Borrowed. */
const sj_shipped_query *sj_cluster_questions(size_t *count);
/* Returns the shipped question with this name, borrowed, or NULL if there is none. */
const sj_shipped_query *sj_cluster_question_find(const char *name);

/* Replaces each :NAME outside of texts and comments by the value that `find` returns for it. The
 * value is written as a number if it is one, else as a quoted text. The caller frees `*filled`.
 * Returns SJ_EINVAL if `find` returns NULL, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_cluster_fill(const char *sql,
                                        const char *(*find)(void *context, const char *name),
                                        void *context, char **filled, sj_error *error);

/* Converts a pattern with * and ? to one for LIKE. The caller frees it. Returns NULL if out of
 * memory. */
char *sj_cluster_pattern(const char *pattern);

typedef struct sj_cluster_limits {
    int64_t rows; /* 0: a million */
    int64_t time_ms;
} sj_cluster_limits;

/* Asks the shards that answer. `*reply` is a database in memory with the table answer; the
 * caller closes it. Sets `*is_cut` if there were more rows than the limit. Returns SJ_EINVAL if
 * the cluster refuses the statement, as it does for every statement that writes. Returns SJ_EIO
 * if the answer cannot be read. Other errors are those of sj_clickhouse_ask. */
SJ_MUST_CHECK sj_status sj_cluster_ask(sj_forward_target *target, const char *sql,
                                       const sj_cluster_limits *limits, sqlite3 **reply,
                                       bool *is_cut, sj_error *error);

/* Like sj_cluster_ask, but writes the answer to the table temp.answer of the caller's database,
 * which it replaces. */
SJ_MUST_CHECK sj_status sj_cluster_ask_into(sj_forward_target *target, const char *sql,
                                            const sj_cluster_limits *limits, sqlite3 *database,
                                            bool *is_cut, sj_error *error);

#endif
