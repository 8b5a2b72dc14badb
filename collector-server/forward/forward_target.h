/* The database that a lab's sums are sent to. A target is a file that defines `struct
 * sj_forward_target` and a constant sj_forward_target_kind, as clickhouse.c does. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_TARGET_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_TARGET_H

#include "collector-server/forward/forward_tables.h"

#include <stdatomic.h>

typedef struct sj_forward_target sj_forward_target;

typedef struct sj_forward_options {
    const char *url;           /* URL of one node; all texts are borrowed */
    const char *database;      /* NULL: sojourn */
    const char *user;          /* NULL: the server's default user */
    const char *password_file; /* file whose first line is the password; NULL: none */
    const char *ca_file;       /* certificates that https trusts; NULL: those of the system */
    const char *tables;        /* tables to send (forward_choice.h); NULL: all */
    /* a mirror lists this many of the newest sessions; 0 means 100,000 */
    int64_t most_sessions;
    const atomic_bool *stop; /* set to cancel running requests; NULL: they cannot be cancelled */
    size_t batch_bytes;      /* approximate maximum size of a batch in memory; 0 means 16 MiB */
    /* time limit of a write, to which 1 s for each MB is added; 0 means 90 s */
    int64_t limit_ms;
    /* Several forwarders can share the work: each session's uuid assigns it to one of `shares`
     * shares, and this forwarder sends only the sessions of number `share` (from 0). If `shares` is
     * 0, it sends all. */
    unsigned share, shares;
    _Atomic uint64_t *steps; /* grows by one when a session was read, and again when it was sent;
                              * NULL: not counted */
} sj_forward_options;

typedef struct sj_forward_target_kind {
    const char *name;
    /* Creates a target without connecting to it. Returns SJ_EINVAL, SJ_ENOMEM, or SJ_EIO if the
     * password's file cannot be read. */
    sj_status (*open)(const sj_forward_options *options, sj_forward_target **target,
                      sj_error *error);
    /* Checks that the tables exist and are of this version. Returns SJ_ENOTFOUND, SJ_EVERSION,
     * SJ_EPERM if the login is refused, SJ_EAGAIN if the server does not answer, or SJ_EIO. */
    sj_status (*check)(sj_forward_target *target, sj_error *error);
    /* Reads the greatest version of the rows of `owners` (uuids, 16 bytes each) in a table; 0: the
     * owners have no rows. */
    sj_status (*newest_version)(sj_forward_target *target, const sj_forward_table *table,
                                sj_slice owners, uint64_t *version, sj_error *error);
    /* Adds rows of one table. On SJ_OK the target has all of them; after a failure it may have some
     * of them. Returns SJ_ELIMIT if the target refuses rows of so many months in one write. */
    sj_status (*write)(sj_forward_target *target, const sj_forward_table *table,
                       const sj_native_rows *rows, sj_error *error);
    void (*close)(sj_forward_target *target);
} sj_forward_target_kind;

#endif
