#include "collector-server/cli/thread_sums.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/query/query.h"

#include <stdio.h>

#define LEAST_NS INT64_C(40000000) /* a shorter time has only one or two samples of a thread */

enum { THREADS_SHOWN = 10, NAME_COLUMN = 48, LEAST_NAME = 12 };

/* The sums of a whole session: the totals of its processes' last reports. */
static const char whole_sql[] =
    "WITH last AS (SELECT max(number) AS number FROM reports WHERE session_id = ?1 "
    "AND monitor = 'threads' AND kind = 'times' GROUP BY process_number) "
    "SELECT sum(r.payload ->> '$.watched_ns'), sum(r.payload ->> '$.cpu_ns'), "
    "sum(r.payload ->> '$.ready_ns') FROM last JOIN reports AS r "
    "ON r.session_id = ?1 AND r.number = last.number";

/* The steps of the chosen threads, with the part of each step inside a window. */
#define CHOSEN_PARTS                                                                               \
    "WITH chosen AS MATERIALIZED (SELECT DISTINCT t.number AS thread_number, "                     \
    "w.value ->> 1 AS from_ns, w.value ->> 2 AS to_ns FROM json_each(?11) AS w "                   \
    "JOIN streams AS s ON s.stream_id = w.value ->> 0 JOIN threads AS t USING (thread_id) "        \
    "UNION ALL SELECT number, -9223372036854775807, 9223372036854775807 FROM threads "             \
    "WHERE session_id = ?1 AND ?11 IS NULL), "                                                     \
    "parts AS (SELECT x.thread_number, x.cpu_ns, x.ready_ns, x.to_ns - x.from_ns AS length_ns, "   \
    "min(x.to_ns, c.to_ns) - max(x.from_ns, c.from_ns) AS inside_ns "                              \
    "FROM thread_times AS x CROSS JOIN chosen AS c USING (thread_number) "                         \
    "WHERE x.session_id = ?1 AND x.reported_ns >= (SELECT min(from_ns) FROM chosen) "              \
    "AND x.from_ns < c.to_ns AND x.to_ns > c.from_ns AND x.to_ns > x.from_ns) "
#define SUMS                                                                                       \
    "sum(p.inside_ns), CAST(sum(1.0 * p.cpu_ns * p.inside_ns / p.length_ns) AS INTEGER), "         \
    "CAST(sum(1.0 * p.ready_ns * p.inside_ns / p.length_ns) AS INTEGER)"

static const char chosen_sql[] = CHOSEN_PARTS "SELECT " SUMS " FROM parts AS p";

static const char threads_sql[] =
    CHOSEN_PARTS "SELECT " SUMS ", t.number, t.tid, t.name, count(*) OVER () FROM parts AS p "
                 "JOIN threads AS t ON t.session_id = ?1 AND t.number = p.thread_number "
                 "GROUP BY p.thread_number ORDER BY 2 DESC, t.number LIMIT ?2";

static sj_status prepare(sqlite3 *database, const char *sql, int64_t session_id,
                         const sj_call_choice *choice, sqlite3_stmt **row, sj_error *error)
{
    if (sqlite3_prepare_v2(database, sql, -1, row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read when threads were on a processor: %s",
                       sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(*row, 1, session_id);
    if (choice != NULL) {
        sj_call_choice_bind(choice, *row);
    }
    return SJ_OK;
}

/* Reads the sums at the beginning of a row. Sums with a negative number become unknown: a device
 * may send wrong numbers. */
static sj_thread_sums read_sums(sqlite3_stmt *row)
{
    sj_thread_sums sums = {.watched_ns = sqlite3_column_int64(row, 0),
                           .cpu_ns = sqlite3_column_int64(row, 1),
                           .ready_ns = sqlite3_column_int64(row, 2)};
    const bool is_sound = sums.watched_ns >= 0 && sums.cpu_ns >= 0 && sums.ready_ns >= 0;
    return is_sound ? sums : (sj_thread_sums){0};
}

sj_status sj_thread_sums_read(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                              sj_thread_sums *sums, sj_error *error)
{
    const bool all = choice == NULL || choice->selection == NULL;
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(database, all ? whole_sql : chosen_sql, session_id, choice, &row, error));
    const int result = sqlite3_step(row);
    if (result == SQLITE_ROW) {
        *sums = read_sums(row);
    }
    sqlite3_finalize(row);
    return result == SQLITE_ROW
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read when threads were on a processor: %s",
                         sqlite3_errmsg(database));
}

