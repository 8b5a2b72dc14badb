#include "collector-server/query/compare.h"
#include "proto/callgraph/histogram.h"

#include "collector-server/query/query.h"
#include "collector-server/store/database.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FUNCTIONS = 8, SESSIONS = 20 };

static const char path[] = "compare_test.db";
static sqlite3 *database;
static uint64_t random_state = 7;

static double uniform(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

/* Returns noise as runs have it: mostly some percent, now and then much more. */
static double noise(double spread)
{
    const double normal = sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
    return exp(normal * spread) * (uniform() < 0.02 ? 1.5 : 1);
}

static void run(const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
}

static void add_session(int number, const double *self_ns, int calls)
{
    char sql[512];
    snprintf(sql, sizeof(sql),
             "INSERT INTO sessions(session_id, uuid, device_id, started_realtime_ns, "
             "started_ticks, tick_ns_numerator, tick_ns_denominator, tags, name) VALUES (%d, "
             "randomblob(16), %d, %d000000000, 0, 1, 1, '{\"side\":\"%s\"}', 'run-%d')",
             number, number % 2 + 1, 1700000000 + number, number % 2 == 0 ? "even" : "odd", number);
    run(sql);
    for (int i = 0; i < FUNCTIONS; ++i) {
        snprintf(sql, sizeof(sql),
                 "INSERT INTO call_paths(path_id, session_id, parent_path_id, function_id, depth, "
                 "recursive, calls, total_ns, self_ns, unwound, untrusted, state) VALUES (%lld, "
                 "%d, %s, %d, %d, 0, %d, %.0f, %.0f, 0, 0, x'00')",
                 (long long)number << 32 | (i + 1), number,
                 i == 0 ? "NULL"
                        : "(SELECT min(path_id) FROM call_paths WHERE session_id = "
                          "(SELECT max(session_id) FROM sessions))",
                 i + 1, i != 0, calls, self_ns[i] * (i == 0 ? FUNCTIONS : 1), self_ns[i]);
        run(sql);
    }
}

static void clear_sessions(void)
{
    run("DELETE FROM call_paths; DELETE FROM marks; DELETE FROM sessions");
}

static int open_database(void **state)
{
    (void)state;
    sj_error error = {0};
    unlink(path);
    unlink("compare_test.db-wal");
    if (sj_database_open(path, SJ_DATABASE_CREATE, &database, &error) != SJ_OK ||
        sj_query_register(database, NULL, &error) != SJ_OK) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    run("PRAGMA synchronous=OFF; INSERT INTO devices(device_id, uuid, name, first_seen_realtime_ns,"
        "last_seen_realtime_ns) VALUES (1, randomblob(16), 'desk', 0, 0), (2, randomblob(16), "
        "'pi', 0, 0); INSERT INTO modules VALUES (1, x'ab', x'cd', '/bin/app', '', 1, 8);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8) INSERT INTO "
        "functions SELECT i, 1, i * 16, 16, 'f' || i, 'f' || i, 1000 + i, '', NULL FROM n");
    return 0;
}

static int close_database(void **state)
{
    (void)state;
    sqlite3_close(database);
    return 0;
}

/* Adds sessions in the order of recording. In every second one, function `slowed` is slower. */
static void add_runs(double slowdown, int slowed, double spread)
{
    run("BEGIN");
    clear_sessions();
    for (int session = 1; session <= SESSIONS; ++session) {
        double self_ns[FUNCTIONS];
        const double run_noise = noise(spread / 2); /* noise of the whole run */
        for (int i = 0; i < FUNCTIONS; ++i) {
            self_ns[i] = 1e6 * (i + 1) * run_noise * noise(spread / 2);
            self_ns[i] *= session % 2 == 0 && i == slowed ? slowdown : 1;
        }
        add_session(session, self_ns, 100);
    }
    run("COMMIT");
}

static sj_compare *compare(const char *a, const char *b, bool tree)
{
    const sj_compare_side sides[2] = {{database, a}, {database, b}};
    const sj_compare_options options = {.tree = tree};
    sj_compare *made = NULL;
    sj_error error = {0};
    if (sj_compare_run(sides, &options, &made, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    return made;
}

static bool says(sj_compare *made, int64_t function_id, sj_compare_verdict verdict)
{
    size_t count;
    const sj_compare_row *rows = sj_compare_rows(made, &count);
    for (size_t i = 0; i < count; ++i) {
        if (rows[i].verdict == verdict &&
            (function_id < 0 || rows[i].function_id[1] == function_id)) {
            return true;
        }
    }
    return false;
}

static void planted_slowdown_is_found_and_named(void **state)
{
    (void)state;
    add_runs(1.1, 5, 0.015);
    sj_compare *made = compare("tag:side=odd", "tag:side=even", false);
    assert_true(says(made, 6, SJ_COMPARE_SLOWER));
    sj_compare_free(made);
}

/* Gives function 6 of each session a histogram: 99 calls that take `typical_ns` each and one call
 * with the rest. Typical time and sum then change independently. */
static void disturb_runs(const double typical_ns[2], const double sum_ns[2])
{
    for (int session = 1; session <= SESSIONS; ++session) {
        const int side = session % 2 == 0;
        const double each = typical_ns[side] * exp(0.002 * (session % 7));
        const double sum = sum_ns[side] * exp(0.002 * (session % 5));
        sj_histogram histogram = {0};
        uint8_t bytes[256];
        assert_int_equal(sj_histogram_add(&histogram, (uint64_t)each, 99), SJ_OK);
        assert_int_equal(sj_histogram_add(&histogram, (uint64_t)(sum - 99 * each), 1), SJ_OK);
        const size_t size = sj_histogram_encode(&histogram, bytes, sizeof(bytes));
        sj_histogram_deinit(&histogram);
        sqlite3_stmt *update;
        assert_int_equal(sqlite3_prepare_v2(database,
                                            "UPDATE call_paths SET total_ns = ?1, self_ns = ?1, "
                                            "histogram = ?2 WHERE path_id = ?3 << 32 | 6",
                                            -1, &update, NULL),
                         SQLITE_OK);
        sqlite3_bind_int64(update, 1, (int64_t)sum);
        sqlite3_bind_blob(update, 2, bytes, (int)size, SQLITE_STATIC);
        sqlite3_bind_int(update, 3, session);
        assert_int_equal(sqlite3_step(update), SQLITE_DONE);
        sqlite3_finalize(update);
    }
}

static void sums_and_typical_times_have_to_agree(void **state)
{
    (void)state;
    const struct {
        double typical_ns[2], sum_ns[2];
        sj_compare_verdict verdict;
    } cases[] = {
        /* one long call, possibly the machine's fault */
        {{50000, 50000}, {8e6, 13e6}, SJ_COMPARE_INCONCLUSIVE},
        {{50000, 50000}, {13e6, 8e6}, SJ_COMPARE_INCONCLUSIVE},
        {{50000, 55000}, {8e6, 8e6}, SJ_COMPARE_SLOWER}, /* the sum hides it */
        {{55000, 50000}, {8e6, 8e6}, SJ_COMPARE_FASTER},
        {{50000, 55000}, {13e6, 8e6}, SJ_COMPARE_INCONCLUSIVE}, /* both say something else */
        {{50000, 55000}, {8e6, 9e6}, SJ_COMPARE_SLOWER},
        {{50000, 50000}, {8e6, 8e6}, SJ_COMPARE_SAME},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        add_runs(1, 0, 0.002);
        disturb_runs(cases[i].typical_ns, cases[i].sum_ns);
        sj_compare *made = compare("tag:side=odd", "tag:side=even", false);
        assert_true(says(made, 6, cases[i].verdict));
        sj_compare_free(made);
    }
}

static void differences_within_the_error_of_estimates_decide_nothing(void **state)
{
    (void)state;
    add_runs(1.3, 5, 0.005); /* 6 ms and 7.8 ms */
    run("INSERT INTO function_stats(session_id, function_id, calls, total_ns, self_ns, unwound, "
        "untrusted, untimed_calls, error_ns) SELECT session_id, 6, 100, 0, 0, 0, 0, 90, 100000 "
        "FROM sessions");
    sj_compare *made = compare("tag:side=odd", "tag:side=even", false);
    assert_true(says(made, 6, SJ_COMPARE_SLOWER));
    sj_compare_free(made);
    run("UPDATE function_stats SET error_ns = 1000000");
    made = compare("tag:side=odd", "tag:side=even", false);
    assert_true(says(made, 6, SJ_COMPARE_INCONCLUSIVE));
    assert_false(says(made, 6, SJ_COMPARE_SLOWER));
    sj_compare_free(made);
    run("DELETE FROM function_stats");
}

static void the_error_of_a_path_is_that_of_its_share(void **state)
{
    (void)state;
    add_runs(1.3, 5, 0.005); /* 6 ms and 7.8 ms in 100 calls; 9900 are elsewhere */
    run("INSERT INTO call_paths(path_id, session_id, parent_path_id, function_id, depth, recursive,"
        " calls, total_ns, self_ns, unwound, untrusted, state) SELECT session_id << 32 | 9, "
        "session_id, session_id << 32 | 2, 6, 2, 0, 9900, 1000, 1000, 0, 0, x'00' FROM sessions;"
        "INSERT INTO function_stats(session_id, function_id, calls, total_ns, self_ns, unwound, "
        "untrusted, untimed_calls, sampled_calls, error_ns) SELECT session_id, 6, 10000, 0, 0, 0, "
        "0, 9000, 1000, 1000000 FROM sessions");
    for (int tree = 0; tree < 2; ++tree) {
        sj_compare *made = compare("tag:side=odd", "tag:side=even", tree != 0);
        assert_int_equal(says(made, 6, SJ_COMPARE_SLOWER), tree);
        assert_int_equal(says(made, 6, SJ_COMPARE_INCONCLUSIVE), !tree);
        sj_compare_free(made);
    }
    run("DELETE FROM function_stats");
}

static void single_sessions_prove_nothing(void **state)
{
    (void)state;
    add_runs(3, 5, 0.01);
    sj_compare *made = compare("1", "2", false);
    assert_false(says(made, -1, SJ_COMPARE_SLOWER));
    assert_true(says(made, 6, SJ_COMPARE_INCONCLUSIVE));
    sj_compare_free(made);
}

static void functions_appear_and_vanish(void **state)
{
    (void)state;
    add_runs(1, 0, 0.01);
    run("DELETE FROM call_paths WHERE function_id = 3 AND session_id % 2 = 0;"
        "DELETE FROM call_paths WHERE function_id = 4 AND session_id % 2 = 1");
    sj_compare *made = compare("tag:side=odd", "tag:side=even", true);
    assert_true(says(made, 0, SJ_COMPARE_REMOVED));
    assert_true(says(made, 4, SJ_COMPARE_ADDED));
    size_t count;
    const sj_compare_row *rows = sj_compare_rows(made, &count);
    assert_int_equal(count, FUNCTIONS + 1);
    for (size_t i = 1; i < count; ++i) {
        assert_true(rows[i].parent < i);
        assert_int_equal(rows[i].depth, rows[i].parent == 0 ? 0 : rows[rows[i].parent].depth + 1);
    }
    sj_compare_free(made);
}

/* If a program ends by exit(), main has no call that ended. */
static void calls_that_did_not_end_make_no_difference(void **state)
{
    (void)state;
    add_runs(1, 0, 0.01);
    run("UPDATE call_paths SET calls = 0, total_ns = 0, self_ns = 0 WHERE function_id = 1");
    for (int tree = 0; tree < 2; ++tree) {
        sj_compare *made = compare("tag:side=odd", "tag:side=odd", tree != 0);
        assert_true(says(made, 1, SJ_COMPARE_MINOR));
        assert_false(says(made, -1, SJ_COMPARE_ADDED) || says(made, -1, SJ_COMPARE_REMOVED));
        sj_compare_free(made);
    }
    run("UPDATE call_paths SET calls = 0, total_ns = 0, self_ns = 0 WHERE function_id IN (3, 6) "
        "AND session_id % 2 = 0; DELETE FROM call_paths WHERE function_id = 3 AND session_id % 2");
    sj_compare *made = compare("tag:side=odd", "tag:side=even", false);
    assert_true(says(made, 6, SJ_COMPARE_INCONCLUSIVE)); /* no call ended in B */
    assert_true(says(made, 3, SJ_COMPARE_ADDED));        /* no call was made in A */
    sj_compare_free(made);
}

static size_t samples_of(const char *set)
{
    sj_session_set found;
    sj_error error = {0};
    if (sj_session_set_read(database, set, SJ_SESSION_SET_MAX_SAMPLES, &found, &error) != SJ_OK) {
        return error.status == SJ_ENOTFOUND ? 0 : SIZE_MAX;
    }
    const size_t count = found.count;
    sj_session_set_deinit(&found);
    return count;
}

static void sets_name_sessions(void **state)
{
    (void)state;
    add_runs(1, 0, 0.01);
    assert_int_equal(samples_of("all"), SESSIONS);
    assert_int_equal(samples_of("last"), 1);
    assert_int_equal(samples_of("last:3"), 3);
    assert_int_equal(samples_of("1,2,2,5"), 3);
    assert_int_equal(samples_of("device:pi"), SESSIONS / 2);
    assert_int_equal(samples_of("device:pi+last:4"), 2);
    assert_int_equal(samples_of("device:pi,device:desk"), SESSIONS);
    assert_int_equal(samples_of("tag:side"), SESSIONS);
    assert_int_equal(samples_of("tag:side=odd+name:run-1*"), 6);
    assert_int_equal(samples_of("since:2023-11-14T22:13:30"), 11);
    assert_int_equal(samples_of("until:2023-11-14T22:13:30"), 9);
    assert_int_equal(samples_of("build:ab"), 0); /* no session loaded it */
    assert_int_equal(samples_of("device:it's; DROP TABLE sessions"), 0);
    assert_int_equal(samples_of("nonsense"), SIZE_MAX);
    assert_int_equal(samples_of(""), SIZE_MAX);
    run("INSERT INTO marks(session_id, number, name, is_end, at_ns) VALUES (1, 1, 'load', 0, 10), "
        "(1, 2, 'load', 1, 20), (1, 3, 'load', 0, 30), (1, 4, 'load', 1, 40), (2, 1, 'x', 0, 1)");
    assert_int_equal(samples_of("mark:load"), 2);
    assert_int_equal(samples_of("mark:load+device:desk"), 0);
}

/* Returns the first number that a statement gives, or -1 if it fails. */
static int64_t number_of(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        number = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return number;
}

/* The verdict uses typical times, so typical times are shown beside it, although the sums fell. */
static void the_numbers_of_a_verdict_are_those_that_decided(void **state)
{
    (void)state;
    add_runs(1, 0, 0.002);
    disturb_runs((double[]){50000, 55000}, (double[]){8.02e6, 8e6});
    assert_int_equal(number_of("SELECT count(*) FROM diff_functions('tag:side=odd', "
                               "'tag:side=even') WHERE name = 'f6' AND verdict = 'slower' AND "
                               "self_ns_b < self_ns_a AND compared_b > compared_a AND decided_by = "
                               "'typical' AND compared_a = typical_ns_a AND abs(1.0 * compared_b / "
                               "compared_a - ratio) < 0.01"),
                     1);
}

static void sessions_that_were_not_added_up_are_refused(void **state)
{
    (void)state;
    add_runs(1, 0, 0.01);
    run("DELETE FROM call_paths WHERE session_id % 2 = 0");
    assert_int_equal(number_of("SELECT count(*) FROM diff_functions('tag:side=odd', "
                               "'tag:side=even') WHERE row = 0 AND verdict = 'removed' AND ratio "
                               "IS NULL"),
                     1); /* B has no calls */
    run("UPDATE sessions SET stored_calls = 5, quarantine_reason = 'block 3 is damaged' WHERE "
        "session_id = 4");
    assert_int_equal(number_of("SELECT count(*) FROM diff_functions('1', '2,4')"), -1);
    assert_non_null(strstr(sqlite3_errmsg(database),
                           "session 4 has calls, but no sums of them: block 3 is damaged"));
}

static void sets_are_tables(void **state)
{
    (void)state;
    add_runs(1, 0, 0.01);
    assert_int_equal(number_of("SELECT count(DISTINCT session_id) FROM session_set('all')"),
                     SESSIONS);
    assert_int_equal(number_of("SELECT count(*) FROM session_set('all') WHERE from_ns IS NULL"),
                     SESSIONS);
    assert_int_equal(number_of("SELECT sum(session_id) FROM session_set('1,2,5')"), 8);
    assert_int_equal(number_of("SELECT count(*) FROM sessions JOIN session_set('device:pi')"
                               " USING (session_id)"),
                     SESSIONS / 2);
    run("INSERT INTO marks(session_id, number, name, is_end, at_ns) VALUES (1, 1, 'load', 0, 10), "
        "(1, 2, 'load', 1, 20), (1, 3, 'load', 0, 30)");
    assert_int_equal(number_of("SELECT from_ns + to_ns FROM session_set('mark:load')"), 30);
    assert_int_equal(number_of("SELECT count(*) FROM session_set('mark:load')"), 2);
    assert_int_equal(number_of("SELECT count(*) FROM session_set('nonsense')"), -1);
    assert_non_null(strstr(sqlite3_errmsg(database), "'nonsense' names no sessions"));
    assert_int_equal(number_of("SELECT count(*) FROM session_set(NULL)"), -1);
    assert_int_equal(number_of("SELECT count(*) FROM session_set('name:nobody')"), -1);
}

static void sql_gives_the_same_verdicts(void **state)
{
    (void)state;
    sqlite3_stmt *statement;
    add_runs(1.3, 5, 0.01);
    assert_int_equal(sqlite3_prepare_v2(database,
                                        "SELECT name, ratio, calls_change FROM diff_functions("
                                        "'tag:side=odd', 'tag:side=even') WHERE verdict = "
                                        "'slower' AND row > 0",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(statement, 0), "f6");
    assert_true(fabs(sqlite3_column_double(statement, 1) - 1.3) < 0.02);
    assert_string_equal(sqlite3_column_text(statement, 2), "same");
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    assert_int_not_equal(
        sqlite3_exec(database, "SELECT * FROM diff_tree('mark:none', 'all')", NULL, NULL, NULL),
        SQLITE_OK);
    assert_non_null(strstr(sqlite3_errmsg(database), "no session belongs to 'mark:none'"));
}

/* Functions 3 and 6 are measured. Wall time differs between the sessions by noise only. */
static void cpu_time_and_memory_of_calls_are_compared(void **state)
{
    (void)state;
    char sql[512];
    sj_error error = {0};
    sj_compare *made = NULL;
    const sj_compare_side sides[2] = {{database, "tag:side=odd"}, {database, "tag:side=even"}};
    for (int of = SJ_COMPARE_CPU; of < SJ_COMPARE_OF; of++) {
        const sj_compare_options options = {.of = (sj_compare_of)of};
        add_runs(1, 0, 0.03);
        assert_int_equal(sj_compare_run(sides, &options, &made, &error), SJ_ENOTFOUND);
        assert_non_null(strstr(error.text, of == SJ_COMPARE_CPU ? "--cpu-time" : "--memory"));
        for (int session = 1; session <= SESSIONS; ++session) {
            snprintf(
                sql, sizeof(sql),
                "UPDATE call_paths SET %s = CASE function_id WHEN 3 THEN 50000 + %d ELSE %d END"
                " WHERE session_id = %d AND function_id IN (3, 6)",
                of == SJ_COMPARE_CPU ? "cpu_self_ns" : "allocated_self_bytes", session,
                (session % 2 == 0 ? 90000 : 60000) + session, session);
            run(sql);
        }
        assert_int_equal(sj_compare_run(sides, &options, &made, &error), SJ_OK);
        assert_true(says(made, 6, SJ_COMPARE_SLOWER));
        assert_true(says(made, 3, SJ_COMPARE_SAME));
        assert_true(says(made, 1, SJ_COMPARE_MINOR)); /* function 1 was not measured */
        sj_compare_free(made);
    }
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database,
                                        "SELECT name, verdict, ratio, cost_a, cost_b FROM "
                                        "diff_functions('tag:side=odd', 'tag:side=even', "
                                        "'allocated') WHERE row > 0 AND verdict = 'more'",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(statement, 0), "f6");
    assert_true(fabs(sqlite3_column_double(statement, 2) - 1.5) < 0.01);
    assert_in_range(sqlite3_column_int(statement, 3), 60001, 60000 + SESSIONS);
    assert_in_range(sqlite3_column_int(statement, 4), 90001, 90000 + SESSIONS);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    assert_int_not_equal(
        sqlite3_exec(database, "SELECT * FROM diff_tree('all', 'all', 'weight')", NULL, NULL, NULL),
        SQLITE_OK);
    assert_non_null(strstr(sqlite3_errmsg(database), "time, cpu or allocated"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_slowdown_is_found_and_named),
        cmocka_unit_test(sums_and_typical_times_have_to_agree),
        cmocka_unit_test(differences_within_the_error_of_estimates_decide_nothing),
        cmocka_unit_test(the_error_of_a_path_is_that_of_its_share),
        cmocka_unit_test(single_sessions_prove_nothing),
        cmocka_unit_test(functions_appear_and_vanish),
        cmocka_unit_test(calls_that_did_not_end_make_no_difference),
        cmocka_unit_test(sets_name_sessions),
        cmocka_unit_test(sets_are_tables),
        cmocka_unit_test(the_numbers_of_a_verdict_are_those_that_decided),
        cmocka_unit_test(sessions_that_were_not_added_up_are_refused),
        cmocka_unit_test(sql_gives_the_same_verdicts),
        cmocka_unit_test(cpu_time_and_memory_of_calls_are_compared),
    };
    return cmocka_run_group_tests(tests, open_database, close_database);
}
