/* The options for a ClickHouse cluster of many labs: its database and the credentials for it. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLUSTER_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_CLUSTER_OPTIONS_H

#include "collector-server/cli/options.h"
#include "collector-server/forward/forward_target.h"

/* Rows of a table of options; `base` is the offset of the sj_forward_options in the structure. */
/* clang-format off */
#define SJ_CLUSTER_OPTIONS(base) \
    {.name = "cluster-db", .argument = "NAME", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_forward_options, database), \
     .help = "database there (default: sojourn)"}, \
    {.name = "cluster-user", .argument = "NAME", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_forward_options, user), \
     .help = "user there (default: default)"}, \
    {.name = "cluster-password", .argument = "FILE", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_forward_options, password_file), \
     .help = "the password is the first line of FILE"}, \
    {.name = "cluster-ca", .argument = "FILE", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_forward_options, ca_file), \
     .help = "certificates that https:// trusts (PEM; default: the system's)"}

/* A row for commands that read a mirror of the cluster (cluster_mirror.h). */
#define SJ_CLUSTER_LIST_OPTION(base) \
    {.name = "cluster-sessions", .argument = "N", .kind = SJ_ARG_NUMBER, .least = 1, \
     .most = 100000000, .offset = (base) + offsetof(sj_forward_options, most_sessions), \
     .help = "look at the newest N sessions there (default: 100000)"}
/* clang-format on */

#endif
