#include "collector-server/cli/thread_sums.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/query/query.h"
#include "collector-server/store/sql.h"
#include "schema/queries/cli/thread_sums.h"

#include <stdio.h>

#define LEAST_NS INT64_C(40000000) /* a shorter time has only one or two steps of a thread */

enum { THREADS_SHOWN = 10, NAME_COLUMN = 48, LEAST_NAME = 12 };

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

/* Reads the sums in the first three columns of a row. Returns zeros if a number is negative,
 * because a device may send wrong numbers. */
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
    SJ_TRY(prepare(database, all ? sj_thread_sums_whole_sql : sj_thread_sums_chosen_sql, session_id,
                   choice, &row, error));
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

static int64_t waited_time(const sj_thread_sums *sums)
{
    const int64_t waited_ns = sums->watched_ns - sums->cpu_ns - sums->ready_ns;
    return waited_ns > 0 ? waited_ns : 0;
}

/* Returns the time that is 100 %: the watched time, or the sum of the parts if that is larger. The
 * sum can be larger, because the kernel counts a wait for a processor when the wait ends. */
static int64_t whole_time(const sj_thread_sums *sums)
{
    const int64_t parts_ns = sums->cpu_ns + sums->ready_ns;
    return sums->watched_ns > parts_ns ? sums->watched_ns : parts_ns;
}

void sj_thread_sums_line(const sj_thread_sums *sums, char line[SJ_THREAD_SUMS_BYTES])
{
    char working[SJ_DURATION_TEXT_BYTES];
    char waiting[SJ_DURATION_TEXT_BYTES];
    char ready[SJ_DURATION_TEXT_BYTES];
    const double percent = 100.0 / (double)whole_time(sums);
    if (sums->watched_ns < LEAST_NS) {
        line[0] = '\0';
        return;
    }
    snprintf(line, SJ_THREAD_SUMS_BYTES,
             "threads worked %.0f %%, waited %.0f %%, and %.0f %% for a processor (%s, %s, %s)",
             percent * (double)sums->cpu_ns, percent * (double)waited_time(sums),
             percent * (double)sums->ready_ns, sj_format_duration(sums->cpu_ns, working),
             sj_format_duration(waited_time(sums), waiting),
             sj_format_duration(sums->ready_ns, ready));
}

/* The threads that are listed, up to THREADS_SHOWN. */
typedef struct thread_list {
    const sj_terminal *terminal;
    int64_t shown;
    int64_t all; /* number of threads of the session */
} thread_list;

static sj_status print_thread(void *context, sqlite3_stmt *row)
{
    thread_list *list = context;
    const sj_terminal *terminal = list->terminal;
    const sj_thread_sums sums = read_sums(row);
    char working[SJ_DURATION_TEXT_BYTES];
    char waiting[SJ_DURATION_TEXT_BYTES];
    char ready[SJ_DURATION_TEXT_BYTES];
    char name[SJ_FUNCTION_NAME_BYTES];
    const int space = terminal->columns - NAME_COLUMN;
    if (list->shown++ == 0) {
        list->all = sqlite3_column_int64(row, 6);
        printf("\n%s%9s %9s %9s %8s %8s  %s%s\n", terminal->colour ? "\033[4m" : "", "working",
               "waiting", "processor", "thread", "tid", "name", terminal->colour ? "\033[0m" : "");
    }
    printf("%9s %9s %9s %8lld %8lld  %s\n", sj_format_duration(sums.cpu_ns, working),
           sj_format_duration(waited_time(&sums), waiting),
           sj_format_duration(sums.ready_ns, ready), (long long)sqlite3_column_int64(row, 3),
           (long long)sqlite3_column_int64(row, 4),
           sj_function_name_fit((const char *)sqlite3_column_text(row, 5),
                                terminal->columns == SJ_TERMINAL_UNLIMITED ? 0
                                : space < LEAST_NAME                       ? LEAST_NAME
                                                                           : space,
                                name));
    return SJ_OK;
}

sj_status sj_thread_sums_print(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                               const sj_terminal *terminal, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    thread_list list = {.terminal = terminal};
    SJ_TRY(prepare(database, sj_thread_sums_threads_sql, session_id, choice, &row, error));
    sqlite3_bind_int64(row, 2, THREADS_SHOWN);
    const sj_status status = sj_sql_each_row(row, print_thread, &list, error);
    sqlite3_finalize(row);
    if (list.all > list.shown) {
        printf("%lld more threads\n", (long long)(list.all - list.shown));
    }
    return status;
}
