/* Design notes. A stall is a report of a watch in the program, or a "jank" trigger without such a
 * report. The report shows the calls at one moment, in the middle of the wait. At that moment the
 * thread had not responded for some time, and it did not respond for some more time. The calls come
 * from the dump that the trigger made, if there is one, else from the session. Both count time from
 * the same moment. */
#include "collector-server/cli/stall_report.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/query/query.h"
#include "schema/queries/cli/stall_report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* Columns of a stall, in the order of both queries. */
enum { SESSION, NAME, WAITED, MOMENT, DUMP, THREAD, REPORT, REALTIME, UTC };

static const char threads_sql[] =
    "SELECT thread_id, number, tid, name FROM threads WHERE session_id = ?1"
    " AND started_ns <= ?3 ORDER BY number <> ?2, number";

static const char open_sql[] =
    "SELECT f.name, ?2 - c.start_ns, c.duration_ns, c.depth FROM calls c"
    " JOIN functions f USING (function_id) WHERE c.session_id = ?3 AND c.thread_id = ?1"
    " AND c.start_ns <= ?2 AND (c.end_ns IS NULL OR c.end_ns > ?2) ORDER BY c.depth";

static const char stacks_sql[] =
    "SELECT t.value ->> 'name', t.value ->> 'state', t.value ->> 'waits_for',"
    " t.value ->> 'held_by', t.value -> 'holds', t.value -> 'frames'"
    " FROM reports r, json_each(r.payload, '$.threads') t WHERE r.report_id = ?1 ORDER BY t.key";

static const char pauses_sql[] =
    "SELECT count(*), coalesce(sum(p.value ->> 'ns'), 0), coalesce(max(p.value ->> 'ns'), 0)"
    " FROM reports r, json_each(r.payload, '$.pauses') p WHERE r.report_id = ?1";

static const char stops_sql[] =
    "SELECT payload ->> '$.safepoints.count', payload ->> '$.safepoints.ms' FROM reports"
    " WHERE report_id = ?1";

static const char list_sql[] = "SELECT value FROM json_each(?1)";

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text != NULL ? text : "";
}

/* Prints a text without control characters: texts come from devices and must not control the
 * terminal. */
static void print_text(const char *before, sqlite3_stmt *row, int column, const char *behind)
{
    char clean[SJ_FUNCTION_NAME_BYTES];
    printf("%s%s%s", before, sj_function_name_fit(text_of(row, column), 0, clean), behind);
}

/* Returns the columns to indent a call. Limits them, because depths come from devices, too. */
static int indentation(int64_t depth)
{
    enum { MOST = 200 };
    return depth < 0 ? 0 : depth < MOST / 2 ? 2 * (int)depth : MOST;
}

static sj_status prepare(sqlite3 *database, const char *sql, sqlite3_stmt **statement)
{
    return sqlite3_prepare_v2(database, sql, -1, statement, NULL) == SQLITE_OK ? SJ_OK : SJ_EIO;
}

static sj_status finish(sqlite3_stmt *statement)
{
    return sqlite3_finalize(statement) == SQLITE_OK ? SJ_OK : SJ_EIO;
}

/* Prints the calls that were open in a thread, outermost first, with their time up to the moment
 * and their whole time. */
static sj_status print_open_calls(sqlite3 *database, int64_t session, int64_t thread_id,
                                  int64_t moment)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(database, open_sql, &row));
    sqlite3_bind_int64(row, 1, thread_id);
    sqlite3_bind_int64(row, 2, moment);
    sqlite3_bind_int64(row, 3, session);
    bool is_any = false;
    char text[SJ_DURATION_TEXT_BYTES];
    while (sqlite3_step(row) == SQLITE_ROW) {
        printf("    %13s ", sj_format_duration(sqlite3_column_int64(row, 1), text));
        if (sqlite3_column_type(row, 2) == SQLITE_NULL) {
            printf("%14s", "not ended");
        } else {
            printf("of %11s", sj_format_duration(sqlite3_column_int64(row, 2), text));
        }
        printf("  %*s", indentation(sqlite3_column_int64(row, 3)), "");
        print_text("", row, 0, "\n");
        is_any = true;
    }
    if (!is_any) {
        printf("    no call of it is recorded then\n");
    }
    return finish(row);
}

