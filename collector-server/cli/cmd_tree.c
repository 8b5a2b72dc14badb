#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/function_name.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/text_width.h"
#include "collector-server/cli/tree_chains.h"
#include "collector-server/cli/tree_values.h"
#include "collector-server/cli/waits.h"
#include "collector-server/cli/work_progress.h"

#include "collector-server/query/query.h"
#include "proto/base/units.h"
#include "schema/queries/cli/tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_INDENT = 40, /* levels */
    CALLS_TEXT_BYTES = 64,
    FOLDED_BYTES = 64,
    NAME_COLUMNS = 100, /* maximum width of a name without a terminal */
    FIGURES_WIDTH = 45, /* width of a line before its name */
    NARROW_WIDTH = 21,  /* that width without self time and calls */
    WAITS_WIDTH = 22,   /* additional width for working and waiting */
    COSTS_WIDTH = 44,   /* additional width for CPU time and memory */
    NARROW_TERMINAL = 90,
    QUERY_BYTES = 1000,
    MODULE_LEVELS = 512, /* deeper paths do not show which module they enter */
    KNOWN_MODULES = 512,
    VALUES_SHOWN = 3, /* per path */
    LEAST_NAME = 24   /* columns that indentation must leave for the name */
};

typedef struct tree_options {
    sj_query_options query;
    sj_call_choice choice;
    double min_share;
    int64_t max_depth;
    bool unfold;
    bool physical;
    bool by_thread;
    bool waiting;
    bool costs;
    bool by_value;
    /* derived from the options: */
    bool narrow; /* the terminal is too narrow for self time and calls */
    sj_terminal terminal;
    sj_waits *waits;        /* for `waiting` */
    sj_tree_values *values; /* for `by_value` */
} tree_options;

/* The figures in the lines below the tree. */
typedef struct tree_remainder {
    int64_t paths; /* number of hidden paths; the next three are their sums */
    int64_t calls;
    int64_t open_calls;
    int64_t self_ns;
    bool has_estimates; /* a shown path has an estimated self time */
} tree_remainder;

/* Returns the number of calls of a path as text, and how many of them were open at the end. Both
 * are 0 if no end of a call is known: the calls are still open, or their exits were lost. In a part
 * of a session, both are 0 if the calls began before that part. */
static const char *format_calls(const tree_options *options, int64_t counted, int64_t open,
                                char text[CALLS_TEXT_BYTES])
{
    if (open == 0 && counted == 0) {
        snprintf(text, CALLS_TEXT_BYTES, options->choice.selection != NULL ? "earlier" : "no end");
    } else if (open == 0) {
        snprintf(text, CALLS_TEXT_BYTES, "%lld", (long long)counted);
    } else if (counted <= open) {
        snprintf(text, CALLS_TEXT_BYTES, "%lld open", (long long)open);
    } else {
        snprintf(text, CALLS_TEXT_BYTES, "%lld, %lld open", (long long)counted, (long long)open);
    }
    return text;
}

static int figures_width(const tree_options *options)
{
    return (options->narrow ? NARROW_WIDTH : FIGURES_WIDTH) + (options->waiting ? WAITS_WIDTH : 0) +
           (options->costs ? COSTS_WIDTH : 0);
}

/* Indents a name by its level. Returns how many columns the name may use; 0: unlimited. */
static int print_indent(const tree_options *options, int64_t level)
{
    const int columns = options->terminal.columns;
    const int left = columns - figures_width(options);
    int most = columns != SJ_TERMINAL_UNLIMITED ? (left - LEAST_NAME) / 2 : MAX_INDENT;
    most = most < 0 ? 0 : most < MAX_INDENT ? most : MAX_INDENT; /* levels */
    const int indent = level > most ? most : (int)level;
    int used = indent * 2;
    printf("%*s", used, "");
    if (level > most) {
        used += printf("(%lld) ", (long long)level);
    }
    if (columns == SJ_TERMINAL_UNLIMITED || options->query.wide) {
        return options->query.wide ? 0 : NAME_COLUMNS;
    }
    return left - used < LEAST_NAME / 2 ? LEAST_NAME / 2 : left - used;
}

static const char estimates_note[] =
    "\n~ estimates: most calls, or those that were made from there (self), were counted\n"
    "without a clock (--clock adaptive)\n";

