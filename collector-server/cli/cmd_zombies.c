#include "agent/livepatch/heap_watch.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/function_name.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/zombie_coverage.h"
#include "collector-server/cli/zombie_json.h"
#include "collector-server/query/query.h"
#include "collector-server/query/shipped_queries.h"
#include "collector-server/store/database.h"
#include "collector-server/store/zombie_change.h"
#include "proto/base/units.h"
#include "schema/queries/cli/zombies.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_BEFORE = 5 };

typedef struct zombies_request {
    sj_query_options query;
    bool all;
    char **words; /* words after the verb */
} zombies_request;

typedef struct zombies_verb {
    const char *name;
    int words; /* number of required words */
    const char *needs;
    int (*run)(zombies_request *request);
} zombies_verb;

/* A text of a row without control characters: texts come from devices and must not control the
 * terminal. */
typedef struct clean_text {
    char text[SJ_FUNCTION_NAME_BYTES];
} clean_text;

static const char *clean(sqlite3_stmt *row, int column, clean_text *buffer)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return sj_function_name_fit(text != NULL ? text : "", 0, buffer->text);
}

static int fail(const sj_error *error)
{
    return sj_command_error(&sj_command_zombies,
                            error->status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED,
                            "%s", error->text);
}

static int fail_sql(sqlite3 *database)
{
    return sj_command_error(&sj_command_zombies, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
}

static sj_status warn_not_asked(void *context, sqlite3_stmt *row)
{
    (void)context;
    (void)row;
    fputs("sojourn zombies: warning: no session was recorded with --zombies, so nothing could "
          "be found\n",
          stderr);
    return SJ_OK;
}

/* Prints which processes were not watched. For these, an empty list does not mean that they have no
 * errors. */
static sj_status warn_unwatched(void *context, sqlite3_stmt *row)
{
    clean_text reason;
    const long long count = sqlite3_column_int64(row, 0);
    (void)context;
    fprintf(stderr, "sojourn zombies: warning: %lld %s not watched: %s\n", count,
            count == 1 ? "process was" : "processes were", clean(row, 1, &reason));
    return SJ_OK;
}

/* Prints for which processes the kernel did not report all memory pressure. */
static sj_status warn_unseen(void *context, sqlite3_stmt *row)
{
    clean_text unseen;
    const long long count = sqlite3_column_int64(row, 0);
    (void)context;
    fprintf(stderr,
            "sojourn zombies: warning: of %lld process%s the kernel did not say all about "
            "memory pressure: %s\n",
            count, count == 1 ? "" : "es", clean(row, 1, &unseen));
    return SJ_OK;
}

/* Prints which share of the heap was watched. An error in the rest is not found. */
static void print_coverage(sqlite3 *database, const char *found)
{
    char text[SJ_ZOMBIE_COVERAGE_BYTES];
    sj_zombie_coverage coverage;
    const bool is_known = sj_zombie_coverage_read(database, 0, &coverage);
    fprintf(stderr, "sojourn zombies: %s%s\n", found,
            is_known ? sj_zombie_coverage_text(&coverage, text) : "nothing was watched");
}

/* Says how much was watched, and that nothing was found if the list is empty: an empty table alone
 * could have another reason. */
static sj_status tell_none(void *lists_all, sqlite3_stmt *row)
{
    const sj_zombies_counts_row counts = sj_read_zombies_counts(row);
    const bool is_none = counts.all_findings == 0;
    print_coverage(sqlite3_db_handle(row), is_none ? "no use of freed memory was found; " : "");
    if (!is_none && !*(const bool *)lists_all && counts.open_findings == 0) {
        fputs("sojourn zombies: all that was found is resolved; --all lists it\n", stderr);
    }
    return SJ_OK;
}

/* Prints which share of the heap was watched, and which processes were not. */
static sj_status print_warnings(sqlite3 *database, bool *lists_all)
{
    const sj_sql_binds none = {0};
    SJ_TRY(sj_sql_each(database, sj_zombies_counts_sql, none, tell_none, lists_all, NULL));
    SJ_TRY(sj_sql_each(database, sj_zombies_not_asked_sql, none, warn_not_asked, NULL, NULL));
    SJ_TRY(sj_sql_each(database, sj_zombies_unwatched_sql, none, warn_unwatched, NULL, NULL));
    return sj_sql_each(database, sj_zombies_unseen_sql, none, warn_unseen, NULL, NULL);
}

static int run_list(zombies_request *request)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int exit_code = sj_query_open(&sj_command_zombies, &request->query, &database, NULL);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    const char *sql =
        sj_query_wants_data(&request->query) ? sj_zombies_data_sql : sj_zombies_table_sql;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        exit_code = fail_sql(database);
    } else {
        sqlite3_bind_int(statement, 1, request->all);
        exit_code = sj_query_print(&sj_command_zombies, &request->query, statement);
        if (print_warnings(database, &request->all) != SJ_OK) {
            exit_code = fail_sql(database);
        }
    }
    sqlite3_close(database);
    return exit_code;
}

