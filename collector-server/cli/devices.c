#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"

#include <getopt.h>

static const char devices_sql[] =
    "SELECT d.device_id AS id, d.name, lower(substr(hex(d.uuid), 1, 8)) AS uuid, d.model, d.os,"
    " d.build, d.machine, d.agent_version AS version, d.tags,"
    " CASE WHEN t.device_id IS NULL THEN 'no' WHEN t.revoked_realtime_ns IS NOT NULL THEN 'revoked'"
    "  ELSE 'yes' END AS enrolled,"
    " datetime(max(d.last_seen_realtime_ns, coalesce(s.polled_realtime_ns, 0)) / 1000000000,"
    "  'unixepoch') AS last_seen,"
    " coalesce(s.status ->> 'recording', '') AS recording,"
    " (SELECT count(*) FROM sessions WHERE sessions.device_id = d.device_id) AS sessions,"
    " (SELECT count(*) FROM commands c WHERE c.device_id = d.device_id"
    "  AND c.state IN ('queued', 'sent')) AS open_commands,"
    " iif(count(*) OVER (PARTITION BY d.name) > 1,"
    "  'another device has this name: use id or uuid', '') AS note"
    " FROM devices d LEFT JOIN device_tokens t USING (device_id)"
    " LEFT JOIN device_status s USING (device_id) ORDER BY d.name, d.device_id";

static const char policies_sql[] =
    "SELECT r.rule_id AS rule, r.scope, CASE r.scope WHEN 'device' THEN (SELECT name FROM devices"
    "  WHERE device_id = CAST(r.subject AS INTEGER)) ELSE r.subject END AS subject, r.app,"
    " coalesce(r.document ->> 'name', '') AS policy, coalesce(r.document ->> 'mode', 'trace')"
    " AS mode, r.set_by, datetime(r.set_realtime_ns / 1000000000, 'unixepoch') AS since"
    " FROM policy_rules r WHERE r.ended_realtime_ns IS NULL ORDER BY r.rule_id";

static int run_devices(int argc, char **argv)
{
    static const struct option long_options[] = {SJ_QUERY_OPTIONS,
                                                 {"policies", no_argument, NULL, 'p'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    sj_query_options options = {0};
    const char *sql = devices_sql;
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        if (option == 'h') {
            return sj_command_help(&sj_command_devices);
        }
        if (option == 'p') {
            sql = policies_sql;
        } else if (!sj_query_common_option(&options, option, optarg)) {
            return sj_command_usage_error(&sj_command_devices, "%s: unknown option or no value",
                                          argv[optind - 1]);
        }
    }
    if (argc - optind > 1) {
        return sj_command_usage_error(&sj_command_devices, "one database at most");
    }
    options.file = optind < argc ? argv[optind] : NULL;
    int code = sj_query_open(&sj_command_devices, &options, &database, NULL);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    code =
        sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK
            ? sj_query_print(&sj_command_devices, &options, statement)
            : sj_command_error(&sj_command_devices, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    sqlite3_close(database);
    return code;
}

const sj_command sj_command_devices = {
    .name = "devices",
    .summary = "list the devices of a lab",
    .usage = "sojourn devices [OPTIONS] [FILE]",
    .help = "Lists every device that has sent a session or enrolled, with what it said last.\n\n"
            "Options:\n"
            "  --policies                  list the policies that are set instead\n"
            "  --json, --csv, --markdown   instead of a table\n"
            "  --wide                      never cut a cell\n"
            "  --help                      this text\n\n"
            "Examples:\n"
            "  sojourn devices lab.db\n"
            "  sojourn devices --json lab.db\n",
    .run = run_devices,
};
