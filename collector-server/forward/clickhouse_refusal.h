/* What a ClickHouse server's refusal means: whether to try again, and a sentence for the user. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_REFUSAL_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_REFUSAL_H

#include "proto/base/error.h"

/* sj_clickhouse_refusal reads an HTTP answer whose status `http` is not 200, and whose body is
 * `text`. `url` and `user` name the server and the login in the sentence. Never blocks; any thread.
 * Returns, with the server's own words in `error`: SJ_EPERM if the login is refused; SJ_ENOTFOUND
 * if a table or database is missing; SJ_EAGAIN if the server lacks disk space, memory or time now,
 * so that the same request may succeed later; else SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_clickhouse_refusal(const char *url, const char *user, long http,
                                              const char *text, sj_error *error);

#endif