static bool parse_id(const char *text, int64_t *id)
{
    char *end;
    *id = strtoll(text, &end, 10);
    return end != text && *end == '\0' && *id > 0;
}

/* A heading that is printed before the first row. */
typedef struct row_heading {
    const char *heading;
    int rows;
} row_heading;

static sj_status print_frame(void *context, sqlite3_stmt *row)
{
    row_heading *view = context;
    clean_text name;
    clean_text module;
    const char *function = clean(row, 2, &name);
    if (view->rows++ == 0) {
        printf("\n%s by thread %lld\n", view->heading, (long long)sqlite3_column_int64(row, 0));
    }
    printf("  #%-2d %s  %s+0x%" PRIx64 "\n", sqlite3_column_int(row, 1),
           function[0] != '\0' ? function : "(unnamed)", clean(row, 3, &module),
           (uint64_t)sqlite3_column_int64(row, 4));
    return SJ_OK;
}

static sj_status print_stack(sqlite3 *database, int64_t report, const char *stack,
                             const char *heading)
{
    row_heading view = {.heading = heading};
    const sj_zombies_frames_binds binds = {.report_id = report, .stack = stack};
    return sj_sql_each(database, sj_zombies_frames_sql, sj_bind_zombies_frames(&binds), print_frame,
                       &view, NULL);
}

static void print_block(sqlite3_stmt *row, const char *access)
{
    clean_text thread;
    if (sqlite3_column_int64(row, 6) == 0) {
        printf("%s of an address that is not in a block, in thread \"%s\", session %lld\n",
               access[0] != '\0' ? access : "free", clean(row, 4, &thread),
               (long long)sqlite3_column_int64(row, 8));
        return;
    }
    printf("%s at byte %lld of a block of %lld, in thread \"%s\", session %lld\n",
           access[0] != '\0' ? access : "free", (long long)sqlite3_column_int64(row, 7),
           (long long)sqlite3_column_int64(row, 6), clean(row, 4, &thread),
           (long long)sqlite3_column_int64(row, 8));
}

static sj_status print_part(void *verb, sqlite3_stmt *row)
{
    clean_text value;
    printf("%s %s\n", (const char *)verb, clean(row, 0, &value));
    return SJ_OK;
}

/* Prints the instance variables and ancestors of a freed object from the report. */
static sj_status print_object(sqlite3 *database, int64_t report)
{
    static char *const lists[][2] = {{"ancestors", "inherits from"}, {"values", "had"}};
    sj_status status = SJ_OK;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && status == SJ_OK; i++) {
        const sj_zombies_object_binds binds = {.list = lists[i][0], .report_id = report};
        status = sj_sql_each(database, sj_zombies_object_sql, sj_bind_zombies_object(&binds),
                             print_part, lists[i][1], NULL);
    }
    return status;
}

/* Prints an event with the innermost function of the program; zombie_frames has the whole stack. */
static sj_status print_event(void *context, sqlite3_stmt *row)
{
    row_heading *view = context;
    clean_text event;
    clean_text function;
    char partner[32] = "no partner";
    if (sqlite3_column_type(row, 5) != SQLITE_NULL) {
        snprintf(partner, sizeof(partner), "partner #%d", sqlite3_column_int(row, 5));
    }
    printf("%s  #%-2d %-11s  owners %lld  %-11s  thread %lld  %s\n",
           view->rows++ == 0 ? view->heading : "", sqlite3_column_int(row, 0),
           clean(row, 1, &event), (long long)sqlite3_column_int64(row, 2), partner,
           (long long)sqlite3_column_int64(row, 3), clean(row, 4, &function));
    return SJ_OK;
}

/* Prints a row of zombie_calls. `context` is the moment of the row before. */
static sj_status print_call(void *context, sqlite3_stmt *row)
{
    clean_text *moment = context;
    clean_text texts[4];
    char duration[SJ_DURATION_TEXT_BYTES] = "did not end";
    const char *now = clean(row, 0, &texts[0]);
    if (strcmp(now, moment->text) != 0) {
        char at[SJ_DURATION_TEXT_BYTES];
        sj_format_duration(sqlite3_column_int64(row, 1), at);
        printf("\ncalls at the %s, %s after the start, in thread \"%s\"\n", now, at,
               clean(row, 2, &texts[1]));
        snprintf(moment->text, sizeof(moment->text), "%s", now);
    }
    if (sqlite3_column_type(row, 7) != SQLITE_NULL) {
        sj_format_duration(sqlite3_column_int64(row, 7), duration);
    }
    printf("  %-6s  %11s  %s\n", clean(row, 3, &texts[2]), duration, clean(row, 5, &texts[3]));
    return SJ_OK;
}

