/* Converts a ClickHouse server's refusal to a status, which says whether to retry, and to a
 * sentence for the user. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_REFUSAL_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_REFUSAL_H

#include "proto/base/error.h"

#include <stdbool.h>

/* Interprets an HTTP answer whose status `http` is not 200, and whose body is `text`. Writes a
 * sentence with the server's own words to `error`. `url` and `user` name the server and the login
 * in it. Does not block. Thread-safe. Returns SJ_EPERM if the login is refused or lacks a right, or
 * SJ_ENOTFOUND if a table or database is missing. Returns SJ_EAGAIN if the server lacks disk space,
 * memory or time now, so that the same request may succeed later. Returns SJ_ELIMIT if one insert
 * has rows of too many months. Returns SJ_EINVAL otherwise. */
SJ_MUST_CHECK sj_status sj_clickhouse_refusal(const char *url, const char *user, long http,
                                              const char *text, sj_error *error);

/* True if an answer says that the server refuses the settings of the request, because the user is
 * read-only (readonly = 1). `text` is the body of the answer. */
bool sj_clickhouse_refuses_settings(const char *text);

#endif
