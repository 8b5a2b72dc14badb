/* Returns values that the sessions of a list have: device, state, app, build, tag and mark, each
 * with its number of sessions, sorted by that number, descending. Omits the recorder's own tag. */
#include "collector-server/http/session_filters.h"
#include "collector-server/query/json_rows.h"

enum { VALUES_MAX = 50, FACETS = 6 };

static const char sql[] =
    "WITH hit AS MATERIALIZED (SELECT s.session_id, s.device_id, s.state, " SJ_SESSION_TAGS
    " AS tags, d.name"
    "  FROM sessions s JOIN devices d ON d.device_id = s.device_id WHERE " SJ_SESSION_MATCHES "),"
    " valued AS ("
    "  SELECT 'device' AS facet, CAST(device_id AS TEXT) AS value, name AS label, count(*) AS "
    "sessions"
    "   FROM hit GROUP BY device_id"
    "  UNION ALL SELECT 'state', state, state, count(*) FROM hit GROUP BY state"
    "  UNION ALL SELECT 'app', app, app, count(*) FROM (SELECT " SJ_FILE_NAME(
        "p.executable") "   AS app FROM hit JOIN processes p USING (session_id) WHERE p.number = "
                        "1) WHERE app <> ''"
                        "   GROUP BY app"
                        "  UNION ALL SELECT 'build', lower(hex(m.build_id)), min(" SJ_FILE_NAME(
                            "m.path") "),"
                                      "   count(DISTINCT hit.session_id) FROM hit JOIN processes p "
                                      "USING (session_id)"
                                      "   JOIN session_modules sm ON sm.session_id = "
                                      "hit.session_id JOIN modules m"
                                      "   ON m.module_id = sm.module_id AND m.path = p.executable "
                                      "WHERE p.number = 1"
                                      "   GROUP BY m.build_id"
                                      "  UNION ALL SELECT 'tag', t.key || '=' || t.value, t.key || "
                                      "'=' || t.value, count(*)"
                                      "   FROM hit, json_each(hit.tags) t WHERE t.key <> "
                                      "'clock_rate_uncertainty_ppm' GROUP BY 2"
                                      "  UNION ALL SELECT 'mark', k.name, k.name, count(DISTINCT "
                                      "hit.session_id)"
                                      "   FROM hit JOIN marks k ON k.session_id = hit.session_id "
                                      "GROUP BY k.name),"
                                      " ranked AS (SELECT *, row_number() OVER (PARTITION BY facet "
                                      "ORDER BY sessions DESC, value)"
                                      "  AS place FROM valued)"
                                      " SELECT facet, value, label, sessions FROM ranked WHERE "
                                      "place <= ?10"
                                      " ORDER BY facet, place";

static sj_status answer_facets(sj_request *request, json_t **body, sj_error *error)
{
    sj_session_filters filters = {0};
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_session_filters_read(request, &filters, error));
    SJ_TRY(sj_rows_prepare(request->database, sql, &statement, error));
    sj_session_filters_bind(&filters, statement);
    sqlite3_bind_int64(statement, SJ_SESSION_FILTERS + 1, VALUES_MAX);
    return sj_rows_list(statement, (size_t)VALUES_MAX * FACETS, body, error);
}

const sj_route sj_route_facets = {.pattern = "/api/v1/sessions/facets",
                                  .role = SJ_ROLE_READER,
                                  .is_slow = true,
                                  .run = answer_facets};
