#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/stall_report.h"

static int run_stalls(int argc, char **argv)
{
    sj_query_options options = {0};
    sqlite3 *database = NULL;
    int first = 0;
    int code = sj_options_parse(&sj_command_stalls, argc, argv, &options, &first);
    if (code < 0) {
        code = sj_query_take_file(&sj_command_stalls, argc, argv, first, &options.file);
    }
    if (code >= 0) {
        return code;
    }
    code = sj_query_open(&sj_command_stalls, &options, &database, NULL);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    if (sj_stall_report_print(database) != SJ_OK) {
        code = sj_command_error(&sj_command_stalls, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    }
    sqlite3_close(database);
    return code;
}

static const sj_option stalls_table[] = {SJ_DATABASE_OPTION(offsetof(sj_query_options, file)), {0}};

const sj_command sj_command_stalls = {
    .name = "stalls",
    .summary = "show threads that did not answer in time, and why",
    .usage = "sojourn stalls [OPTIONS] [FILE]",
    .help =
        "Lists each stall of a watched thread and each \"jank\" trigger that fired: which calls\n"
        "were open then, with their times, in that thread and in all others, who holds what\n"
        "it waits for, the stacks of Java threads, and pauses of the garbage collector.\n",
    .options = stalls_table,
    .examples = "Example:\n"
                "  sojourn stalls run.db\n",
    .run = run_stalls,
};
