/* The parameters of a request that select sessions for a list. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_SESSION_FILTERS_H
#define SJ_COLLECTOR_SERVER_HTTP_SESSION_FILTERS_H

#include "collector-server/http/route.h"

/* SQL expression: the file name of a path. */
#define SJ_FILE_NAME(path) "replace(" path ", rtrim(" path ", replace(" path ", '/', '')), '')"

/* SQL expression: the tags of sessions `s`. An imported session may have anything there. */
#define SJ_SESSION_TAGS "iif(json_valid(s.tags), s.tags, '{}')"

/* SQL condition on sessions `s` of devices `d`. Its parameters ?1 to ?9 are the filters. */
#define SJ_SESSION_MATCHES                                                                         \
    "(?1 IS NULL OR instr(lower(s.command || char(10) || s.name || char(10) || s.state ||"         \
    " char(10) || s.tags || char(10) || d.name || char(10) || d.model || char(10) || d.os),"       \
    " lower(?1)) > 0)"                                                                             \
    " AND (?2 IS NULL OR s.device_id = ?2)"                                                        \
    " AND (?3 IS NULL OR s.state = ?3)"                                                            \
    " AND (?4 IS NULL OR s.session_id IN (SELECT p.session_id FROM processes p"                    \
    "  WHERE p.number = 1 AND " SJ_FILE_NAME(                                                      \
        "p.executable") " = ?4))"                                                                  \
                        " AND (?5 IS NULL OR s.session_id IN (SELECT sm.session_id FROM "          \
                        "session_modules sm"                                                       \
                        "  JOIN modules m USING (module_id) WHERE lower(hex(m.build_id)) = "       \
                        "lower(?5)))"                                                              \
                        " AND (?6 IS NULL OR EXISTS (SELECT 1 FROM json_each(" SJ_SESSION_TAGS     \
                        ") t WHERE "                                                               \
                        "t.key || '=' ||"                                                          \
                        "  t.value = ?6))"                                                         \
                        " AND (?7 IS NULL OR s.session_id IN (SELECT k.session_id FROM marks k "   \
                        "WHERE k.name = ?7))"                                                      \
                        " AND (?8 IS NULL OR s.started_realtime_ns >= ?8 * 1000000)"               \
                        " AND (?9 IS NULL OR s.started_realtime_ns < ?9 * 1000000)"

enum { SJ_SESSION_FILTERS = 9 };

typedef struct sj_session_filters {
    const char *search; /* texts are borrowed from the request; NULL: any value */
    int64_t device;     /* 0: any device */
    const char *state;
    const char *app;
    const char *build; /* hexadecimal */
    const char *tag;   /* KEY=VALUE */
    const char *mark;
    int64_t since_ms; /* earliest start, since the Unix epoch by the device's clock; 0: any */
    int64_t until_ms;
} sj_session_filters;

/* Reads the filters of a request. Returns SJ_EINVAL with the name of the wrong one. */
SJ_MUST_CHECK sj_status sj_session_filters_read(const sj_request *request,
                                                sj_session_filters *filters, sj_error *error);

/* Binds ?1 to ?9 of a statement with SJ_SESSION_MATCHES. The filters must exist until the
 * statement's last step. */
void sj_session_filters_bind(const sj_session_filters *filters, sqlite3_stmt *statement);

#endif
