/* Measures queries over a recording: M calls/s of several ways to group calls, and ms of a summary,
 * a point and a window. Figures are CPU time, the best of ROUNDS rounds, or of ten times as many
 * for short queries.
 *
 *   query_bench DATABASE [ROUNDS [SQL]]
 *
 * DATABASE holds a session (`sojourn record -o DATABASE ...`). If it holds a second session, the
 * bench compares both. With SQL, the bench prints only the ms of that query, and the first column
 * of its last row. */
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_SQL_BYTES = 600 };

static int rounds = 3;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "query_bench: %s: %s\n", what, why);
    exit(1);
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Runs a query, and returns the CPU seconds. `*number` is the first column of the last row. Ends
 * the program if there are no rows. */
static double run(sqlite3 *database, const char *sql, long long *number)
{
    sqlite3_stmt *statement;
    int rows = 0;
    const double start = cpu_s();
    int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
    while (result == SQLITE_OK || result == SQLITE_ROW) {
        result = sqlite3_step(statement);
        if (result == SQLITE_ROW) {
            *number = sqlite3_column_int64(statement, 0);
            rows++;
        }
    }
    sqlite3_finalize(statement);
    if (result != SQLITE_DONE || rows == 0) {
        fail(sql, sqlite3_errmsg(database));
    }
    return cpu_s() - start;
}

static long long number_of(sqlite3 *database, const char *sql)
{
    long long number = 0;
    run(database, sql, &number);
    return number;
}

static double measure(sqlite3 *database, const char *sql, int times, long long *number)
{
    double best = 1e9;
    for (int round = 0; round < times; ++round) {
        const double spent = run(database, sql, number);
        best = spent < best ? spent : best;
    }
    return best;
}

static void measure_whole(sqlite3 *database, double calls, const char *sql)
{
    long long number;
    const double spent = measure(database, sql, rounds, &number);
    printf("%8.1f M calls/s  %9.2f ms  %s\n", calls / spent / 1e6, spent * 1e3, sql);
}

static void measure_part(sqlite3 *database, const char *what, const char *sql)
{
    long long number;
    const double spent = measure(database, sql, 10 * rounds, &number);
    printf("%17s %9.3f ms  %s\n", "", spent * 1e3, what);
}

/* Compares the first session with the second one, if there is a second one. */
static void measure_comparison(sqlite3 *database, long long session)
{
    static const char *const tables[] = {"diff_functions", "diff_tree"};
    char sql[MAX_SQL_BYTES];
    const long long second =
        number_of(database, "SELECT coalesce(min(session_id), 0) FROM sessions WHERE session_id >"
                            " (SELECT min(session_id) FROM sessions)");
    for (int i = 0; i < 2 && second != 0; ++i) {
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s(%lld, %lld)", tables[i], session,
                 second);
        measure_part(database, sql, sql);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fail("usage", "query_bench DATABASE [ROUNDS [SQL]]");
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : rounds;
    sqlite3 *database;
    sj_error error = {0};
    if (sj_database_open_reader(argv[1], &database, &error) != SJ_OK) {
        fail(argv[1], error.text);
    }
    if (argc > 3) {
        long long number = 0;
        const double spent = measure(database, argv[3], rounds, &number);
        printf("%.3f %lld\n", spent * 1e3, number);
        sqlite3_close(database);
        return 0;
    }
    char sql[MAX_SQL_BYTES];
    const long long calls = number_of(database, "SELECT sum(stored_calls) FROM sessions");
    const long long session = number_of(database, "SELECT min(session_id) FROM sessions");
    const long long point = number_of(
        database, "SELECT stream_id << 38 | calls / 2 FROM streams ORDER BY calls DESC LIMIT 1");
    snprintf(sql, sizeof(sql), "SELECT start_ns FROM calls WHERE call_id = %lld", point);
    const long long from = number_of(database, sql);
    static const char *const whole[] = {
        "SELECT count(*) FROM calls",
        "SELECT function_id, count(*) FROM calls GROUP BY function_id",
        "SELECT function_id, count(*), sum(duration_ns) FROM calls GROUP BY function_id",
        "SELECT sum(duration_ns) FROM calls",
        "SELECT count(*) FROM calls WHERE duration_ns > 100000",
        "SELECT count(*) FROM calls WHERE function_id = (SELECT function_id FROM function_stats "
        "ORDER BY calls DESC LIMIT 1 OFFSET 20)",
    };
    printf("%.1f M calls\n", (double)calls / 1e6);
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); ++i) {
        measure_whole(database, (double)calls, whole[i]);
    }
    snprintf(sql, sizeof(sql), "SELECT function_id, calls, duration_ns FROM call_aggregate(%lld)",
             session);
    char of_session[96];
    snprintf(of_session, sizeof(of_session),
             "SELECT stored_calls FROM sessions WHERE session_id = %lld", session);
    measure_whole(database, (double)number_of(database, of_session), sql);
    snprintf(sql, sizeof(sql),
             "SELECT f.name, s.calls, s.total_ns, s.self_ns, "
             "histogram_quantile(s.histogram, 0.5, s.session_id), "
             "histogram_quantile(s.histogram, 0.95, s.session_id), "
             "histogram_quantile(s.histogram, 0.99, s.session_id) FROM function_stats AS s "
             "JOIN functions AS f ON f.function_id = s.function_id WHERE s.session_id = %lld "
             "ORDER BY s.self_ns DESC",
             session);
    measure_part(database, "function summary, all functions with quantiles", sql);
    snprintf(sql, sizeof(sql), "SELECT * FROM calls WHERE call_id = %lld", point);
    measure_part(database, "one call by id", sql);
    snprintf(sql, sizeof(sql),
             "SELECT count(*), sum(duration_ns) FROM calls WHERE start_ns BETWEEN %lld AND %lld",
             from, from + 9999999);
    measure_part(database, "10 ms window: count(*), sum(duration_ns) FROM calls", sql);
    snprintf(sql, sizeof(sql), "SELECT function_id, calls FROM call_aggregate(%lld, %lld, %lld)",
             session, from, from + 10000000);
    measure_part(database, "10 ms window: call_aggregate", sql);
    measure_comparison(database, session);
    sqlite3_close(database);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%17s %9.1f MB at most\n", "", (double)usage.ru_maxrss / 1e3);
    return 0;
}
