#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"

#include "collector-server/query/query.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_ALL = 1,
    OPTION_PERCENT,
    OPTION_DEPTH,
    OPTION_HELP,
    MAX_INDENT = 40,
    CALLS_TEXT_BYTES = 64
};

typedef struct tree_options {
    sj_query_options query;
    double min_share;
    int64_t max_depth;
    bool colour;
} tree_options;

typedef struct pruned_paths {
    int64_t paths;
    int64_t calls;
    int64_t open_calls;
    int64_t self_ns;
} pruned_paths;

/* Calls that have ended, and how many are open. Of a path without either no end is known: its calls
 * are still open (a session that is being recorded, a profile), or their end was lost. */
static const char *format_calls(int64_t ended, int64_t open, char text[CALLS_TEXT_BYTES])
{
    if (open == 0 && ended == 0) {
        snprintf(text, CALLS_TEXT_BYTES, "no end");
    } else if (open == 0) {
        snprintf(text, CALLS_TEXT_BYTES, "%lld", (long long)ended);
    } else if (ended == 0) {
        snprintf(text, CALLS_TEXT_BYTES, "%lld open", (long long)open);
    } else {
        snprintf(text, CALLS_TEXT_BYTES, "%lld+%lld open", (long long)ended, (long long)open);
    }
    return text;
}

static void print_path(const tree_options *options, sqlite3_stmt *row)
{
    char total[SJ_DURATION_TEXT_BYTES];
    char self[SJ_DURATION_TEXT_BYTES];
    char calls[CALLS_TEXT_BYTES];
    const double percent = 100.0 * sqlite3_column_double(row, 3);
    const int64_t depth = sqlite3_column_int64(row, 0);
    const bool hot = options->colour && percent >= 10.0;
    printf("%s%6.2f %%%s %10s %10s %12s  ", hot ? "\033[1;33m" : "", percent, hot ? "\033[0m" : "",
           sj_format_duration(sqlite3_column_int64(row, 1), total),
           sj_format_duration(sqlite3_column_int64(row, 2), self),
           format_calls(sqlite3_column_int64(row, 4), sqlite3_column_int64(row, 6), calls));
    const int indent = depth > MAX_INDENT ? MAX_INDENT : (int)depth;
    printf("%*s", indent * 2, "");
    if (depth > MAX_INDENT) {
        printf("(%lld) ", (long long)depth);
    }
    const char *name = (const char *)sqlite3_column_text(row, 5);
    name = name != NULL ? name : "(unknown function)";
    const size_t bytes = options->query.wide ? strlen(name) : sj_text_cut(name, 100);
    printf("%.*s%s\n", (int)bytes, name, name[bytes] != '\0' ? "\xe2\x80\xa6" : "");
}

static int print_tree(const tree_options *options, sqlite3_stmt *row)
{
    pruned_paths pruned = {0};
    int result;
    printf("%8s %10s %10s %12s  %s\n", "share", "total", "self", "calls", "function");
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        if (sqlite3_column_double(row, 3) >= options->min_share &&
            sqlite3_column_int64(row, 0) <= options->max_depth) {
            print_path(options, row);
        } else {
            ++pruned.paths;
            pruned.calls += sqlite3_column_int64(row, 4);
            pruned.open_calls += sqlite3_column_int64(row, 6);
            pruned.self_ns += sqlite3_column_int64(row, 2);
        }
    }
    if (result != SQLITE_DONE) {
        return sj_command_error(&sj_command_tree, SJ_EXIT_FAILED, "%s",
                                sqlite3_errmsg(sqlite3_db_handle(row)));
    }
    if (pruned.paths != 0) {
        char text[SJ_DURATION_TEXT_BYTES];
        char open[CALLS_TEXT_BYTES] = "";
        if (pruned.open_calls != 0) {
            snprintf(open, sizeof(open), " (and %lld open)", (long long)pruned.open_calls);
        }
        printf("\npruned: %lld call paths with %lld calls%s and %s of self time "
               "(--all shows them)\n",
               (long long)pruned.paths, (long long)pruned.calls, open,
               sj_format_duration(pruned.self_ns, text));
    }
    if (fflush(stdout) != 0) {
        return sj_command_error(&sj_command_tree, SJ_EXIT_FAILED, "cannot write the tree");
    }
    return SJ_EXIT_OK;
}

