#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "schema/queries/cli/devices.h"

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
    const int file_code =
        sj_query_parse_file(&sj_command_devices, argc, argv, first, &request.query.file);
    if (file_code >= 0) {
        return file_code;
    }
    int exit_code = sj_query_open(&sj_command_devices, &request.query, &database, NULL);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    const char *const statements[2][2] = {{sj_devices_table_sql, sj_devices_data_sql},
                                          {sj_devices_policies_table_sql, sj_devices_policies_sql}};
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
     .help = "list the assigned policies instead"},
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
