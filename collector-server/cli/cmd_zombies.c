#include "agent/livepatch/heap_watch.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/function_name.h"
#include "collector-server/cli/query_command.h"
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

/* Warns if no session was recorded with --zombies. */
static void warn_not_asked(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM zombie_accounts)"
                           " AND NOT EXISTS (SELECT 1 FROM zombies)",
                           -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        fputs("sojourn zombies: warning: no session was recorded with --zombies, so nothing could "
              "be found\n",
              stderr);
    }
    sqlite3_finalize(statement);
}

/* Prints which processes were not watched. For these, an empty list does not mean that they have no
 * errors. */
static void warn_unwatched(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT count(*), not_watched FROM zombie_accounts"
                           " WHERE not_watched <> '' GROUP BY not_watched",
                           -1, &statement, NULL) != SQLITE_OK) {
        return;
    }
    clean_text reason;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const long long count = sqlite3_column_int64(statement, 0);
        fprintf(stderr, "sojourn zombies: warning: %lld %s not watched: %s\n", count,
                count == 1 ? "process was" : "processes were", clean(statement, 1, &reason));
    }
    sqlite3_finalize(statement);
}

/* Prints for which processes the kernel did not report all memory pressure. */
static void warn_unseen(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT count(*), pressure_unseen FROM zombie_accounts"
                           " WHERE pressure_unseen <> '' GROUP BY pressure_unseen",
                           -1, &statement, NULL) != SQLITE_OK) {
        return;
    }
    clean_text unseen;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const long long count = sqlite3_column_int64(statement, 0);
        fprintf(stderr,
                "sojourn zombies: warning: of %lld process%s the kernel did not say all about "
                "memory pressure: %s\n",
                count, count == 1 ? "" : "es", clean(statement, 1, &unseen));
    }
    sqlite3_finalize(statement);
}

/* Says that the list is empty because nothing was found. An empty table alone could have another
 * reason. */
static void tell_none(sqlite3 *database, bool all)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT count(*), count(*) FILTER (WHERE state <> 'resolved')"
                           " FROM zombie_findings HAVING EXISTS (SELECT 1 FROM zombie_accounts)",
                           -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        if (sqlite3_column_int64(statement, 0) == 0) {
            fputs("sojourn zombies: no use of freed memory was found\n", stderr);
        } else if (!all && sqlite3_column_int64(statement, 1) == 0) {
            fputs("sojourn zombies: all that was found is resolved; --all lists it\n", stderr);
        }
    }
    sqlite3_finalize(statement);
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
        tell_none(database, request->all);
        warn_not_asked(database);
        warn_unwatched(database);
        warn_unseen(database);
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

static void print_stack(sqlite3 *database, int64_t report, const char *stack, const char *heading)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT tid, depth, function, module, offset FROM zombie_frames"
                           " WHERE report_id = ?1 AND stack = ?2 ORDER BY depth",
                           -1, &statement, NULL) != SQLITE_OK) {
        return;
    }
    sqlite3_bind_int64(statement, 1, report);
    sqlite3_bind_text(statement, 2, stack, -1, SQLITE_STATIC);
    clean_text name;
    clean_text module;
    for (int row = 0; sqlite3_step(statement) == SQLITE_ROW; row++) {
        const char *function = clean(statement, 2, &name);
        if (row == 0) {
            printf("\n%s by thread %lld\n", heading, (long long)sqlite3_column_int64(statement, 0));
        }
        printf("  #%-2d %s  %s+0x%" PRIx64 "\n", sqlite3_column_int(statement, 1),
               function[0] != '\0' ? function : "(unnamed)", clean(statement, 3, &module),
               (uint64_t)sqlite3_column_int64(statement, 4));
    }
    sqlite3_finalize(statement);
}

static void print_block(sqlite3_stmt *row, const char *access)
{
    clean_text thread;
    printf("%s at byte %lld of a block of %lld, in thread \"%s\", session %lld\n",
           access[0] != '\0' ? access : "free", (long long)sqlite3_column_int64(row, 7),
           (long long)sqlite3_column_int64(row, 6), clean(row, 4, &thread),
           (long long)sqlite3_column_int64(row, 8));
}