static void print_costs(const sj_tree_path *path)
{
    char cpu[SJ_DURATION_TEXT_BYTES];
    char cpu_self[SJ_DURATION_TEXT_BYTES];
    char allocated[SJ_BYTES_TEXT_BYTES];
    char net[SJ_BYTES_TEXT_BYTES];
    printf("%10s %10s %10s %10s ", path->has_cpu ? sj_format_duration(path->cpu_ns, cpu) : "",
           path->has_cpu ? sj_format_duration(path->cpu_self_ns, cpu_self) : "",
           path->has_memory ? sj_format_bytes(path->allocated_bytes, allocated) : "",
           path->has_memory ? sj_format_bytes(path->net_bytes, net) : "");
}

/* Prints a recorded text without its control characters. Cuts the text to `space` columns; 0:
 * unlimited. */
static void print_text(const char *text, int space)
{
    const bool is_cut = space > 1 && sj_text_width(text) > space;
    const size_t bytes = is_cut ? sj_text_cut(text, space - 1) : strlen(text);
    sj_text_write(stdout, text, bytes);
    puts(is_cut ? sj_text_ellipsis() : "");
}

/* Prints the recorded values of a path's calls, with the time of the calls that had them. Without
 * --all, prints at most VALUES_SHOWN of them. */
static void print_values(const tree_options *options, const sj_tree_path *path)
{
    char total[SJ_DURATION_TEXT_BYTES];
    const sj_path_values *values = NULL;
    const size_t count = sj_tree_values_of(options->values, path->path_id, &values);
    const size_t shown = options->min_share > 0 && count > VALUES_SHOWN ? VALUES_SHOWN : count;
    for (size_t i = 0; i < shown; i++) {
        printf("%8s %10s ", "", sj_format_duration(values[i].total_ns, total));
        if (!options->narrow) {
            printf("%10s %12lld ", "", (long long)values[i].calls);
        }
        printf("%*s ", options->costs ? COSTS_WIDTH : 0, "");
        print_text(values[i].text, print_indent(options, path->level + 1));
    }
    if (shown < count) {
        printf("%*s", figures_width(options), "");
        (void)print_indent(options, path->level + 1);
        printf("%zu other values (--all)\n", count - shown);
    }
}

static const char *format_time(bool is_estimate, int64_t ns, char text[SJ_DURATION_TEXT_BYTES + 1])
{
    text[0] = '~';
    sj_format_duration(ns, text + is_estimate);
    return text;
}

static void print_path(const tree_options *options, const sj_tree_path *path)
{
    char total[SJ_DURATION_TEXT_BYTES + 1];
    char self[SJ_DURATION_TEXT_BYTES + 1];
    char calls[CALLS_TEXT_BYTES];
    char working[SJ_DURATION_TEXT_BYTES];
    char waiting[SJ_DURATION_TEXT_BYTES];
    char name[SJ_FUNCTION_NAME_BYTES];
    const double percent = 100.0 * path->share;
    const bool hot = options->terminal.colour && percent >= 10.0;
    printf("%s%6.2f %%%s %10s ", hot ? "\033[1;33m" : "", percent, hot ? "\033[0m" : "",
           format_time(path->is_estimate, path->total_ns, total));
    if (!options->narrow) {
        printf("%10s %12s ", format_time(path->is_self_estimate, path->self_ns, self),
               format_calls(options, path->calls, path->open_calls, calls));
    }
    if (options->waiting) {
        printf("%10s %10s ", path->is_divided ? sj_format_duration(path->working_ns, working) : "",
               path->is_divided ? sj_format_duration(path->waiting_ns, waiting) : "");
    }
    if (options->costs) {
        print_costs(path);
    }
    putchar(' ');
    int space = print_indent(options, path->level);
    const char *known_name = path->name != NULL ? path->name : "(unknown function)";
    const int tag = path->module != NULL ? sj_text_width(path->module) + 3 : 0;
    const bool has_tag = tag != 0 && (space == 0 || space - tag >= LEAST_NAME / 2);
    space -= has_tag && space != 0 ? tag : 0;
    fputs(sj_function_name_fit(known_name, space, name), stdout);
    if (has_tag) {
        fputs(options->terminal.colour ? " \033[2m[" : " [", stdout);
        sj_text_write(stdout, path->module, strlen(path->module));
        fputs(options->terminal.colour ? "]\033[0m" : "]", stdout);
    }
    putchar('\n');
    if (options->values != NULL) {
        print_values(options, path);
    }
}