static int show_tree(const tree_options *options)
{
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_tree, &options->query, &database, &session_id);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    const bool table = options->query.format == SJ_RESULT_TABLE;
    const char *sql =
        table ? "SELECT depth, total_ns, self_ns, share, calls, name, open_calls FROM call_tree(?1)"
              : "SELECT path_id, parent_path_id, depth, calls, total_ns, self_ns, min_ns, max_ns, "
                "share, function_id, name, open_calls FROM call_tree(?1) WHERE share >= ?2 AND "
                "depth <= ?3";
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        exit_code =
            sj_command_error(&sj_command_tree, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else {
        sqlite3_bind_int64(statement, 1, session_id);
        sqlite3_bind_double(statement, 2, options->min_share);
        sqlite3_bind_int64(statement, 3, options->max_depth);
        if (table) {
            exit_code = print_tree(options, statement);
            sqlite3_finalize(statement);
        } else {
            exit_code = sj_query_print(&sj_command_tree, &options->query, statement);
        }
    }
    sqlite3_close(database);
    return exit_code;
}

static int run_tree(int argc, char **argv)
{
    static const struct option long_options[] = {
        SJ_QUERY_OPTIONS,
        {"all", no_argument, NULL, OPTION_ALL},
        {"min-percent", required_argument, NULL, OPTION_PERCENT},
        {"depth", required_argument, NULL, OPTION_DEPTH},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0}};
    tree_options options = {.min_share = 0.005, .max_depth = INT64_MAX};
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (sj_query_common_option(&options.query, option, optarg)) {
            continue;
        }
        char *end = NULL;
        switch (option) {
        case OPTION_ALL:
            options.min_share = 0;
            break;
        case OPTION_PERCENT:
            options.min_share = strtod(optarg, &end) / 100.0;
            if (end == optarg || *end != '\0' || !(options.min_share >= 0)) {
                return sj_command_usage_error(&sj_command_tree, "'%s' is no percentage", optarg);
            }
            break;
        case OPTION_DEPTH:
            if (!sj_query_number(optarg, 0, &options.max_depth)) {
                return sj_command_usage_error(&sj_command_tree, "'%s' is no depth", optarg);
            }
            break;
        case OPTION_HELP:
            return sj_command_help(&sj_command_tree);
        default:
            return sj_command_usage_error(
                &sj_command_tree, option == ':' ? "%s needs a value" : "there is no option %s",
                argv[optind - 1]);
        }
    }
    if (argc - optind > 1) {
        return sj_command_usage_error(&sj_command_tree, "one FILE at most");
    }
    options.query.file = argv[optind];
    const char *no_colour = getenv("NO_COLOR");
    options.colour = isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0');
    return show_tree(&options);
}

const sj_command sj_command_tree = {
    .name = "tree",
    .summary = "show the call tree of a session, most time first",
    .usage = "sojourn tree [OPTIONS] [FILE]",
    .help =
        "Paths with less than 0.5 % of the time are left out; a last line says how many. Calls\n"
        "that have not ended are told as open, or as without end where it may have been lost:\n"
        "their own time is not known.\n\n"
        "Options:\n"
        "  --session ID      a session_id, the beginning of a uuid, or `last` (default)\n"
        "  --all             every path\n"
        "  --min-percent P   leave out paths below P percent\n"
        "  --depth N         leave out paths deeper than N (0: roots only)\n"
        "  --wide            do not cut long names\n"
        "  --json, --csv, --markdown\n"
        "                    another format, with nanoseconds\n"
        "  --help            this text\n\n"
        "Examples:\n"
        "  sojourn tree --depth 5\n"
        "  sojourn tree --all --json lab.db > tree.json\n",
    .run = run_tree,
};
