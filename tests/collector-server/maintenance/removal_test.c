/* The cost of removing a session depends on its own size only, not on the other sessions. The
 * writer waits for a few rows at a time. */
#include "collector-server/maintenance/removal.h"

#include "collector-server/store/database.h"
#include "tests/collector-server/store/lab_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { FEW = 4, MANY = 40, EVENTS = 200, OWN_FUNCTIONS = 5000, ROWS_AT_ONCE = 1000 };

/* The work of one removal. */
typedef struct effort {
    uint64_t steps;                 /* steps of SQLite's virtual machine */
    unsigned rows_in_a_transaction; /* maximum, of the rows that SQLite reports */
    unsigned rows;                  /* rows in this transaction */
} effort;

static int count_step(void *context)
{
    ((effort *)context)->steps++;
    return 0;
}

static void count_row(void *context, int what, const char *database, const char *table,
                      sqlite3_int64 row)
{
    (void)what;
    (void)database;
    (void)table;
    (void)row;
    ((effort *)context)->rows++;
}

static int end_transaction(void *context)
{
    effort *used = context;
    if (used->rows > used->rows_in_a_transaction) {
        used->rows_in_a_transaction = used->rows;
    }
    used->rows = 0;
    return 0;
}

static unsigned trims;

/* Counts instead of trimming, which the sanitizers' allocator does not do. */
int __wrap_malloc_trim(size_t pad);
int __wrap_malloc_trim(size_t pad)
{
    (void)pad;
    trims++;
    return 1;
}

/* Makes sessions 1 to `count`, each with its own module. The module of the first has many
 * functions. */
static void make_sessions(lab_file *lab, uint32_t count)
{
    for (uint32_t i = 1; i <= count; ++i) {
        frame_maker_deinit(&lab->maker);
        frame_maker_init(&lab->maker, 1);
        lab->maker.session_number = i;
        lab->maker.function_count = i == 1 ? OWN_FUNCTIONS : FRAME_MAKER_FUNCTIONS + i;
        lab_file_put_metadata(lab);
        lab_file_begin(lab);
        lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, SJ_BLOCK_LAST));
        lab_file_put(lab, frame_maker_end(&lab->maker));
        lab_file_commit(lab);
    }
    lab_file_run(lab,
                 "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 40)"
                 " INSERT INTO threads(session_id, number) SELECT session_id, i FROM sessions, n;"
                 "INSERT INTO streams(session_id, number, thread_id) SELECT session_id, number,"
                 " thread_id FROM threads WHERE number > 1;"
                 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)"
                 " INSERT INTO session_modules SELECT session_id, number + i, module_id,"
                 " hook_plan_id, first_function, function_count, hooked_count, path FROM"
                 " session_modules, n;"
                 "INSERT INTO filtered_calls SELECT session_id, function_id, 'share', 1, 1 FROM"
                 " function_stats");
}

static effort remove_one(const lab_file *lab, int64_t session_id)
{
    effort used = {0};
    sqlite3 *database = NULL;
    sj_error error;
    assert_int_equal(sj_database_open(lab->path, SJ_DATABASE_WRITE, &database, &error), SJ_OK);
    sqlite3_progress_handler(database, 1, count_step, &used);
    sqlite3_update_hook(database, count_row, &used);
    sqlite3_commit_hook(database, end_transaction, &used);
    assert_int_equal(sj_session_remove(database, session_id, "test", false, &error), SJ_OK);
    sqlite3_close(database);
    return used;
}

static effort remove_of(uint32_t count, int64_t session_id)
{
    void *state = NULL;
    lab_file_set_up(&state);
    lab_file *lab = state;
    char rest[64];
    make_sessions(lab, count);
    const effort used = remove_one(lab, session_id);
    snprintf(rest, sizeof(rest), "%u|%u|\n", count - 1, (count - 1) * 40);
    lab_file_expect(lab, "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM streams)",
                    rest);
    /* its module was removed with it; those of the others are unchanged */
    lab_file_expect(lab,
                    "SELECT count(*) = (SELECT count(*) FROM sessions), sum(function_count) ="
                    " (SELECT count(*) FROM functions) FROM modules",
                    "1|1|\n");
    lab_file_tear_down(&state);
    return used;
}

static void check_alike(const char *what, effort among_few, effort among_many)
{
    if (among_many.steps > among_few.steps + among_few.steps / 4) {
        fail_msg("%s: %llu steps among %d sessions, %llu among %d", what,
                 (unsigned long long)among_few.steps, FEW, (unsigned long long)among_many.steps,
                 MANY);
    }
}

static void the_cost_of_a_removal_is_independent_of_other_sessions(void **state)
{
    (void)state;
    check_alike("a session of many threads", remove_of(FEW, 3), remove_of(MANY, 3));
    check_alike("a session of many functions", remove_of(FEW, 1), remove_of(MANY, 1));
}

static void functions_of_no_session_are_removed_in_pieces(void **state)
{
    (void)state;
    const effort used = remove_of(FEW, 1);
    assert_int_equal(used.rows_in_a_transaction, ROWS_AT_ONCE);
}

static void a_removal_gives_freed_memory_back(void **state)
{
    (void)state;
    trims = 0;
    (void)remove_of(FEW, 3);
    assert_int_equal(trims, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cost_of_a_removal_is_independent_of_other_sessions),
        cmocka_unit_test(functions_of_no_session_are_removed_in_pieces),
        cmocka_unit_test(a_removal_gives_freed_memory_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