/* Prints one line in place of `count` paths of a chain. */
static void print_folded(const tree_options *options, size_t count, int64_t level)
{
    char text[FOLDED_BYTES];
    snprintf(text, sizeof(text), "%s %s (--unfold)", sj_text_is_ascii() ? ":" : "\xe2\x8b\xae",
             SJ_COUNTED(count, "level"));
    printf("%*s", figures_width(options), "");
    const int space = print_indent(options, level);
    if (space != 0 && sj_text_width(text) > space) {
        text[strcspn(text, "(") - 1] = '\0';
    }
    puts(text);
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

static void print_hidden(const tree_options *options, const tree_remainder *pruned)
{
    char text[SJ_DURATION_TEXT_BYTES];
    char open[CALLS_TEXT_BYTES] = "";
    if (pruned->paths == 0) {
        return;
    }
    if (pruned->open_calls != 0) {
        snprintf(open, sizeof(open), ", %lld open", (long long)pruned->open_calls);
    }
    printf("\nhidden: %s (%s%s, %s of self time);%c--all shows them\n",
           SJ_COUNTED(pruned->paths, "path"), SJ_COUNTED(pruned->calls, "call"), open,
           sj_format_duration(pruned->self_ns, text), options->narrow ? '\n' : ' ');
}

/* The modules of the current path and its callers. Rows must come in depth-first order. */
typedef struct module_stack {
    const char *names[MODULE_LEVELS]; /* by depth; borrowed from `interned` */
    char *interned[KNOWN_MODULES];
    size_t count; /* of `interned` */
} module_stack;

/* Returns the file name of a module; equal names have the same pointer. Returns NULL if `path` is
 * NULL, or there are more than KNOWN_MODULES names. */
static const char *intern_module(module_stack *modules, const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; name != NULL && i < modules->count; i++) {
        if (strcmp(modules->interned[i], name) == 0) {
            return modules->interned[i];
        }
    }
    if (name == NULL || modules->count == KNOWN_MODULES) {
        return NULL;
    }
    modules->interned[modules->count] = strdup(name);
    return modules->interned[modules->count] != NULL ? modules->interned[modules->count++] : NULL;
}

/* Returns the module of a call path if it differs from the caller's module, else NULL. Returns NULL
 * for a root. */
static const char *entered_module(module_stack *modules, int64_t depth, const char *path)
{
    const char *name = intern_module(modules, path);
    if (depth < 0 || depth >= MODULE_LEVELS) {
        return NULL;
    }
    modules->names[depth] = name;
    return depth > 0 && name != modules->names[depth - 1] ? name : NULL;
}

static sj_tree_path read_path(sqlite3_stmt *row, module_stack *modules)
{
    const int64_t depth = sqlite3_column_int64(row, 0);
    const char *module = entered_module(modules, depth, (const char *)sqlite3_column_text(row, 7));
    return (sj_tree_path){.module = (char *)module,
                          .path_id = sqlite3_column_int64(row, 13),
                          .depth = sqlite3_column_int64(row, 0),
                          .level = sqlite3_column_int64(row, 0),
                          .total_ns = sqlite3_column_int64(row, 1),
                          .self_ns = sqlite3_column_int64(row, 2),
                          .share = sqlite3_column_double(row, 3),
                          .calls = sqlite3_column_int64(row, 4),
                          .name = (char *)sqlite3_column_text(row, 5),
                          .open_calls = sqlite3_column_int64(row, 6),
                          .has_cpu = sqlite3_column_type(row, 9) != SQLITE_NULL,
                          .cpu_ns = sqlite3_column_int64(row, 9),
                          .cpu_self_ns = sqlite3_column_int64(row, 10),
                          .has_memory = sqlite3_column_type(row, 11) != SQLITE_NULL,
                          .allocated_bytes = sqlite3_column_int64(row, 11),
                          .net_bytes = sqlite3_column_int64(row, 12),
                          .is_estimate = sqlite3_column_int64(row, 14) != 0,
                          .is_self_estimate = sqlite3_column_int64(row, 15) != 0};
}

/* The state of printing the paths of a tree. */
typedef struct path_printer {
    const tree_options *options;
    sj_tree_paths paths; /* the visible paths, if chains are folded */
    module_stack modules;
    sj_waits_walk walk;
    tree_remainder pruned;
    int64_t shown;
    bool fold;
} path_printer;