/* Prints the instance variables and ancestors of a freed object from the report. */
static void print_object(sqlite3 *database, int64_t report)
{
    static const char *const lists[][2] = {{"ancestors", "inherits from"}, {"values", "had"}};
    sqlite3_stmt *statement = NULL;
    clean_text value;
    if (sqlite3_prepare_v2(database,
                           "SELECT e.value FROM reports r, json_each(r.payload, '$.' || ?2) e"
                           " WHERE r.report_id = ?1",
                           -1, &statement, NULL) != SQLITE_OK) {
        return;
    }
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        sqlite3_reset(statement);
        sqlite3_bind_int64(statement, 1, report);
        sqlite3_bind_text(statement, 2, lists[i][0], -1, SQLITE_STATIC);
        while (sqlite3_step(statement) == SQLITE_ROW) {
            printf("%s %s\n", lists[i][1], clean(statement, 0, &value));
        }
    }
    sqlite3_finalize(statement);
}

/* Prints the events. For each event, prints the innermost function of the program; zombie_frames
 * has the whole stack. */
static void print_history(sqlite3 *database, int64_t report)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT number, event, owners, tid, function, partner FROM zombie_events"
                           " WHERE report_id = ?1 ORDER BY number",
                           -1, &statement, NULL) != SQLITE_OK) {
        return;
    }
    sqlite3_bind_int64(statement, 1, report);
    clean_text event;
    clean_text function;
    for (int row = 0; sqlite3_step(statement) == SQLITE_ROW; row++) {
        char partner[32] = "no partner";
        if (sqlite3_column_type(statement, 5) != SQLITE_NULL) {
            snprintf(partner, sizeof(partner), "partner #%d", sqlite3_column_int(statement, 5));
        }
        printf("%s  #%-2d %-11s  owners %lld  %-11s  thread %lld  %s\n",
               row == 0 ? "\nhistory\n" : "", sqlite3_column_int(statement, 0),
               clean(statement, 1, &event), (long long)sqlite3_column_int64(statement, 2), partner,
               (long long)sqlite3_column_int64(statement, 3), clean(statement, 4, &function));
    }
    sqlite3_finalize(statement);
}

/* Prints a row of zombie_calls. `moment` is the moment of the row before. */
static void print_call(sqlite3_stmt *row, clean_text *moment)
{
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
}

/* Prints the calls of the threads that allocated, freed and used the memory, as far as they were
 * recorded. */
static void print_calls(sqlite3 *database, const char *zombie)
{
    sqlite3_stmt *statement = NULL;
    clean_text moment = {""};
    if (sqlite3_prepare_v2(database, sj_shipped_query_find("zombie_calls")->text, -1, &statement,
                           NULL) != SQLITE_OK) {
        return;
    }
    sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, ":zombie"), zombie, -1,
                      SQLITE_STATIC);
    sqlite3_bind_int(statement, sqlite3_bind_parameter_index(statement, ":calls"), CALLS_BEFORE);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        print_call(statement, &moment);
    }
    sqlite3_finalize(statement);
}

/* Prints the finding and its last report; the row contains both. */
static void print_finding(sqlite3 *database, sqlite3_stmt *row)
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
    print_object(database, report);
    print_stack(database, report, "use", "used");
    print_stack(database, report, "free", "freed");
    print_stack(database, report, "allocation", "allocated");
    print_history(database, report);
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
    if (sqlite3_prepare_v2(database, sj_zombies_show_sql, -1, &statement, NULL) != SQLITE_OK) {
        exit_code = fail_sql(database);
    } else {
        sqlite3_bind_int64(statement, 1, id);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            print_finding(database, statement);
            print_calls(database, request->words[0]);
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
        sj_query_take_file(&sj_command_zombies, argc, argv, end, &request->query.file);
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
        sj_query_take_file(&sj_command_zombies, argc, argv, first, &request.query.file);
    if (taken >= 0) {
        return taken;
    }
    if (first < argc && access(argv[first], F_OK) != 0) {
        return sj_command_usage_error(&sj_command_zombies,
                                      "\"%s\" is no database, nor show, resolve, note or shrink",
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
        "Without a word lists the open findings of sessions that were recorded with\n"
        "--zombies. A finding is one mistake, in however many sessions and builds.\n"
        "\n"
        "  show ID        its last report: stacks of the use, the free and the allocation, and\n"
        "                 the calls around them\n"
        "  resolve ID     it is fixed; a report that comes later reopens it\n"
        "  note ID TEXT   keep a text with it\n"
        "  shrink PID     halve the memory that freed blocks of a watched process keep\n",
    .options = zombies_options,
    .examples = "Examples:\n"
                "  sojourn record --zombies heap -o app.db -- ./app\n"
                "  sojourn zombies app.db\n"
                "  sojourn zombies show 1 app.db\n",
    .run = run_zombies,
};
