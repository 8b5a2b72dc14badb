/* `sojourn sql --cluster`: a question to a cluster of many labs, printed as one to a database. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLUSTER_SQL_H
#define SJ_COLLECTOR_SERVER_CLI_CLUSTER_SQL_H

#include "collector-server/cli/query_command.h"
#include "collector-server/forward/cluster_question.h"

typedef struct sj_cluster_sql {
    const sj_command *command;
    sj_forward_options cluster; /* url NULL: none was named */
    const sj_query_options *options;
    const char *const *parameters; /* NAME=VALUE */
    size_t parameter_count;
    sj_cluster_limits limits;
    sj_forward_target *target; /* while it runs, as the next two */
    const sj_shipped_query *question;
    char held[2][512]; /* values that were made; the second: the session */
    char note[128];    /* about the answer; "": none */
    uint64_t answered; /* shards, before the question */
} sj_cluster_sql;

/* sj_cluster_sql_run runs a statement, or the question of that name; one of them is NULL. Says on
 * standard error which engine answered, and fails when that is not known. Returns an exit code,
 * after a message when it failed. */
int sj_cluster_sql_run(sj_cluster_sql *sql, const char *statement, const char *question);

/* sj_cluster_sql_list prints the names of the questions. */
void sj_cluster_sql_list(void);

#endif
