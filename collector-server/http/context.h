/* Data that all requests of a server share. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_CONTEXT_H
#define SJ_COLLECTOR_SERVER_HTTP_CONTEXT_H

#include "collector-server/http/connection_watch.h"
#include "collector-server/http/database_pool.h"
#include "collector-server/http/event_hub.h"
#include "collector-server/http/login.h"
#include "collector-server/http/question_pool.h"
#include "collector-server/http/request_pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SJ_ASKED_REMEMBERED = 1024 };

typedef struct sj_http_context {
    sj_database_pool *databases;
    sj_question_pool *questions;
    sj_event_hub *events;
    sj_request_pool *requests;
    sj_connection_watch *watch;
    const char *database_path;
    /* the cluster that the database follows; NULL: it is a lab's own database */
    struct sj_cluster_mirror *mirror;
    sj_login login;
    sj_token_reader *tokens;
    bool audits_questions;                       /* SQL gets rows in the audit */
    _Atomic uint64_t asked[SJ_ASKED_REMEMBERED]; /* hashes of audited statements (audited.c) */
    uint16_t port;
    bool is_remote; /* the server listens beyond the loopback: by TLS, for clients with a token */
    void *metrics_context;
    void (*write_metrics)(void *context, FILE *text);   /* NULL: no further metrics */
    sj_status (*check)(void *context, sj_error *error); /* NULL: no check */
} sj_http_context;

#endif
