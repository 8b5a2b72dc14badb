/* Tests which calls have the same values. All bytes of long values count, although a line shows
 * only their beginning. */
#include "collector-server/cli/tree_values.h"
#include "tests/support/check.h"

#include <stdlib.h>

#define ELLIPSIS "\xe2\x80\xa6"

enum { LONG_BYTES = 3000 };

static void run(sqlite3 *database, const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    }
}

static sqlite3 *new_database(void)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    run(database,
        "CREATE TABLE call_paths (session_id, path_id, parent_path_id, function_id, rare);"
        "CREATE TABLE value_types (session_id, function_id, position, name);"
        "CREATE TABLE calls (session_id, call_id, parent_id, function_id, duration_ns);"
        "CREATE TABLE arguments (session_id, call_id, position, kind, value, note);"
        "INSERT INTO call_paths VALUES (1, 9, NULL, 7, 0);"
        "INSERT INTO value_types VALUES (1, 7, 1, 'text');");
    return database;
}

/* Adds a call with an argument and a result, which are given as SQL. */
static void add_call(sqlite3 *database, int call_id, const char *argument, const char *result)
{
    char *sql = sqlite3_mprintf("INSERT INTO calls VALUES (1, %d, NULL, 7, 10);"
                                "INSERT INTO arguments VALUES (1, %d, 0, 'value', %s, NULL), "
                                "(1, %d, 1, 'value', %s, NULL)",
                                call_id, call_id, result, call_id, argument);
    run(database, sql);
    sqlite3_free(sql);
}

/* Returns a text of repeated `unit`, as SQL, that differs from others only in its end. */
static char *long_text(const char *unit, char end)
{
    return sqlite3_mprintf("replace(hex(zeroblob(%d)), '00', '%s') || '%c'", LONG_BYTES, unit, end);
}

static void long_values_are_compared_to_their_end(void **state)
{
    sj_tree_values *values;
    const sj_path_values *of;
    sj_error error = {0};
    (void)state;
    sqlite3 *database = new_database();
    char *a = long_text("x", 'a');
    char *b = long_text("x", 'b');
    add_call(database, 1, a, "1");
    add_call(database, 2, b, "1");
    add_call(database, 3, b, "2"); /* another result */
    add_call(database, 4, b, "2");
    add_call(database, 5, "1", a);
    add_call(database, 6, "1", b);
    add_call(database, 7, "'short'", "3");
    assert_int_equal(sj_tree_values_read(database, 1, &values, &error), SJ_OK);
    assert_int_equal(sj_tree_values_of(values, 9, &of), 6);
    assert_int_equal(sj_tree_values_left_out(values), 0);
    size_t cut = 0;
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(of[i].calls, i == 0 ? 2 : 1);
        cut += strstr(of[i].text, ELLIPSIS) != NULL ? 1 : 0;
    }
    assert_int_equal(cut, 5);
    assert_string_equal(strstr(of[0].text, ELLIPSIS), ELLIPSIS ") = 2");
    sj_tree_values_free(values);
    sqlite3_free(a);
    sqlite3_free(b);
    sqlite3_close(database);
}

/* Text is cut at any byte. If that is inside a character, no byte of the character stays. */
static void text_is_cut_between_characters(void **state)
{
    static const char *const units[] = {"\xe2\x82\xac", "a\xe2\x82\xac", "aa\xe2\x82\xac"};
    (void)state;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        sj_tree_values *values;
        const sj_path_values *of;
        sj_error error = {0};
        sqlite3 *database = new_database();
        char *text = long_text(units[i], 'a');
        add_call(database, 1, text, "1");
        assert_int_equal(sj_tree_values_read(database, 1, &values, &error), SJ_OK);
        assert_int_equal(sj_tree_values_of(values, 9, &of), 1);
        size_t place = strlen("(text='");
        while (of[0].text[place] == 'a' || strncmp(of[0].text + place, "\xe2\x82\xac", 3) == 0) {
            place += of[0].text[place] == 'a' ? 1 : 3;
        }
        assert_string_equal(of[0].text + place, ELLIPSIS ") = 1");
        assert_in_range(place, 1000, 1023);
        sj_tree_values_free(values);
        sqlite3_free(text);
        sqlite3_close(database);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_values_are_compared_to_their_end),
        cmocka_unit_test(text_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
