/* Design notes. A stall is a report of a watch in the program, or a fired "jank" trigger without
 * such a report. For each stall, this file shows the calls that were open at one moment in the
 * middle of the stall. The calls come from the dump that the trigger made, if there is one, else
 * from the session. Times in a dump and in its session begin at the same moment. */
#include "collector-server/cli/stall_report.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/query/query.h"
#include "schema/queries/cli/stall_report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* The columns of the queries for stalls. */
enum { SESSION, NAME, WAITED, MOMENT, DUMP, THREAD, REPORT, REALTIME, UTC };

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text != NULL ? text : "";
}

/* Removes control characters: the texts come from devices and must not control the terminal. */
static void print_text(const char *before, sqlite3_stmt *row, int column, const char *behind)
{
    char clean[SJ_FUNCTION_NAME_BYTES];
    printf("%s%s%s", before, sj_function_name_fit(text_of(row, column), 0, clean), behind);
}

/* Returns the indentation of a call in columns. Limits it, because a device may send any depth. */
static int indentation(int64_t depth)
{
    enum { MOST = 200 };
    return depth < 0 ? 0 : depth < MOST / 2 ? 2 * (int)depth : MOST;
}

/* The context of the row readers below. */
typedef struct stall_view {
    sqlite3 *database;
    int64_t session; /* the session or dump with the calls of the current stall */
    int64_t stalled; /* number of the thread that was late */
    int64_t moment;  /* ns since the start of the session */
    uint64_t rows;   /* number of stalls that were printed */
    json_t *stalls;
} stall_view;

static sj_status print_open_call(void *context, sqlite3_stmt *row)
{
    const sj_stall_open_calls_row call = sj_read_stall_open_calls(row);
    char text[SJ_DURATION_TEXT_BYTES];
    printf("    %13s ", sj_format_duration(call.until_then_ns, text));
    if (call.has_duration_ns) {
        printf("of %11s", sj_format_duration(call.duration_ns, text));
    } else {
        printf("%14s", "not ended");
    }
    printf("  %*s", indentation(call.depth), "");
    print_text("", row, 0, "\n");
    ++*(uint64_t *)context;
    return SJ_OK;
}

/* Prints a thread and its open calls, outermost first. Prints for each call the time up to the
 * moment and the whole duration. */
static sj_status print_thread(void *context, sqlite3_stmt *row)
{
    const stall_view *view = context;
    const sj_stall_threads_row thread = sj_read_stall_threads(row);
    const sj_stall_open_calls_binds binds = {
        .moment_ns = view->moment, .session_id = view->session, .thread_id = thread.thread_id};
    uint64_t calls = 0;
    print_text(thread.number == view->stalled ? "  stalled thread " : "  thread ", row, 3, "");
    printf(" (%" PRId64 "), open calls with their time until then:\n", thread.tid);
    SJ_TRY(sj_sql_each(view->database, sj_stall_open_calls_sql, sj_bind_stall_open_calls(&binds),
                       print_open_call, &calls, NULL));
    printf("%s", calls == 0 ? "    no call of it is recorded then\n" : "");
    return SJ_OK;
}

static sj_status print_item(void *context, sqlite3_stmt *row)
{
    print_text(context, row, 0, "\n");
    return SJ_OK;
}

/* Prints each element of a JSON array on a line, after the text `before`. */
static sj_status print_list(sqlite3 *database, const char *json, const char *before)
{
    return json[0] == '\0' ? SJ_OK
                           : sj_sql_each(database, sj_stall_list_sql,
                                         sj_bind_stall_list(&(sj_stall_list_binds){.json = json}),
                                         print_item, (void *)(uintptr_t)before, NULL);
}

static sj_status print_stack(void *database, sqlite3_stmt *row)
{
    print_text("  Java thread ", row, 0, ": ");
    print_text("", row, 1, "");
    if (text_of(row, 2)[0] != '\0') {
        print_text(", waits for ", row, 2, "");
    }
    if (text_of(row, 3)[0] != '\0') {
        print_text(", which ", row, 3, " holds");
    }
    printf("\n");
    SJ_TRY(print_list(database, text_of(row, 4), "    holds "));
    return print_list(database, text_of(row, 5), "    at ");
}

static sj_status print_pauses(void *context, sqlite3_stmt *row)
{
    char sum[SJ_DURATION_TEXT_BYTES];
    char longest[SJ_DURATION_TEXT_BYTES];
    (void)context;
    printf("  pauses of the garbage collector meanwhile: %" PRId64 ", %s together, the"
           " longest %s\n",
           (int64_t)sqlite3_column_int64(row, 0),
           sj_format_duration(sqlite3_column_int64(row, 1), sum),
           sj_format_duration(sqlite3_column_int64(row, 2), longest));
    return SJ_OK;
}