/* Prints the calls of the threads that allocated, freed and used the memory, as far as they were
 * recorded. */
static sj_status print_calls(sqlite3 *database, const char *zombie)
{
    sqlite3_stmt *statement = NULL;
    clean_text moment = {""};
    if (sqlite3_prepare_v2(database, sj_shipped_query_find("zombie_calls")->text, -1, &statement,
                           NULL) != SQLITE_OK) {
        return SJ_EIO;
    }
    sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, ":zombie"), zombie, -1,
                      SQLITE_STATIC);
    sqlite3_bind_int(statement, sqlite3_bind_parameter_index(statement, ":calls"), CALLS_BEFORE);
    const sj_status status = sj_sql_each_row(statement, print_call, &moment, NULL);
    sqlite3_finalize(statement);
    return status;
}

/* Prints the finding and its last report; the row contains both. */
static sj_status print_finding(sqlite3 *database, sqlite3_stmt *row)
{
    clean_text texts[6];
    const char *access = clean(row, 5, &texts[0]);
    const char *class = clean(row, 10, &texts[1]);
    const char *kind = clean(row, 0, &texts[2]);
    const char *thread = clean(row, 4, &texts[3]);
    const char *method = clean(row, 11, &texts[4]);
    const int64_t reports = sqlite3_column_int64(row, 2);
    printf("%s, %s, %s\n", kind, clean(row, 1, &texts[5]), SJ_COUNTED(reports, "report"));
    if (class[0] != '\0' && strcmp(kind, "message_to_freed") != 0) {
        printf("%s%s%s of %s, a block of %lld bytes, in thread \"%s\", session %lld\n", access,
               method[0] != '\0' ? "call of " : "", method, class,
               (long long)sqlite3_column_int64(row, 6), thread,
               (long long)sqlite3_column_int64(row, 8));
    } else if (class[0] != '\0') {
        printf("-[%s %s], an object of %lld bytes, in thread \"%s\", session %lld\n", class, method,
               (long long)sqlite3_column_int64(row, 6), thread,
               (long long)sqlite3_column_int64(row, 8));
    } else {
        print_block(row, access);
    }
    const char *note = (const char *)sqlite3_column_text(row, 9);
    if (note[0] != '\0') {
        printf("note: %s\n", note);
    }
    const int64_t report = sqlite3_column_int64(row, 3);
    row_heading history = {.heading = "\nhistory\n"};
    SJ_TRY(print_object(database, report));
    SJ_TRY(print_stack(database, report, "use", "used"));
    SJ_TRY(print_stack(database, report, "free", "freed"));
    SJ_TRY(print_stack(database, report, "allocation", "allocated"));
    return sj_sql_each(database, sj_zombies_history_sql, SJ_SQL_INTS(report), print_event, &history,
                       NULL);
}

static int print_json(sqlite3 *database, int64_t id)
{
    json_t *finding = NULL;
    sj_error error = {0};
    if (sj_zombie_json_read(database, id, CALLS_BEFORE, &finding, &error) != SJ_OK) {
        return fail(&error);
    }
    return sj_json_output(&sj_command_zombies, finding);
}

static int run_show(zombies_request *request)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t id;
    if (!parse_id(request->words[0], &id)) {
        return sj_command_usage_error(&sj_command_zombies, "show needs a finding's number");
    }
    int exit_code = sj_query_open(&sj_command_zombies, &request->query, &database, NULL);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    if (request->query.format == SJ_RESULT_JSON) {
        exit_code = print_json(database, id);
    } else if (sqlite3_prepare_v2(database, sj_zombies_show_sql, -1, &statement, NULL) !=
               SQLITE_OK) {
        exit_code = fail_sql(database);
    } else {
        sqlite3_bind_int64(statement, 1, id);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            if (print_finding(database, statement) != SJ_OK ||
                print_calls(database, request->words[0]) != SJ_OK) {
                exit_code = fail_sql(database);
            }
        } else {
            exit_code = sj_command_error(&sj_command_zombies, SJ_EXIT_NOT_FOUND,
                                         "there is no finding %s with a report", request->words[0]);
        }
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return exit_code;
}