static sj_status show_path(void *context, sqlite3_stmt *row)
{
    path_printer *printer = context;
    const tree_options *options = printer->options;
    tree_remainder *pruned = &printer->pruned;
    sj_tree_path path = read_path(row, &printer->modules);
    sj_waits_parts parts;
    if (options->waits != NULL && sj_waits_enter(options->waits, &printer->walk, path.depth,
                                                 sqlite3_column_int64(row, 8), &parts)) {
        path.is_divided = true;
        path.working_ns = parts.working_ns;
        path.waiting_ns = parts.waiting_ns;
    }
    if (path.share < options->min_share || path.depth > options->max_depth) {
        ++pruned->paths;
        pruned->calls += path.calls;
        pruned->open_calls += path.open_calls;
        pruned->self_ns += path.self_ns;
        return SJ_OK;
    }
    ++printer->shown;
    pruned->has_estimates |= path.is_self_estimate;
    if (printer->fold) {
        return sj_tree_paths_add(&printer->paths, &path);
    }
    print_path(options, &path);
    return ferror(stdout) ? SJ_EEXIST : SJ_OK;
}

/* Prints the visible paths and adds the sums of the hidden paths. If chains are folded, stores all
 * visible paths and prints them after the last row. */
static sj_status print_paths(path_printer *printer, sqlite3_stmt *row, sj_error *error)
{
    printer->fold = printer->options->terminal.is_terminal && !printer->options->unfold;
    const sj_status status = sj_sql_each_row(row, show_path, printer, error);
    if (status == SJ_OK) {
        print_folded_paths(printer->options, &printer->paths);
    }
    sj_tree_paths_deinit(&printer->paths);
    for (size_t i = 0; i < printer->modules.count; i++) {
        free(printer->modules.interned[i]);
    }
    return status == SJ_EEXIST ? SJ_OK : status;
}

static int print_tree(tree_options *options, sqlite3_stmt *row)
{
    path_printer printer = {.options = options};
    sj_error error = {0};
    printf("%8s %10s ", "share", "total");
    if (!options->narrow) {
        printf("%10s %12s ", "self", "calls");
    }
    if (options->waiting) {
        printf("%10s %10s ", "working", "waiting");
    }
    if (options->costs) {
        printf("%10s %10s %10s %10s ", "cpu", "cpu self", "allocated", "net");
    }
    puts(" function");
    const sj_status status = print_paths(&printer, row, &error);
    print_hidden(options, &printer.pruned);
    fputs(printer.pruned.has_estimates ? estimates_note : "", stdout);
    if (options->values != NULL && sj_tree_values_left_out(options->values) != 0) {
        printf(
            "\n%lld calls have values that are not shown: their paths are folded, or there are too "
            "many\n",
            (long long)sj_tree_values_left_out(options->values));
    }
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_tree, &error);
    }
    return printer.shown + printer.pruned.paths != 0 || options->choice.selection == NULL
               ? SJ_EXIT_OK
               : sj_command_error(&sj_command_tree, SJ_EXIT_NOT_FOUND,
                                  "no call was entered in this part");
}