static int64_t waited(const sj_thread_sums *sums)
{
    const int64_t waited_ns = sums->watched_ns - sums->cpu_ns - sums->ready_ns;
    return waited_ns > 0 ? waited_ns : 0;
}

/* Returns the whole time, for the shares of the parts. A wait for a processor is counted when it
 * ends. So the parts of a window, and those of devices of earlier versions, can exceed the watched
 * time. */
static int64_t whole(const sj_thread_sums *sums)
{
    const int64_t parts_ns = sums->cpu_ns + sums->ready_ns;
    return sums->watched_ns > parts_ns ? sums->watched_ns : parts_ns;
}

void sj_thread_sums_line(const sj_thread_sums *sums, char line[SJ_THREAD_SUMS_BYTES])
{
    char working[SJ_DURATION_TEXT_BYTES];
    char waiting[SJ_DURATION_TEXT_BYTES];
    char ready[SJ_DURATION_TEXT_BYTES];
    const double percent = 100.0 / (double)whole(sums);
    if (sums->watched_ns < LEAST_NS) {
        line[0] = '\0';
        return;
    }
    snprintf(line, SJ_THREAD_SUMS_BYTES,
             "threads worked %.0f %%, waited %.0f %%, and %.0f %% for a processor (%s, %s, %s)",
             percent * (double)sums->cpu_ns, percent * (double)waited(sums),
             percent * (double)sums->ready_ns, sj_format_duration(sums->cpu_ns, working),
             sj_format_duration(waited(sums), waiting), sj_format_duration(sums->ready_ns, ready));
}

static void print_thread(sqlite3_stmt *row, const sj_terminal *terminal)
{
    const sj_thread_sums sums = read_sums(row);
    char working[SJ_DURATION_TEXT_BYTES];
    char waiting[SJ_DURATION_TEXT_BYTES];
    char ready[SJ_DURATION_TEXT_BYTES];
    char name[SJ_FUNCTION_NAME_BYTES];
    const int room = terminal->columns - NAME_COLUMN;
    printf("%9s %9s %9s %8lld %8lld  %s\n", sj_format_duration(sums.cpu_ns, working),
           sj_format_duration(waited(&sums), waiting), sj_format_duration(sums.ready_ns, ready),
           (long long)sqlite3_column_int64(row, 3), (long long)sqlite3_column_int64(row, 4),
           sj_function_name_fit((const char *)sqlite3_column_text(row, 5),
                                terminal->columns == SJ_TERMINAL_UNLIMITED ? 0
                                : room < LEAST_NAME                        ? LEAST_NAME
                                                                           : room,
                                name));
}

sj_status sj_thread_sums_print(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                               const sj_terminal *terminal, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    int64_t shown = 0;
    int64_t all = 0;
    int result;
    SJ_TRY(prepare(database, threads_sql, session_id, choice, &row, error));
    sqlite3_bind_int64(row, 2, THREADS_SHOWN);
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        if (shown++ == 0) {
            all = sqlite3_column_int64(row, 6);
            printf("\n%s%9s %9s %9s %8s %8s  %s%s\n", terminal->colour ? "\033[4m" : "", "working",
                   "waiting", "processor", "thread", "tid", "name",
                   terminal->colour ? "\033[0m" : "");
        }
        print_thread(row, terminal);
    }
    sqlite3_finalize(row);
    if (all > shown) {
        printf("%lld more threads\n", (long long)(all - shown));
    }
    return result == SQLITE_DONE
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read when threads were on a processor: %s",
                         sqlite3_errmsg(database));
}