static sj_status print_safepoints(void *context, sqlite3_stmt *row)
{
    (void)context;
    printf("  safepoints (all threads of the JVM stopped), those included: %" PRId64 ", %" PRId64
           " ms together\n",
           (int64_t)sqlite3_column_int64(row, 0), (int64_t)sqlite3_column_int64(row, 1));
    return SJ_OK;
}

static sj_status print_stall(void *context, sqlite3_stmt *stall)
{
    stall_view *view = context;
    char waited[SJ_DURATION_TEXT_BYTES];
    const bool is_dumped = sqlite3_column_type(stall, DUMP) != SQLITE_NULL;
    const int64_t session = sqlite3_column_int64(stall, is_dumped ? DUMP : SESSION);
    const sj_stall_threads_binds threads = {.session_id = session,
                                            .moment_ns = sqlite3_column_int64(stall, MOMENT),
                                            .stalled_number = sqlite3_column_int64(stall, THREAD)};
    view->session = session;
    view->moment = threads.moment_ns;
    view->stalled = threads.stalled_number;
    printf("%s", view->rows++ != 0 ? "\n" : "");
    printf("%s UTC, session %" PRId64 ": ", text_of(stall, UTC),
           (int64_t)sqlite3_column_int64(stall, SESSION));
    print_text("\"", stall, NAME, "\" late");
    printf(", for %s so far", sj_format_duration(sqlite3_column_int64(stall, WAITED), waited));
    if (is_dumped) {
        printf("; what was recorded around it is session %" PRId64, session);
    }
    printf("\n");
    SJ_TRY(sj_sql_each(view->database, sj_stall_threads_sql, sj_bind_stall_threads(&threads),
                       print_thread, view, NULL));
    if (sqlite3_column_type(stall, REPORT) == SQLITE_NULL) {
        return SJ_OK;
    }
    const sj_sql_binds report = SJ_SQL_INTS(sqlite3_column_int64(stall, REPORT));
    SJ_TRY(sj_sql_each(view->database, sj_stall_stacks_sql, report, print_stack, view->database,
                       NULL));
    SJ_TRY(sj_sql_each(view->database, sj_stall_pauses_sql, report, print_pauses, NULL, NULL));
    return sj_sql_each(view->database, sj_stall_safepoints_sql, report, print_safepoints, NULL,
                       NULL);
}

static sj_status each_stall(stall_view *view, sj_sql_row_reader *read_stall)
{
    const sj_sql_binds none = {0};
    SJ_TRY(sj_sql_each(view->database, sj_stall_report_reported_sql, none, read_stall, view, NULL));
    return sj_sql_each(view->database, sj_stall_report_fired_sql, none, read_stall, view, NULL);
}

sj_status sj_stall_report_print(sqlite3 *database)
{
    stall_view view = {.database = database};
    SJ_TRY(each_stall(&view, print_stall));
    printf("%s", view.rows == 0 ? "no thread was late\n" : "");
    return SJ_OK;
}

static sj_status add_stall(void *context, sqlite3_stmt *stall)
{
    const stall_view *view = context;
    sqlite3_stmt *row = NULL;
    const int calls = sqlite3_column_type(stall, DUMP) != SQLITE_NULL ? DUMP : SESSION;
    const int columns[] = {calls, THREAD, MOMENT, REPORT, SESSION, NAME, WAITED, REALTIME};
    if (sqlite3_prepare_v2(view->database, sj_stall_report_json_sql, -1, &row, NULL) != SQLITE_OK) {
        return SJ_EIO;
    }
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        sqlite3_bind_value(row, (int)i + 1, sqlite3_column_value(stall, columns[i]));
    }
    sj_status status = SJ_EIO;
    if (sqlite3_step(row) == SQLITE_ROW) {
        json_t *made = sj_json_clean_load(text_of(row, 0));
        status = made != NULL ? SJ_OK : SJ_ENOMEM;
        json_array_append_new(view->stalls, made);
    }
    sqlite3_finalize(row);
    return status;
}

sj_status sj_stall_report_json(sqlite3 *database, json_t **stalls)
{
    *stalls = json_array();
    stall_view view = {.database = database, .stalls = *stalls};
    const sj_status status = each_stall(&view, add_stall);
    if (status != SJ_OK) {
        json_decref(*stalls);
        *stalls = NULL;
    }
    return status;
}
