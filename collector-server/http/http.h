/* The HTTP side of the collector: a versioned JSON API over one database, server-sent events while
 * sessions are being recorded, and the dashboard, whose files are part of the program.
 *
 * GETs read through connections that cannot write. Whatever is stored is answered to those only who
 * show the token (login.h): a machine has several users, and any page in a browser can send
 * requests to the loopback. Pages of other sites are refused before anything is read (guard.h). On
 * loopback addresses the Host header must name the loopback, so that no other site reaches the
 * server through a name that it controls; the dashboard's own files need no token there. Any other
 * address is served by TLS 1.2 or newer. What changes something is a POST (post.h).
 */
#ifndef SJ_COLLECTOR_SERVER_HTTP_HTTP_H
#define SJ_COLLECTOR_SERVER_HTTP_HTTP_H

#include "proto/base/error.h"

#include <stdint.h>
#include <stdio.h>

typedef struct sj_http sj_http;

typedef struct sj_http_options {
    const char *database_path;
    const char *address;     /* numeric IPv4 or IPv6 address, or "localhost"; NULL: 127.0.0.1 */
    uint16_t port;           /* 0: one that is free */
    const char *token_path;  /* of the collector's token, made when missing; NULL: the token is of
                                this run, and addresses beyond the loopback are refused */
    const char *certificate; /* PEM, with its key, for addresses beyond the loopback; else NULL */
    const char *key;
    struct sj_cluster_mirror *mirror; /* the database follows a cluster of many labs by it
                                         (forward/cluster_mirror.h), and POSTs are refused;
                                         borrowed; NULL: it does not */
    void *metrics_context;
    /* adds lines to /metrics; called from any thread of the server; NULL: none */
    void (*write_metrics)(void *context, FILE *text);
    /* fails while frames are not stored; with metrics_context, from any thread; NULL: no check */
    sj_status (*check)(void *context, sj_error *error);
} sj_http_options;

/* sj_http_start opens the database, listens, and serves from threads of its own until
 * sj_http_stop. SQL is answered by this program in processes of its own: main() has to begin with
 * sj_question_worker_main (question_worker.h). `*server` is owned by the caller. Blocks while the
 * database is opened. Errors:
 * SJ_ENOTFOUND no such file; SJ_ECORRUPT not a Sojourn database; SJ_EPERM the address is not a
 * loopback one, and token or certificate are missing; SJ_EIO the port is taken, the certificate is
 * none, or a thread cannot be made; SJ_EINVAL; SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_http_start(const sj_http_options *options, sj_http **server,
                                      sj_error *error);

/* sj_http_stop ends every connection, waits for requests that run (seconds at most: each has a
 * deadline) and frees the server. NULL is allowed. Not from a thread of the server. */
void sj_http_stop(sj_http *server);

/* sj_http_url returns where the dashboard is, "http://127.0.0.1:8377/" or https. Borrowed from the
 * server; any thread. */
const char *sj_http_url(const sj_http *server);

/* sj_http_token returns the token that requests have to show. Borrowed from the server; any thread.
 */
const char *sj_http_token(const sj_http *server);

#endif