static int print_chosen_calls(tree_options *options, sqlite3 *database, int64_t session_id)
{
    sj_error error = {0};
    int exit_code = SJ_EXIT_OK;
    if (sj_call_choice_find(database, session_id, &options->choice, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_tree, &error);
    }
    if (options->choice.selection != NULL) {
        sj_query_warn_of_totals(&sj_command_tree, database, session_id);
    }
    const bool table = options->query.format == SJ_RESULT_TABLE;
    if (options->waiting &&
        sj_waits_read(database, session_id, &options->choice, &options->waits, &error) != SJ_OK) {
        sj_call_choice_deinit(&options->choice);
        return sj_command_failed(&sj_command_tree, &error);
    }
    if (options->by_value &&
        sj_tree_values_read(database, session_id, &options->values, &error) != SJ_OK) {
        sj_call_choice_deinit(&options->choice);
        return sj_command_failed(&sj_command_tree, &error);
    }
    char sql[QUERY_BYTES];
    snprintf(sql, sizeof(sql), table ? sj_tree_table_rows_sql : sj_tree_data_rows_sql,
             options->physical ? "physical_tree" : "call_tree");
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        exit_code =
            sj_command_error(&sj_command_tree, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else {
        sqlite3_bind_int64(statement, 1, session_id);
        sqlite3_bind_double(statement, 2, options->min_share);
        sqlite3_bind_int64(statement, 3, options->max_depth);
        sj_call_choice_bind(&options->choice, statement);
        if (table) {
            exit_code = print_tree(options, statement);
            sqlite3_finalize(statement);
        } else {
            exit_code = sj_query_print(&sj_command_tree, &options->query, statement);
        }
    }
    sj_waits_free(options->waits);
    options->waits = NULL;
    sj_tree_values_free(options->values);
    options->values = NULL;
    sj_call_choice_deinit(&options->choice);
    return exit_code;
}

typedef struct thread_trees {
    tree_options *options;
    sqlite3 *database;
    int64_t session_id;
    int exit_code;
    bool is_begun; /* a tree was printed */
} thread_trees;

static sj_status print_thread(void *context, sqlite3_stmt *row)
{
    thread_trees *trees = context;
    char name[SJ_FUNCTION_NAME_BYTES];
    printf("%sthread %s: %s, tid %lld\n", trees->is_begun ? "\n" : "",
           (const char *)sqlite3_column_text(row, 0),
           sj_function_name_fit((const char *)sqlite3_column_text(row, 2), 0, name),
           (long long)sqlite3_column_int64(row, 1));
    trees->options->choice.thread = (const char *)sqlite3_column_text(row, 0);
    trees->exit_code = print_chosen_calls(trees->options, trees->database, trees->session_id);
    trees->options->choice.thread = NULL;
    trees->is_begun = true;
    return trees->exit_code == SJ_EXIT_OK && !ferror(stdout) ? SJ_OK : SJ_EEXIST;
}

/* Prints a tree for each thread with calls. */
static int print_threads(tree_options *options, sqlite3 *database, int64_t session_id)
{
    static const char sql[] =
        "SELECT CAST(t.number AS TEXT), t.tid, t.name FROM threads AS t WHERE t.session_id = ?1 "
        "AND EXISTS (SELECT 1 FROM streams AS s WHERE s.thread_id = t.thread_id AND s.calls > 0) "
        "ORDER BY t.number";
    thread_trees trees = {.options = options, .database = database, .session_id = session_id};
    sj_error error = {0};
    const sj_status status =
        sj_sql_each(database, sql, SJ_SQL_INTS(session_id), print_thread, &trees, &error);
    return status == SJ_OK || status == SJ_EEXIST ? trees.exit_code
                                                  : sj_command_failed(&sj_command_tree, &error);
}

static int show_tree(tree_options *options)
{
    sj_work_progress_start();
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_tree, &options->query, &database, &session_id);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    const bool table = options->query.format == SJ_RESULT_TABLE;
    if (table) {
        sj_terminal_page(&options->terminal);
    }
    exit_code = options->by_thread ? print_threads(options, database, session_id)
                                   : print_chosen_calls(options, database, session_id);
    const bool written = !table || sj_terminal_close(&options->terminal);
    sqlite3_close(database);
    return exit_code != SJ_EXIT_OK || written
               ? exit_code
               : sj_command_error(&sj_command_tree, SJ_EXIT_FAILED, "cannot write the tree");
}

