/* Questions to a cluster: those that are shipped for it (schema/cluster_queries, of the same names
 * as for a lab where both have one), parameters, and the answer as a table. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_QUESTION_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_QUESTION_H

#include "collector-server/forward/forward_target.h"
#include "collector-server/query/shipped_queries.h"

/* sj_cluster_questions borrows all of them, in order of names. */
const sj_shipped_query *sj_cluster_questions(size_t *count);
const sj_shipped_query *sj_cluster_question_find(const char *name); /* NULL: none */

/* sj_cluster_fill replaces each :NAME outside of texts and comments by the value that `find` gives
 * for it, as a literal: a number, else a text; `*filled` is to be freed. SJ_EINVAL: there is none;
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_cluster_fill(const char *sql,
                                        const char *(*find)(void *context, const char *name),
                                        void *context, char **filled, sj_error *error);

/* sj_cluster_pattern makes of a pattern with * and ? one for LIKE; NULL: no memory. */
char *sj_cluster_pattern(const char *pattern);

typedef struct sj_cluster_limits {
    int64_t rows; /* 0: a million */
    int64_t time_ms;
} sj_cluster_limits;

/* sj_cluster_ask asks those shards that answer, and gives the answer as the table `answer` of a
 * database in memory, to be closed; `*is_cut` when there were more rows. SJ_EINVAL: the cluster
 * refuses the statement, as all that writes; SJ_EPERM, SJ_EAGAIN, SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_cluster_ask(sj_forward_target *target, const char *sql,
                                       const sj_cluster_limits *limits, sqlite3 **answer,
                                       bool *is_cut, sj_error *error);

/* sj_cluster_ask_into does so in a database of the caller's, as the table temp.answer, made anew.
 */
SJ_MUST_CHECK sj_status sj_cluster_ask_into(sj_forward_target *target, const char *sql,
                                            const sj_cluster_limits *limits, sqlite3 *database,
                                            bool *is_cut, sj_error *error);

#endif
