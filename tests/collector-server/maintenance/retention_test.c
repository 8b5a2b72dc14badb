/* Tests which sessions the rules of retention remove: the oldest first, no kept one, each once. */
#include "collector-server/maintenance/retention.h"
#include "collector-server/query/query.h"
#include "collector-server/query/session_set.h"
#include "collector-server/sojournd/retainer.h"
#include "collector-server/store/database.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_S = 3600, TEXT_BYTES = 128, SQL_BYTES = 512 };

typedef struct lab {
    char folder[64];
    char path[96];
    sqlite3 *database;
} lab;

static void run(lab *made, const char *sql)
{
    char *problem = NULL;
    if (sqlite3_exec(made->database, sql, NULL, NULL, &problem) != SQLITE_OK) {
        fail_msg("%s: %s", sql, problem);
    }
}

/* Adds sessions of 1 KiB. Session N came 7 - N hours and 30 minutes ago. */
static void add_sessions(lab *made)
{
    run(made, "INSERT INTO devices(device_id, uuid, name, first_seen_realtime_ns,"
              " last_seen_realtime_ns) VALUES (1, zeroblob(16), 'desk', 1, 1)");
    for (int id = 1; id <= 6; id++) {
        char sql[SQL_BYTES];
        snprintf(sql, sizeof(sql),
                 "INSERT INTO sessions(session_id, uuid, device_id, state, command,"
                 " received_realtime_ns, started_ticks, tick_ns_numerator, tick_ns_denominator,"
                 " stored_bytes, pinned, started_realtime_ns) VALUES (%d, randomblob(16), 1, '%s',"
                 " './app', %lld000000000, 0, 1, 1, 1024, %d, %d)",
                 id, id == 4 ? "recording" : "completed",
                 (long long)time(NULL) - (7 - id) * HOUR_S - HOUR_S / 2, id == 2,
                 100 - id); /* sent by a device whose clock shows 1970 */
        run(made, sql);
    }
    run(made, "INSERT INTO annotations(session_id, note, created_realtime_ns) VALUES (5, 'x', 1)");
    run(made, "INSERT INTO marks(session_id, number, name, is_end, at_ns) VALUES"
              " (3, 1, 'work', 0, 10), (3, 2, 'work', 1, 20), (3, 3, 'work', 0, 30),"
              " (6, 1, 'work', 0, 10)");
}

static int make_lab(void **state)
{
    static lab made;
    sj_error error = {0};
    made = (lab){.folder = "/tmp/sj_retention_XXXXXX"};
    if (mkdtemp(made.folder) == NULL) {
        return -1;
    }
    snprintf(made.path, sizeof(made.path), "%s/lab.db", made.folder);
    if (sj_database_open(made.path, SJ_DATABASE_CREATE, &made.database, &error) != SJ_OK ||
        sj_query_register(made.database, NULL, &error) != SJ_OK) {
        return -1;
    }
    add_sessions(&made);
    *state = &made;
    return 0;
}

static int remove_lab(void **state)
{
    char command[TEXT_BYTES];
    lab *made = *state;
    sqlite3_close(made->database);
    snprintf(command, sizeof(command), "rm -rf %s", made->folder);
    return system(command);
}

static bool note_and_keep(void *context, int64_t session_id, int64_t bytes)
{
    char *due = context;
    const size_t used = strlen(due);
    assert_int_equal(bytes, 1024);
    snprintf(due + used, TEXT_BYTES - used, "%lld ", (long long)session_id);
    return false;
}

static void expect_due(lab *made, const char *text, const char *expected)
{
    char due[TEXT_BYTES] = "";
    int64_t removed = -1;
    sj_retention_rule rule;
    sj_error error = {0};
    assert_int_equal(sj_retention_rule_read(text, &rule, &error), SJ_OK);
    if (sj_retention_apply(made->database, &rule, note_and_keep, due, &removed, &error) != SJ_OK) {
        fail_msg("%s: %s", text, error.text);
    }
    assert_int_equal(removed, 0);
    if (strcmp(due, expected) != 0) {
        fail_msg("%s: %s instead of %s", text, due, expected);
    }
}

/* Kept sessions count for the size. */
static void the_oldest_sessions_are_removed_until_the_rest_fits(void **state)
{
    expect_due(*state, "all=6K", "");
    expect_due(*state, "all=5K", "1 ");
    expect_due(*state, "all=4K", "1 3 ");
    expect_due(*state, "all=1K", "1 3 6 ");
}

static void older_sessions_are_removed_unless_they_are_kept(void **state)
{
    expect_due(*state, "all=7h", "");
    expect_due(*state, "all=6h", "1 ");
    expect_due(*state, "all=4h", "1 3 ");
    expect_due(*state, "all=10m", "1 3 6 ");
    expect_due(*state, "mark:work=4h", "3 ");
    expect_due(*state, "tag:none=10m", "");
}

