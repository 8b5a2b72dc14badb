#include "collector-server/cli/commands.h"
#include "collector-server/cli/device_list.h"
#include "collector-server/cli/query_command.h"

/* SQLite takes `realtime_ns` from the row with the greatest event_id. */
#define DEVICES_SQL                                                                                \
    "SELECT d.device_id AS id, d.name, lower(hex(d.uuid)) AS uuid, d.model, d.os,"                 \
    " d.build, d.machine, d.agent_version AS version, d.tags,"                                     \
    " CASE WHEN t.device_id IS NULL THEN 'no' WHEN t.revoked_realtime_ns IS NOT NULL THEN "        \
    "'revoked'"                                                                                    \
    "  ELSE 'yes' END AS enrolled,"                                                                \
    " max(d.last_seen_realtime_ns, coalesce(s.polled_realtime_ns, 0)) AS last_seen_realtime_ns,"   \
    " coalesce(s.status ->> 'recording', '') AS recording,"                                        \
    " (SELECT count(*) FROM sessions WHERE sessions.device_id = d.device_id) AS sessions,"         \
    " (SELECT count(*) FROM commands c WHERE c.device_id = d.device_id"                            \
    "  AND c.state IN ('queued', 'sent')) AS open_commands,"                                       \
    " CASE WHEN k.device_id IS NOT NULL THEN 'two daemons have this identity: see sojourn doctor'" \
    "  WHEN count(*) OVER (PARTITION BY d.name) > 1 THEN"                                          \
    "  'another device has this name: use id or uuid' ELSE coalesce('taken over '"                 \
    "  || datetime(e.realtime_ns / 1000000000, 'unixepoch'), '') END AS note"                      \
    " FROM devices d LEFT JOIN device_tokens t USING (device_id)"                                  \
    " LEFT JOIN device_status s USING (device_id) LEFT JOIN copied_devices k USING (device_id)"    \
    " LEFT JOIN (SELECT device_id, max(event_id), realtime_ns FROM token_events"                   \
    "  WHERE what = 'taken over' GROUP BY device_id) e USING (device_id) ORDER BY d.name, "        \
    "d.device_id"

const char sj_device_list_sql[] = DEVICES_SQL;

static const char table_sql[] =
    "SELECT id, name, substr(uuid, 1, 8) AS uuid, model, os, build, machine, version, tags, "
    "enrolled,"
    " datetime(last_seen_realtime_ns / 1000000000, 'unixepoch') AS last_seen, recording, sessions,"
    " open_commands, note FROM (" DEVICES_SQL ") ORDER BY name, id";

#define POLICIES_SQL                                                                               \
    "SELECT r.rule_id AS rule, r.scope, CASE r.scope WHEN 'device' THEN (SELECT name FROM devices" \
    "  WHERE device_id = CAST(r.subject AS INTEGER)) ELSE r.subject END AS subject, r.app,"        \
    " coalesce(r.document ->> 'name', '') AS policy, coalesce(r.document ->> 'mode', 'trace')"     \
    " AS mode, r.set_by, r.set_realtime_ns AS since_realtime_ns"                                   \
    " FROM policy_rules r WHERE r.ended_realtime_ns IS NULL"

static const char policies_sql[] = POLICIES_SQL " ORDER BY rule";

static const char policies_table_sql[] =
    "SELECT rule, scope, subject, app, policy, mode, set_by, datetime(since_realtime_ns / "
    "1000000000,"
    " 'unixepoch') AS since FROM (" POLICIES_SQL ") ORDER BY rule";

typedef struct devices_request {
    sj_query_options query;
    bool policies;
} devices_request;

static int run_devices(int argc, char **argv)
{
    static const char *const hidden_first[] = {
        "build",         "machine", "os",        "model",    "tags", "uuid",
        "open_commands", "version", "recording", "sessions", "app",  NULL};
    devices_request request = {.query.hidden_first = hidden_first};
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int first = 0;
    const int code = sj_options_parse(&sj_command_devices, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    const int taken =
        sj_query_take_file(&sj_command_devices, argc, argv, first, &request.query.file);
    if (taken >= 0) {
        return taken;
    }
    int exit_code = sj_query_open(&sj_command_devices, &request.query, &database, NULL);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    const char *const statements[2][2] = {{table_sql, sj_device_list_sql},
                                          {policies_table_sql, policies_sql}};
    const char *sql = statements[request.policies][sj_query_wants_data(&request.query)];
    exit_code =
        sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK
            ? sj_query_print(&sj_command_devices, &request.query, statement)
            : sj_command_error(&sj_command_devices, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    sqlite3_close(database);
    return exit_code;
}

static const sj_option devices_options[] = {
    SJ_DATABASE_OPTION(offsetof(devices_request, query.file)),
    {.name = "policies",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(devices_request, policies),
     .help = "list the policies that are set instead"},
    SJ_QUERY_FORMAT_OPTIONS(offsetof(devices_request, query)),
    {0}};

const sj_command sj_command_devices = {
    .name = "devices",
    .summary = "list the devices of a collector",
    .usage = "sojourn devices [OPTIONS] [FILE]",
    .help = "Lists every device that has sent a session or enrolled, with what it last reported.\n",
    .options = devices_options,
    .examples = "Examples:\n"
                "  sojourn devices lab.db\n"
                "  sojourn devices --json lab.db\n",
    .run = run_devices,
};