static sj_status print_threads(sqlite3 *database, sqlite3_stmt *stall, int64_t session)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(database, threads_sql, &row));
    sqlite3_bind_int64(row, 1, session);
    sqlite3_bind_int64(row, 2, sqlite3_column_int64(stall, THREAD));
    sqlite3_bind_int64(row, 3, sqlite3_column_int64(stall, MOMENT));
    sj_status status = SJ_OK;
    while (status == SJ_OK && sqlite3_step(row) == SQLITE_ROW) {
        const bool is_stalled = sqlite3_column_int64(row, 1) == sqlite3_column_int64(stall, THREAD);
        print_text(is_stalled ? "  stalled thread " : "  thread ", row, 3, "");
        printf(" (%" PRId64 "), open calls with their time until then:\n",
               (int64_t)sqlite3_column_int64(row, 2));
        status = print_open_calls(database, session, sqlite3_column_int64(row, 0),
                                  sqlite3_column_int64(stall, MOMENT));
    }
    const sj_status ended = finish(row);
    return status != SJ_OK ? status : ended;
}

static sj_status print_list(sqlite3 *database, const char *json, const char *before)
{
    sqlite3_stmt *row = NULL;
    if (json[0] == '\0') {
        return SJ_OK;
    }
    SJ_TRY(prepare(database, list_sql, &row));
    sqlite3_bind_text(row, 1, json, -1, SQLITE_STATIC);
    while (sqlite3_step(row) == SQLITE_ROW) {
        print_text(before, row, 0, "\n");
    }
    return finish(row);
}

static sj_status print_stacks(sqlite3 *database, int64_t report)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(database, stacks_sql, &row));
    sqlite3_bind_int64(row, 1, report);
    sj_status status = SJ_OK;
    while (status == SJ_OK && sqlite3_step(row) == SQLITE_ROW) {
        print_text("  Java thread ", row, 0, ": ");
        print_text("", row, 1, "");
        if (text_of(row, 2)[0] != '\0') {
            print_text(", waits for ", row, 2, "");
        }
        if (text_of(row, 3)[0] != '\0') {
            print_text(", which ", row, 3, " holds");
        }
        printf("\n");
        status = print_list(database, text_of(row, 4), "    holds ");
        if (status == SJ_OK) {
            status = print_list(database, text_of(row, 5), "    at ");
        }
    }
    const sj_status ended = finish(row);
    return status != SJ_OK ? status : ended;
}

static sj_status print_pauses(sqlite3 *database, int64_t report)
{
    sqlite3_stmt *row = NULL;
    char sum[SJ_DURATION_TEXT_BYTES];
    char longest[SJ_DURATION_TEXT_BYTES];
    SJ_TRY(prepare(database, pauses_sql, &row));
    sqlite3_bind_int64(row, 1, report);
    if (sqlite3_step(row) == SQLITE_ROW) {
        printf("  pauses of the garbage collector meanwhile: %" PRId64 ", %s together, the"
               " longest %s\n",
               (int64_t)sqlite3_column_int64(row, 0),
               sj_format_duration(sqlite3_column_int64(row, 1), sum),
               sj_format_duration(sqlite3_column_int64(row, 2), longest));
    }
    return finish(row);
}

static sj_status print_stops(sqlite3 *database, int64_t report)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(database, stops_sql, &row));
    sqlite3_bind_int64(row, 1, report);
    if (sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) != SQLITE_NULL) {
        printf("  safepoints (all threads of the JVM stopped), those included: %" PRId64
               ", %" PRId64 " ms together\n",
               (int64_t)sqlite3_column_int64(row, 0), (int64_t)sqlite3_column_int64(row, 1));
    }
    return finish(row);
}

