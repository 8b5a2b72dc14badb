/* `sojourn sql --cluster`: sends a query to a cluster of many labs and prints the result like that
 * of a database. */
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
    sj_forward_target *target; /* set while a query runs, like `question` */
    const sj_shipped_query *question;
    char held[2][512]; /* computed parameter values; held[1] is the session */
    char note[128];    /* a remark about the result; "": none */
    uint64_t answered; /* number of shards that answered before the query */
} sj_cluster_sql;

/* Runs a statement, or the shipped query named `question`; the other one is NULL. Prints on
 * standard error which engine answered, and fails if that is unknown. Returns an exit code, after a
 * message if it failed. */
int sj_cluster_sql_run(sj_cluster_sql *sql, const char *statement, const char *question);

/* Prints the names of the shipped queries for a cluster. */
void sj_cluster_sql_list(void);

#endif
