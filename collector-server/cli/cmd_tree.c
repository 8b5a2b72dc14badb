#include "collector-server/cli/commands.h"
#include "collector-server/cli/function_name.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/tree_chains.h"

#include "collector-server/query/query.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_INDENT = 40,
    CALLS_TEXT_BYTES = 64,
    NAME_BYTES = 100,   /* without a terminal */
    FIGURES_WIDTH = 45, /* of a line before its name */
    NARROW_WIDTH = 21,  /* the same without self time and calls */
    NARROW_TERMINAL = 90,
    QUERY_BYTES = 300,
    LEAST_NAME = 24 /* columns that indentation leaves for the name */
};

typedef struct tree_options {
    sj_query_options query;
    double min_share;
    int64_t max_depth;
    bool unfold;
    bool physical;
    /* derived */
    bool narrow; /* a terminal without room for self time and calls */
    sj_terminal terminal;
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

/* print_indent indents a name by its level and returns the columns that are left for it. */
static int print_indent(const tree_options *options, int64_t level)
{
    const int columns = options->terminal.columns;
    const int left = columns - (options->narrow ? NARROW_WIDTH : FIGURES_WIDTH);
    int most = columns != SJ_TERMINAL_UNLIMITED ? (left - LEAST_NAME) / 2 : MAX_INDENT;
    most = most < 0 ? 0 : most < MAX_INDENT ? most : MAX_INDENT;
    const int indent = level > most ? most : (int)level;
    int used = indent * 2;
    printf("%*s", used, "");
    if (level > most) {
        used += printf("(%lld) ", (long long)level);
    }
    if (columns == SJ_TERMINAL_UNLIMITED || options->query.wide) {
        return options->query.wide ? 0 : NAME_BYTES;
    }
    return left - used < LEAST_NAME / 2 ? LEAST_NAME / 2 : left - used;
}

static void print_path(const tree_options *options, const sj_tree_path *path)
{
    char total[SJ_DURATION_TEXT_BYTES];
    char self[SJ_DURATION_TEXT_BYTES];
    char calls[CALLS_TEXT_BYTES];
    char name[SJ_FUNCTION_NAME_BYTES];
    const double percent = 100.0 * path->share;
    const bool hot = options->terminal.colour && percent >= 10.0;
    printf("%s%6.2f %%%s %10s ", hot ? "\033[1;33m" : "", percent, hot ? "\033[0m" : "",
           sj_format_duration(path->total_ns, total));
    if (!options->narrow) {
        printf("%10s %12s ", sj_format_duration(path->self_ns, self),
               format_calls(path->calls, path->open_calls, calls));
    }
    putchar(' ');
    const int room = print_indent(options, path->level);
    const char *known = path->name != NULL ? path->name : "(unknown function)";
    puts(sj_function_name_fit(known, room, name));
}

/* print_folded prints the line that stands for `count` paths of a chain. */
static void print_folded(const tree_options *options, size_t count, int64_t level)
{
    printf("%*s", options->narrow ? NARROW_WIDTH : FIGURES_WIDTH, "");
    print_indent(options, level);
    printf("\xe2\x8b\xae %zu levels (--unfold)\n", count);
}

static void print_folded_paths(const tree_options *options, sj_tree_paths *paths)
{
    sj_tree_paths_fold(paths, options->min_share);
    for (size_t i = 0; i < paths->count && !ferror(stdout); i++) {
        if (paths->paths[i].folded == 0) {
            print_path(options, &paths->paths[i]);
        } else {
            print_folded(options, paths->paths[i].folded, paths->paths[i].level);
            i += paths->paths[i].folded - 1;
        }
    }
}

static void print_pruned(const tree_options *options, const pruned_paths *pruned)
{
    char text[SJ_DURATION_TEXT_BYTES];
    char open[CALLS_TEXT_BYTES] = "";
    if (pruned->paths == 0) {
        return;
    }
    if (pruned->open_calls != 0) {
        snprintf(open, sizeof(open), " and %lld open", (long long)pruned->open_calls);
    }
    printf("\nhidden: %lld paths (%lld calls%s, %s of self time);%c--all shows them\n",
           (long long)pruned->paths, (long long)pruned->calls, open,
           sj_format_duration(pruned->self_ns, text), options->narrow ? '\n' : ' ');
}

static sj_tree_path read_path(sqlite3_stmt *row)
{
    return (sj_tree_path){.depth = sqlite3_column_int64(row, 0),
                          .level = sqlite3_column_int64(row, 0),
                          .total_ns = sqlite3_column_int64(row, 1),
                          .self_ns = sqlite3_column_int64(row, 2),
                          .share = sqlite3_column_double(row, 3),
                          .calls = sqlite3_column_int64(row, 4),
                          .name = (char *)sqlite3_column_text(row, 5),
                          .open_calls = sqlite3_column_int64(row, 6)};
}

/* print_paths prints the rows that are shown and adds up the others; those that may be folded are
 * kept until all are known. An SQLite result code. */
static int print_paths(const tree_options *options, sqlite3_stmt *row, pruned_paths *pruned)
{
    const bool fold = options->terminal.is_terminal && !options->unfold;
    sj_tree_paths paths = {0};
    sj_status status = SJ_OK;
    int result = SQLITE_DONE;
    while (status == SJ_OK && !ferror(stdout) && (result = sqlite3_step(row)) == SQLITE_ROW) {
        sj_tree_path path = read_path(row);
        if (path.share < options->min_share || path.depth > options->max_depth) {
            ++pruned->paths;
            pruned->calls += path.calls;
            pruned->open_calls += path.open_calls;
            pruned->self_ns += path.self_ns;
        } else if (fold) {
            status = sj_tree_paths_add(&paths, &path);
        } else {
            print_path(options, &path);
        }
    }
    if (status == SJ_OK && result == SQLITE_DONE) {
        print_folded_paths(options, &paths);
    }
    sj_tree_paths_deinit(&paths);
    return status == SJ_OK ? result : SQLITE_NOMEM;
}

static int print_tree(tree_options *options, sqlite3_stmt *row)
{
    pruned_paths pruned = {0};
    sj_terminal *terminal = &options->terminal;
    sj_terminal_page(terminal);
    printf("%8s %10s ", "share", "total");
    if (!options->narrow) {
        printf("%10s %12s ", "self", "calls");
    }
    puts(" function");
    const int result = print_paths(options, row, &pruned);
    print_pruned(options, &pruned);
    const bool written = sj_terminal_close(terminal);
    if (result != SQLITE_DONE && result != SQLITE_ROW) {
        return sj_command_error(&sj_command_tree, SJ_EXIT_FAILED, "%s", sqlite3_errstr(result));
    }
    return written ? SJ_EXIT_OK
                   : sj_command_error(&sj_command_tree, SJ_EXIT_FAILED, "cannot write the tree");
}

static int show_tree(tree_options *options)
{
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_tree, &options->query, &database, &session_id);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    const bool table = options->query.format == SJ_RESULT_TABLE;
    char sql[QUERY_BYTES];
    snprintf(sql, sizeof(sql),
             table ? "SELECT depth, total_ns, self_ns, share, calls, name, open_calls FROM %s(?1)"
                   : "SELECT path_id, parent_path_id, depth, calls, total_ns, self_ns, min_ns, "
                     "max_ns, share, function_id, name, open_calls FROM %s(?1) WHERE share >= ?2 "
                     "AND depth <= ?3",
             options->physical ? "physical_tree" : "call_tree");
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

static sj_status parse_percent(const sj_option *option, void *values, const char *text,
                               sj_error *error)
{
    (void)option;
    tree_options *options = values;
    char *end = NULL;
    options->min_share = strtod(text, &end) / 100.0;
    if (end == text || *end != '\0' || !(options->min_share >= 0)) {
        return sj_fail(error, SJ_EINVAL, "'%s' is no percentage", text);
    }
    return SJ_OK;
}

static sj_status parse_all(const sj_option *option, void *values, const char *text, sj_error *error)
{
    (void)option;
    (void)text;
    (void)error;
    ((tree_options *)values)->min_share = 0;
    ((tree_options *)values)->unfold = true;
    return SJ_OK;
}

static int run_tree(int argc, char **argv)
{
    tree_options options = {.min_share = 0.005, .max_depth = INT64_MAX};
    int first = 0;
    const int code = sj_options_parse(&sj_command_tree, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    const int taken = sj_query_take_file(&sj_command_tree, argc, argv, first, &options.query.file);
    if (taken >= 0) {
        return taken;
    }
    if (options.query.format == SJ_RESULT_TABLE) {
        sj_terminal_open(&options.terminal);
        options.narrow = options.terminal.columns != SJ_TERMINAL_UNLIMITED &&
                         options.terminal.columns < NARROW_TERMINAL;
    }
    return show_tree(&options);
}

static const sj_option tree_table[] = {
    SJ_DATABASE_OPTION(offsetof(tree_options, query.file)),
    SJ_QUERY_SESSION_OPTION(offsetof(tree_options, query)),
    {.name = "all", .kind = SJ_ARG_PARSED, .parse = parse_all, .help = "every path"},
    {.name = "unfold",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(tree_options, unfold),
     .help = "on a terminal: do not fold chains of paths with one callee each"},
    {.name = "physical",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(tree_options, physical),
     .help = "by stack frames: a call that jumps to another is not its caller"},
    {.name = "min-percent",
     .argument = "P",
     .kind = SJ_ARG_PARSED,
     .parse = parse_percent,
     .help = "leave out paths below P percent"},
    {.name = "depth",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(tree_options, max_depth),
     .least = 0,
     .help = "leave out paths deeper than N (0: roots only)"},
    SJ_QUERY_FORMAT_OPTIONS(offsetof(tree_options, query)),
    {0}};

const sj_command sj_command_tree = {
    .name = "tree",
    .summary = "show the call tree of a session, most time first",
    .usage = "sojourn tree [OPTIONS] [FILE]",
    .help =
        "Paths with less than 0.5 % of the time are left out; a last line says how many. On a\n"
        "terminal, a chain of paths that only call the next one is one line. Calls\n"
        "that have not ended are shown as open, or as without end where it may have been lost:\n"
        "their own time is not known.\n",
    .options = tree_table,
    .examples = "Examples:\n"
                "  sojourn tree --depth 5\n"
                "  sojourn tree --all --json lab.db > tree.json\n",
    .run = run_tree,
};