static sj_status print_stall(sqlite3 *database, sqlite3_stmt *stall)
{
    char waited[SJ_DURATION_TEXT_BYTES];
    const bool is_dumped = sqlite3_column_type(stall, DUMP) != SQLITE_NULL;
    const int64_t session = sqlite3_column_int64(stall, is_dumped ? DUMP : SESSION);
    printf("%s UTC, session %" PRId64 ": ", text_of(stall, UTC),
           (int64_t)sqlite3_column_int64(stall, SESSION));
    print_text("\"", stall, NAME, "\" late");
    printf(", for %s so far", sj_format_duration(sqlite3_column_int64(stall, WAITED), waited));
    if (is_dumped) {
        printf("; what was recorded around it is session %" PRId64, session);
    }
    printf("\n");
    SJ_TRY(print_threads(database, stall, session));
    if (sqlite3_column_type(stall, REPORT) == SQLITE_NULL) {
        return SJ_OK;
    }
    SJ_TRY(print_stacks(database, sqlite3_column_int64(stall, REPORT)));
    SJ_TRY(print_pauses(database, sqlite3_column_int64(stall, REPORT)));
    return print_stops(database, sqlite3_column_int64(stall, REPORT));
}

static sj_status print_all(sqlite3 *database, const char *sql, uint64_t *count)
{
    sqlite3_stmt *stall = NULL;
    SJ_TRY(prepare(database, sql, &stall));
    sj_status status = SJ_OK;
    while (status == SJ_OK && sqlite3_step(stall) == SQLITE_ROW) {
        printf("%s", *count != 0 ? "\n" : "");
        status = print_stall(database, stall);
        ++*count;
    }
    const sj_status ended = finish(stall);
    return status != SJ_OK ? status : ended;
}

sj_status sj_stall_report_print(sqlite3 *database)
{
    uint64_t count = 0;
    SJ_TRY(print_all(database, sj_stall_report_reported_sql, &count));
    SJ_TRY(print_all(database, sj_stall_report_fired_sql, &count));
    if (count == 0) {
        printf("no thread was late\n");
    }
    return SJ_OK;
}

static sj_status add_stall(sqlite3 *database, sqlite3_stmt *stall, json_t *stalls)
{
    sqlite3_stmt *row = NULL;
    const int calls = sqlite3_column_type(stall, DUMP) != SQLITE_NULL ? DUMP : SESSION;
    const int columns[] = {calls, THREAD, MOMENT, REPORT, SESSION, NAME, WAITED, REALTIME};
    SJ_TRY(prepare(database, sj_stall_report_json_sql, &row));
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        sqlite3_bind_value(row, (int)i + 1, sqlite3_column_value(stall, columns[i]));
    }
    sj_status status = SJ_EIO;
    if (sqlite3_step(row) == SQLITE_ROW) {
        json_t *made = sj_json_clean_load(text_of(row, 0));
        status = made != NULL ? SJ_OK : SJ_ENOMEM;
        json_array_append_new(stalls, made);
    }
    const sj_status ended = finish(row);
    return status != SJ_OK ? status : ended;
}

static sj_status add_all(sqlite3 *database, const char *sql, json_t *stalls)
{
    sqlite3_stmt *stall = NULL;
    SJ_TRY(prepare(database, sql, &stall));
    sj_status status = SJ_OK;
    while (status == SJ_OK && sqlite3_step(stall) == SQLITE_ROW) {
        status = add_stall(database, stall, stalls);
    }
    const sj_status ended = finish(stall);
    return status != SJ_OK ? status : ended;
}

sj_status sj_stall_report_json(sqlite3 *database, json_t **stalls)
{
    *stalls = json_array();
    sj_status status = add_all(database, sj_stall_report_reported_sql, *stalls);
    if (status == SJ_OK) {
        status = add_all(database, sj_stall_report_fired_sql, *stalls);
    }
    if (status != SJ_OK) {
        json_decref(*stalls);
        *stalls = NULL;
    }
    return status;
}
