#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/replay.h"

#include <string.h>

/* OTHER_LINES: lines of a screen that show no calls. LEAST_CALLS: calls shown on a small screen.
 * CALLS_AROUND: calls shown for --around without a terminal. */
enum { OTHER_LINES = 9, LEAST_CALLS = 5, CALLS_AROUND = 50 };

typedef struct replay_options {
    sj_query_options query;
    sj_replay_request request;
    int64_t around; /* call id; 0: none */
    int64_t count;  /* 0: a screenful on a terminal, else all */
    bool all;
} replay_options;

/* Limits the request to request->count calls of one thread, with the call of --around in their
 * middle. A call_id is stream_id * 2^38 plus a number within the stream. */
static sj_status choose_around(sqlite3 *database, const replay_options *options,
                               sj_replay_request *request, sj_error *error)
{
    static const char sql[] = "SELECT session_id, stream_id FROM calls WHERE call_id = ?1";
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "%s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, options->around);
    const int result = sqlite3_step(row);
    if (result == SQLITE_ROW) {
        const int64_t stream = sqlite3_column_int64(row, 1);
        const int64_t lowest = stream * (INT64_C(1) << 38);
        const int64_t highest = lowest + (INT64_C(1) << 38) - 1;
        const int64_t before = request->count / 2;
        const int64_t after = request->count - before - 1;
        request->session_id = sqlite3_column_int64(row, 0);
        request->marked_call = options->around;
        request->first_call = options->around - lowest > before ? options->around - before : lowest;
        request->last_call = highest - options->around > after ? options->around + after : highest;
    }
    sqlite3_finalize(row);
    return result == SQLITE_ROW ? SJ_OK
           : result == SQLITE_DONE
               ? sj_fail(error, SJ_ENOTFOUND, "there is no call %lld", (long long)options->around)
               : sj_fail(error, SJ_EIO, "%s", sqlite3_errmsg(database));
}

static int64_t choose_count(const replay_options *options, const sj_terminal *terminal)
{
    if (options->count != 0) {
        return options->count;
    }
    if (options->all || !terminal->is_terminal || options->request.follow) {
        return options->around != 0 ? CALLS_AROUND : -1;
    }
    const int space = terminal->rows - OTHER_LINES;
    return space < LEAST_CALLS ? LEAST_CALLS : space;
}

static int show_replay(replay_options *options)
{
    sqlite3 *database;
    sj_terminal terminal;
    sj_error error = {0};
    sj_replay_request *request = &options->request;
    const int exit_code =
        sj_query_open(&sj_command_replay, &options->query, &database, &request->session_id);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    sj_query_warn_of_totals(&sj_command_replay, database, request->session_id);
    sj_terminal_open(&terminal);
    request->count = choose_count(options, &terminal);
    request->wide = options->query.wide;
    sj_status status =
        options->around != 0 ? choose_around(database, options, request, &error) : SJ_OK;
    bool written = true;
    if (status == SJ_OK) {
        if (options->request.follow || options->request.json) {
            /* No pager: it would show the rows only at the end. */
        } else if (options->all || options->count > terminal.rows) {
            sj_terminal_page(&terminal);
        }
        status = sj_replay_print(database, request, &terminal, &error);
        written = sj_terminal_close(&terminal);
    }
    sj_query_print_warnings(&sj_command_replay, database);
    sqlite3_close(database);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_replay, &error);
    }
    return written
               ? SJ_EXIT_OK
               : sj_command_error(&sj_command_replay, SJ_EXIT_FAILED, "cannot write the result");
}

static int run_replay(int argc, char **argv)
{
    replay_options options = {.request = {.to_ns = INT64_MAX, .last_call = INT64_MAX}};
    int first = 0;
    const int code = sj_options_parse(&sj_command_replay, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    const int file_code =
        sj_query_parse_file(&sj_command_replay, argc, argv, first, &options.query.file);
    if (file_code >= 0) {
        return file_code;
    }
    if (options.request.follow && options.around != 0) {
        return sj_command_usage_error(&sj_command_replay,
                                      "--follow and --around exclude each other");
    }
    if (options.all && options.count != 0) {
        return sj_command_usage_error(&sj_command_replay, "--all and --count exclude each other");
    }
    if (options.request.to_ns < options.request.from_ns) {
        return sj_command_usage_error(&sj_command_replay, "--to is a moment before --from");
    }
    return show_replay(&options);
}

static const sj_option replay_table[] = {
    SJ_DATABASE_OPTION(offsetof(replay_options, query.file)),
    SJ_QUERY_SESSION_OPTION(offsetof(replay_options, query)),
    {.name = "thread",
     .argument = "T",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(replay_options, request.thread),
     .help = "only this thread: its name, tid or number in the session"},
    {.name = "from",
     .argument = "TIME",
     .kind = SJ_ARG_PARSED,
     .parse = sj_moment_parse,
     .offset = offsetof(replay_options, request.from_ns),
     .help = "calls entered from this time on, since the session's start: 1.5s, 20ms, 3us"},
    {.name = "to",
     .argument = "TIME",
     .kind = SJ_ARG_PARSED,
     .parse = sj_moment_parse,
     .offset = offsetof(replay_options, request.to_ns),
     .help = "calls entered up to this time"},
    {.name = "around",
     .argument = "CALL",
     .kind = SJ_ARG_NUMBER,
     .least = 1,
     .offset = offsetof(replay_options, around),
     .help = "the calls of the thread around this call_id, which is marked by >"},
    {.name = "count",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .least = 1,
     .offset = offsetof(replay_options, count),
     .help = "number of calls (default on a terminal: a screenful)"},
    {.name = "all",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(replay_options, all),
     .help = "every call of the window, through a pager"},
    {.name = "follow",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(replay_options, request.follow),
     .letter = 'f',
     .help = "follow a running session until it ends"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(replay_options, request.json),
     .help = "an array of calls and gaps, with times in nanoseconds"},
    {.name = "wide",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(replay_options, query.wide),
     .help = "do not cut names"},
    {0}};

const sj_command sj_command_replay = {
    .name = "replay",
    .summary = "show calls in the order in which they were entered",
    .usage = "sojourn replay [OPTIONS] [FILE]",
    .help =
        "Prints a line for each call, below its callers, with its entry time and duration. Lines\n"
        "with ^ are calls that were entered before the first one shown; lines with ! are gaps.\n"
        "Recorded values follow the function: (arguments) = result.\n"
        "Without FILE: $SOJOURN_DATABASE, else the newest sojourn-*.db here.\n",
    .options = replay_table,
    .examples = "Examples:\n"
                "  sojourn replay --from 1.2s --to 1.25s --thread worker\n"
                "  sojourn replay --follow\n"
                "  sojourn replay --around 274877907013 --count 100 run.db\n",
    .run = run_replay,
};
