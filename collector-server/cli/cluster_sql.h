/* `sojourn sql --cluster`: sends a query to a ClickHouse cluster of many labs. Prints the result in
 * the format that `sojourn sql` uses for a database. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLUSTER_SQL_H
#define SJ_COLLECTOR_SERVER_CLI_CLUSTER_SQL_H

#include "collector-server/cli/query_command.h"
#include "collector-server/forward/cluster_question.h"

typedef struct sj_cluster_sql {
    const sj_command *command;
    sj_forward_options cluster; /* url is NULL if the user named none */
    const sj_query_options *options;
    const char *const *parameters; /* NAME=VALUE */
    size_t parameter_count;
    sj_cluster_limits limits;
    /* Set by sj_cluster_sql_run: */
    sj_forward_target *target;
    const sj_shipped_query *question; /* NULL: the user gave a statement */
    /* held[0]: text of the latest computed parameter value; held[1]: the chosen session */
    char held[2][512];
    char note[128];    /* a remark about the result; "": none */
    uint64_t answered; /* number of shards that were counted before the query */
} sj_cluster_sql;

/* Runs `statement`, or the shipped query named `question`; one of the two is NULL. Prints the
 * result, and on standard error which engine ran the query. Fails if it is not known which shards
 * of the cluster took part. Returns an exit code, after a message if it is not SJ_EXIT_OK. */
int sj_cluster_sql_run(sj_cluster_sql *sql, const char *statement, const char *question);

/* Prints the names of all shipped queries, each with the question that it answers. Marks the
 * queries that do not run on a cluster. */
void sj_cluster_sql_list(void);

#endif
