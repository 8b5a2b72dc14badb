/* Requests to a ClickHouse server over HTTP, by libcurl. Internal to clickhouse.c. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_HTTP_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_HTTP_H

#include "collector-server/forward/forward_target.h"

#include <stdbool.h>

typedef struct sj_clickhouse_curl sj_clickhouse_curl;

struct sj_forward_target {
    sj_clickhouse_curl *curl;
    char *url, *user, *password, *ca_file;
    char database[64];
    const atomic_bool *stop;
    int64_t limit_ms; /* time limit of a write, to which 1 s for each MB is added */
    /* The next two members are set by `check`. */
    char cluster[64];       /* empty: one node */
    bool has_async_inserts; /* the server is of version 21.11 or later */
    /* The user may not change settings (readonly = 1), so sj_clickhouse_ask sends no settings. */
    bool is_read_only;
};

typedef struct sj_clickhouse_text {
    char *bytes;
    size_t size, capacity;
} sj_clickhouse_text;

typedef struct sj_clickhouse_question {
    const char *query;      /* sent in the URL; NULL: the body is the statement */
    const char *settings;   /* "&name=value..." */
    const sj_slice *pieces; /* pieces of the body */
    size_t piece_count;
    int64_t timeout_ms; /* 0: no limit while bytes arrive */
} sj_clickhouse_question;

/* Implement `open`, with its errors, and `close` of sj_forward_target_kind. */
SJ_MUST_CHECK sj_status sj_clickhouse_open(const sj_forward_options *options,
                                           sj_forward_target **target, sj_error *error);
void sj_clickhouse_close(sj_forward_target *target);

/* True if a text is allowed as the name of a database or cluster. */
bool sj_clickhouse_is_name(const char *text);

/* Sends one request and appends the answer to `*reply`. The caller frees reply->bytes, also after
 * an error. Blocks until the whole answer has arrived, the timeout has passed, or `stop` is set.
 * Returns SJ_EAGAIN if the server does not answer, SJ_ENOMEM, or an error of sj_clickhouse_refusal.
 */
SJ_MUST_CHECK sj_status sj_clickhouse_request(sj_forward_target *target,
                                              const sj_clickhouse_question *request,
                                              sj_clickhouse_text *reply, sj_error *error);

/* Runs one statement and ignores its answer. Blocks and fails as sj_clickhouse_request. */
SJ_MUST_CHECK sj_status sj_clickhouse_run(sj_forward_target *target, const char *sql,
                                          sj_error *error);

#endif
