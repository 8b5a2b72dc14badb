/* The parameters of a request that select sessions for a list. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_SESSION_FILTERS_H
#define SJ_COLLECTOR_SERVER_HTTP_SESSION_FILTERS_H

#include "collector-server/http/route.h"

enum { SJ_SESSION_FILTERS = 9 };

typedef struct sj_session_filters {
    const char *search; /* texts are borrowed from the request; NULL: any value */
    int64_t device;     /* 0: any device */
    const char *state;
    const char *app;
    const char *build; /* hexadecimal */
    const char *tag;   /* KEY=VALUE */
    const char *mark;
    int64_t since_ms; /* sessions that began at this time or later, by the device's clock, since the
                       * Unix epoch; 0: any */
    int64_t until_ms; /* sessions that began before this time, by the same clock; 0: any */
} sj_session_filters;

/* Reads the filters of a request. Returns SJ_EINVAL with a message that names the invalid
 * filter. */
SJ_MUST_CHECK sj_status sj_session_filters_read(const sj_request *request,
                                                sj_session_filters *filters, sj_error *error);

/* Binds ?1 to ?9 of a statement that contains the SQL text session_matches (schema/queries/parts).
 * The texts of the filters must exist until the statement's last step. */
void sj_session_filters_bind(const sj_session_filters *filters, sqlite3_stmt *statement);

#endif
