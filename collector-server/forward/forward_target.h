/* Where a lab's sums go: another database. A target is a file with its own `struct
 * sj_forward_target` and a constant sj_forward_target_kind; clickhouse.c is one. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_TARGET_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_TARGET_H

#include "collector-server/forward/forward_tables.h"

#include <stdatomic.h>

typedef struct sj_forward_target sj_forward_target;

typedef struct sj_forward_options {
    const char *url;           /* of one node; borrowed, as the others */
    const char *database;      /* NULL: sojourn */
    const char *user;          /* NULL: as the server's default */
    const char *password_file; /* its first line; NULL: none */
    const char *ca_file;       /* what https trusts; NULL: as the system does */
    const char *tables;        /* that are given (forward_choice.h); NULL: all */
    int64_t most_sessions;     /* that a mirror lists, the newest; 0: 100,000 */
    const atomic_bool *stop;   /* ends what is under way; NULL: nothing does */
    size_t batch_bytes;        /* about what a forwarder holds at once; 0: 16 MiB */
    unsigned share, shares;    /* the sessions of this forwarder, by uuid; shares 0: all */
    _Atomic uint64_t *steps;   /* counts two a session: read, and sent; NULL: nothing does */
} sj_forward_options;

typedef struct sj_forward_target_kind {
    const char *name;
    /* open connects nowhere yet. SJ_EINVAL, SJ_ENOMEM, SJ_EIO the password's file. */
    sj_status (*open)(const sj_forward_options *options, sj_forward_target **target,
                      sj_error *error);
    /* check asks whether the tables are there, and as this version knows them. SJ_ENOTFOUND,
     * SJ_EVERSION, SJ_EPERM the password, SJ_EAGAIN not reached, SJ_EIO. */
    sj_status (*check)(sj_forward_target *target, sj_error *error);
    /* newest_version is that of any row of `owners` (16 bytes each) in a table; 0: none */
    sj_status (*newest_version)(sj_forward_target *target, const sj_forward_table *table,
                                sj_slice owners, uint64_t *version, sj_error *error);
    /* write adds rows of one table; when it returns SJ_OK they are there. Else some may be. */
    sj_status (*write)(sj_forward_target *target, const sj_forward_table *table,
                       const sj_native_rows *rows, sj_error *error);
    void (*close)(sj_forward_target *target);
} sj_forward_target_kind;

#endif