/* Opens the chosen database for writing. */
static sj_status open_writable(const zombies_request *request, sqlite3 **database, sj_error *error)
{
    char path[PATH_MAX];
    SJ_TRY(sj_database_path(request->query.file, path, error));
    return sj_database_open(path, SJ_DATABASE_WRITE, database, error);
}

static int change(const zombies_request *request, const sj_zombie_change *change)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    int64_t id;
    if (!parse_id(request->words[0], &id)) {
        return sj_command_usage_error(&sj_command_zombies, "a finding's number is needed");
    }
    sj_status status = open_writable(request, &database, &error);
    if (status == SJ_OK) {
        status = sj_zombie_change_apply(database, id, change, &error);
    }
    sqlite3_close(database);
    return status == SJ_OK ? SJ_EXIT_OK : fail(&error);
}

static int run_resolve(zombies_request *request)
{
    return change(request, &(sj_zombie_change){.is_resolved = true});
}

static int run_note(zombies_request *request)
{
    return change(request, &(sj_zombie_change){.note = request->words[1]});
}

static int run_shrink(zombies_request *request)
{
    int64_t pid = 0;
    sj_error error = {0};
    if (!parse_id(request->words[0], &pid) || pid > INT32_MAX) {
        return sj_command_usage_error(&sj_command_zombies, "shrink needs a process's number");
    }
    return sj_heap_shrink((pid_t)pid, &error) == SJ_OK ? SJ_EXIT_OK : fail(&error);
}

static const zombies_verb verbs[] = {{"show", 1, "the number of a finding", run_show},
                                     {"resolve", 1, "the number of a finding", run_resolve},
                                     {"note", 2, "the number of a finding and a text", run_note},
                                     {"shrink", 1, "the number of a process", run_shrink}};

/* Runs a verb with its words, which begin at argv[first + 1]. A FILE may follow them. */
static int run_verb(const zombies_verb *verb, int argc, char **argv, int first,
                    zombies_request *request)
{
    const int end = first + 1 + verb->words;
    if (argc < end) {
        return sj_command_usage_error(&sj_command_zombies, "%s needs %s", verb->name, verb->needs);
    }
    const int taken =
        sj_query_parse_file(&sj_command_zombies, argc, argv, end, &request->query.file);
    request->words = argv + first + 1;
    return taken >= 0 ? taken : verb->run(request);
}

static int run_zombies(int argc, char **argv)
{
    static const char *const hidden_first[] = {"allocated_in", "builds", "devices",  "last_seen",
                                               "sessions",     "note",   "freed_in", "state",
                                               "message",      NULL};
    zombies_request request = {.query.hidden_first = hidden_first};
    int first = 0;
    const int code = sj_options_parse(&sj_command_zombies, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    for (size_t i = 0; first < argc && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].name, argv[first]) == 0) {
            return run_verb(&verbs[i], argc, argv, first, &request);
        }
    }
    const int taken =
        sj_query_parse_file(&sj_command_zombies, argc, argv, first, &request.query.file);
    if (taken >= 0) {
        return taken;
    }
    if (first < argc && access(argv[first], F_OK) != 0) {
        return sj_command_usage_error(
            &sj_command_zombies, "\"%s\" is neither a database nor show, resolve, note or shrink",
            argv[first]);
    }
    return run_list(&request);
}

static const sj_option zombies_options[] = {
    SJ_DATABASE_OPTION(offsetof(zombies_request, query.file)),
    {.name = "all",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(zombies_request, all),
     .help = "list resolved findings, too"},
    SJ_QUERY_FORMAT_OPTIONS(offsetof(zombies_request, query)),
    {0}};

const sj_command sj_command_zombies = {
    .name = "zombies",
    .summary = "list uses of freed memory, and show their stacks",
    .usage = "sojourn zombies [OPTIONS] [show ID | resolve ID | note ID TEXT | shrink PID] [FILE]",
    .help =
        "Without an action, lists the open findings of sessions that were recorded with\n"
        "--zombies. A finding is one mistake, in any number of sessions and builds.\n\n"
        "  show ID        its last report: stacks of the use, the free and the allocation, and\n"
        "                 the calls around them\n"
        "  resolve ID     mark it as fixed; a later report reopens it\n"
        "  note ID TEXT   add a text to it\n"
        "  shrink PID     halve the memory that freed blocks of a watched process keep\n",
    .options = zombies_options,
    .examples = "Examples:\n"
                "  sojourn record --zombies heap -o app.db -- ./app\n"
                "  sojourn zombies app.db\n"
                "  sojourn zombies show 1 app.db\n",
    .run = run_zombies,
};
