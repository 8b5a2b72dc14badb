#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/stall_report.h"
#include "collector-server/cli/terminal.h"

typedef struct stalls_request {
    sj_query_options query;
    bool as_json;
} stalls_request;

static int report_database_error(sqlite3 *database)
{
    return sj_command_error(&sj_command_stalls, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
}

static int print_json(sqlite3 *database)
{
    json_t *stalls = NULL;
    return sj_stall_report_json(database, &stalls) == SJ_OK
               ? sj_json_output(&sj_command_stalls, stalls)
               : report_database_error(database);
}

static int print_text(sqlite3 *database)
{
    sj_terminal terminal;
    sj_terminal_open(&terminal);
    sj_terminal_page(&terminal);
    const sj_status status = sj_stall_report_print(database);
    if (!sj_terminal_close(&terminal)) {
        return sj_command_error(&sj_command_stalls, SJ_EXIT_FAILED, "cannot write the stalls");
    }
    return status == SJ_OK ? SJ_EXIT_OK : report_database_error(database);
}

static int run_stalls(int argc, char **argv)
{
    stalls_request request = {0};
    sqlite3 *database = NULL;
    int first = 0;
    int code = sj_options_parse(&sj_command_stalls, argc, argv, &request, &first);
    if (code < 0) {
        code = sj_query_parse_file(&sj_command_stalls, argc, argv, first, &request.query.file);
    }
    if (code >= 0) {
        return code;
    }
    code = sj_query_open(&sj_command_stalls, &request.query, &database, NULL);
    if (code == SJ_EXIT_OK) {
        code = request.as_json ? print_json(database) : print_text(database);
        sqlite3_close(database);
    }
    return code;
}

static const sj_option stalls_table[] = {SJ_DATABASE_OPTION(offsetof(stalls_request, query.file)),
                                         {.name = "json",
                                          .kind = SJ_ARG_FLAG,
                                          .offset = offsetof(stalls_request, as_json),
                                          .help = "as JSON, with times in nanoseconds"},
                                         {0}};

const sj_command sj_command_stalls = {
    .name = "stalls",
    .summary = "show threads that did not answer in time, and why",
    .usage = "sojourn stalls [OPTIONS] [FILE]",
    .help =
        "Lists each stall of a watched thread and each \"jank\" trigger that fired: which calls\n"
        "were open then, with their times, in that thread and in all others, who holds what\n"
        "it waits for, the stacks of Java threads, and pauses of the garbage collector.\n",
    .options = stalls_table,
    .examples = "Examples:\n"
                "  sojourn stalls run.db\n"
                "  sojourn stalls --json run.db\n",
    .run = run_stalls,
};