static void a_session_with_two_marks_counts_once(void **state)
{
    expect_due(*state, "mark:work=2K", "");
    expect_due(*state, "mark:work=1K", "3 ");
    expect_due(*state, "mark:work=10m", "3 6 ");
}

static bool count_and_keep(void *context, int64_t session_id, int64_t bytes)
{
    (void)session_id;
    (void)bytes;
    ++*(int *)context;
    return false;
}

/* There are more sessions than a query may name, because retention is meant for a full lab. */
static void a_set_may_have_any_number_of_sessions(void **state)
{
    enum { MANY = SJ_SESSION_SET_MAX_SAMPLES + 100 };
    lab *made = *state;
    sj_retention_rule rule;
    sj_error error = {0};
    char sql[SQL_BYTES];
    int64_t removed = -1;
    int due = 0;
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " INSERT INTO sessions(session_id, uuid, device_id, state, command,"
             " started_realtime_ns, started_ticks, tick_ns_numerator, tick_ns_denominator)"
             " SELECT i, randomblob(16), 1, 'completed', './app', 1, 0, 1, 1 FROM n",
             99 + MANY);
    run(made, sql);
    assert_int_equal(sj_retention_rule_read("all=24h", &rule, &error), SJ_OK);
    assert_int_equal(
        sj_retention_apply(made->database, &rule, count_and_keep, &due, &removed, &error), SJ_OK);
    assert_int_equal(due, MANY);
}

static void a_removed_session_leaves_its_reason(void **state)
{
    lab *made = *state;
    sj_retention_rule rule;
    sj_error error = {0};
    sqlite3_stmt *row = NULL;
    int64_t removed = 0;
    assert_int_equal(sj_retention_rule_read("mark:work=1K", &rule, &error), SJ_OK);
    assert_int_equal(sj_retention_apply(made->database, &rule, NULL, NULL, &removed, &error),
                     SJ_OK);
    assert_int_equal(removed, 1);
    assert_int_equal(sqlite3_prepare_v2(made->database,
                                        "SELECT reason, (SELECT group_concat(session_id, ' ') FROM"
                                        " sessions WHERE state <> 'removing') FROM removals",
                                        -1, &row, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(row, 0), "retention: size of mark:work");
    assert_string_equal(sqlite3_column_text(row, 1), "1 2 4 5 6");
    assert_int_equal(sqlite3_step(row), SQLITE_DONE);
    sqlite3_finalize(row);
}

static bool is_there(lab *made, int session_id)
{
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(made->database,
                                        "SELECT count(*) FROM sessions WHERE session_id = ?1 AND"
                                        " state <> 'removing'",
                                        -1, &row, NULL),
                     SQLITE_OK);
    sqlite3_bind_int(row, 1, session_id);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const bool is_found = sqlite3_column_int(row, 0) != 0;
    sqlite3_finalize(row);
    return is_found;
}

/* The collector's thread runs the rules. */
static void a_rule_that_fails_holds_up_no_other(void **state)
{
    enum { PATIENCE = 12000, PAUSE_US = 10000 };
    static const char *const texts[] = {"nonsense:x=1K", "all=3K"};
    lab *made = *state;
    sj_retention_rule rules[2];
    sj_retainer *retainer = NULL;
    sj_error error = {0};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sj_retention_rule_read(texts[i], &rules[i], &error), SJ_OK);
    }
    assert_int_equal(sj_retainer_start(made->path, rules, 2, HOUR_S, &retainer, &error), SJ_OK);
    for (int i = 0; i < PATIENCE && is_there(made, 6); i++) {
        usleep(PAUSE_US);
    }
    sj_retainer_stop(retainer);
    assert_false(is_there(made, 1) || is_there(made, 6));
    assert_true(is_there(made, 2));
}

static void a_limit_has_a_unit(void **state)
{
    static const char *const wrong[] = {"", "all", "=1K", "all=", "all=5", "all=0d", "all=1x"};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        sj_retention_rule rule;
        sj_error error = {0};
        assert_int_equal(sj_retention_rule_read(wrong[i], &rule, &error), SJ_EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_sessions_are_removed_until_the_rest_fits),
        cmocka_unit_test(older_sessions_are_removed_unless_they_are_kept),
        cmocka_unit_test(a_session_with_two_marks_counts_once),
        cmocka_unit_test(a_limit_has_a_unit),
        cmocka_unit_test(a_removed_session_leaves_its_reason), /* these change the sessions */
        cmocka_unit_test(a_rule_that_fails_holds_up_no_other),
        cmocka_unit_test(a_set_may_have_any_number_of_sessions),
    };
    return cmocka_run_group_tests(tests, make_lab, remove_lab);
}