static sj_status parse_percent(const sj_option *option, void *values, const char *text,
                               sj_error *error)
{
    (void)option;
    tree_options *options = values;
    char *end = NULL;
    options->min_share = strtod(text, &end) / 100.0;
    if (end == text || *end != '\0' || !(options->min_share >= 0)) {
        return sj_fail(error, SJ_EINVAL, "'%s' is not a percentage", text);
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

/* True if no option is used that --by-value does not support. */
static bool allows_by_value(const tree_options *options)
{
    const sj_call_choice *choice = &options->choice;
    return options->query.format == SJ_RESULT_TABLE && options->query.cluster.url == NULL &&
           !options->physical && !options->by_thread && !options->waiting &&
           choice->thread == NULL && choice->process == NULL && choice->mark == NULL &&
           choice->function == NULL && choice->module == NULL && choice->callers == NULL &&
           !choice->has_from && !choice->has_to;
}

static int run_tree(int argc, char **argv)
{
    tree_options options = {.min_share = 0.005, .max_depth = INT64_MAX};
    int first = 0;
    const int code = sj_options_parse(&sj_command_tree, argc, argv, &options, &first);
    const int choice_code =
        code >= 0 ? code : sj_call_choice_check(&sj_command_tree, &options.choice);
    if (choice_code >= 0) {
        return choice_code;
    }
    const int file_code =
        sj_query_parse_file(&sj_command_tree, argc, argv, first, &options.query.file);
    if (file_code >= 0) {
        return file_code;
    }
    if (options.query.format == SJ_RESULT_TABLE) {
        sj_terminal_open(&options.terminal);
        options.narrow = options.terminal.columns != SJ_TERMINAL_UNLIMITED &&
                         options.terminal.columns < NARROW_TERMINAL;
    }
    if ((options.choice.function != NULL || options.choice.module != NULL) &&
        options.choice.callers != NULL) {
        return sj_command_usage_error(&sj_command_tree,
                                      "--function or --module, and --callers exclude each other");
    }
    if (options.by_thread &&
        (options.choice.thread != NULL || options.query.format != SJ_RESULT_TABLE)) {
        return sj_command_usage_error(&sj_command_tree,
                                      "--by-thread prints a tree for each thread, as text");
    }
    if (options.waiting && (options.query.format != SJ_RESULT_TABLE || options.physical ||
                            options.choice.callers != NULL || options.choice.function != NULL ||
                            options.choice.module != NULL)) {
        return sj_command_usage_error(&sj_command_tree,
                                      "--waiting prints whole paths, as text: without --function, "
                                      "--module, --callers and --physical");
    }
    if (options.by_value && !allows_by_value(&options)) {
        return sj_command_usage_error(
            &sj_command_tree, "--by-value prints whole sessions and whole paths, as text: "
                              "with --all, --costs, --depth, --min-percent and --wide only");
    }
    return show_tree(&options);
}

static const sj_option tree_table[] = {
    SJ_DATABASE_OPTION(offsetof(tree_options, query.file)),
    SJ_QUERY_SESSION_OPTION(offsetof(tree_options, query)),
    SJ_QUERY_CLUSTER_OPTIONS(offsetof(tree_options, query)),
    {.name = "all", .kind = SJ_ARG_PARSED, .parse = parse_all, .help = "every path"},
    {.name = "unfold",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(tree_options, unfold),
     .help = "on a terminal: do not fold chains of paths with one callee each"},
    {.name = "physical",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(tree_options, physical),
     .help = "by stack frames: a call that jumps to another is not its caller"},
    {.name = "by-thread",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(tree_options, by_thread),
     .help = "a tree for each thread"},
    {.name = "waiting",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(tree_options, waiting),
     .help = "lower bounds of how long the calls of each path worked and waited"},
    {.name = "costs",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(tree_options, costs),
     .help = "CPU time and memory of the calls of each path, where `record --cpu-time` or\n"
             "`--memory` measured them"},
    {.name = "by-value",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(tree_options, by_value),
     .help = "below each path, the recorded values with the most time (--all: every value)"},
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
    SJ_CALL_FUNCTION_OPTIONS(offsetof(tree_options, choice),
                             "what these functions call: they are the roots",
                             "what functions of these modules call, from their outermost calls on"),
    SJ_CALL_CALLERS_OPTION(offsetof(tree_options, choice)),
    SJ_CALL_CHOICE_OPTIONS(offsetof(tree_options, choice)),
    SJ_QUERY_FORMAT_OPTIONS(offsetof(tree_options, query)),
    {0}};

const sj_command sj_command_tree = {
    .name = "tree",
    .summary = "show the call tree of a session, most time first",
    .usage = "sojourn tree [OPTIONS] [FILE]",
    .help =
        "[FILE] behind a function says that it is in another module than its caller.\n"
        "Paths with less than 0.5 % of the time are left out; a last line says how many. On a\n"
        "terminal, a chain of paths that only call the next one is one line. Calls\n"
        "that were open when recording ended count up to that end, and are shown as open; calls\n"
        "whose end may have been lost are shown as without end.\n",
    .options = tree_table,
    .examples = "Examples:\n"
                "  sojourn tree --depth 5\n"
                "  sojourn tree --waiting --min-percent 5\n"
                "  sojourn tree --all --json lab.db > tree.json\n",
    .run = run_tree,
};
