/* The HTTP server of the collector. It serves a versioned JSON API over one database, and sends
 * events while sessions are recorded. It also serves the dashboard, whose files are part of the
 * program.
 *
 * GETs use connections that cannot write. Stored data is sent only to clients that send the token
 * (login.h): a machine has several users, and any page in a browser can send requests to the
 * loopback. Requests of other sites' pages are refused before any data is read (guard.h).
 *
 * On loopback addresses, the Host header must name the loopback. So a page of another site cannot
 * reach the server by a host name that the site controls (DNS rebinding). The dashboard's own files
 * need no token on the loopback. Any other address is served by TLS 1.2 or newer. Every change is a
 * POST (post.h). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_HTTP_H
#define SJ_COLLECTOR_SERVER_HTTP_HTTP_H

#include "proto/base/error.h"

#include <stdint.h>
#include <stdio.h>

typedef struct sj_http sj_http;

typedef struct sj_http_options {
    const char *database_path;
    const char *address; /* numeric IPv4 or IPv6 address, or "localhost"; NULL: 127.0.0.1 */
    uint16_t port;       /* 0: any free port */
    /* file of the collector's token, created if missing; NULL: the token is only for this run, and
     * addresses beyond the loopback are refused */
    const char *token_path;
    const char *certificate; /* PEM, with its key, for addresses beyond the loopback; else NULL */
    const char *key;
    /* the cluster of many labs that the database follows (forward/cluster_mirror.h), so that POSTs
     * are refused; borrowed; NULL: no cluster */
    struct sj_cluster_mirror *mirror;
    void *metrics_context;
    /* Adds lines to /metrics. Called on any thread of the server. NULL: no lines. */
    void (*write_metrics)(void *context, FILE *text);
    /* Fails while the collector does not store frames. Called with metrics_context, on any thread
     * of the server. NULL: no check. */
    sj_status (*check)(void *context, sj_error *error);
} sj_http_options;

/* Opens the database, listens, and serves on its own threads until sj_http_stop. This program
 * answers SQL in separate processes: main() must begin with sj_question_worker_main
 * (question_worker.h). The caller owns `*server`. Blocks while it opens the database.
 *
 * Returns SJ_ENOTFOUND if there is no such file, and SJ_ECORRUPT if it is not a Sojourn database.
 * Returns SJ_EPERM if the address is not a loopback address, and token or certificate are missing.
 * Returns SJ_EIO if the port is in use, the certificate is invalid, or a thread cannot be created;
 * SJ_EINVAL; SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_http_start(const sj_http_options *options, sj_http **server,
                                      sj_error *error);

/* Ends every connection, waits for running requests (at most seconds, because each has a deadline)
 * and frees the server. NULL is allowed. Do not call it on a thread of the server. */
void sj_http_stop(sj_http *server);

/* Returns the dashboard's URL, "http://127.0.0.1:8377/" or https. Borrowed from the server;
 * thread-safe. */
const char *sj_http_url(const sj_http *server);

/* Returns the token that requests must send. Borrowed from the server; thread-safe. */
const char *sj_http_token(const sj_http *server);

#endif
