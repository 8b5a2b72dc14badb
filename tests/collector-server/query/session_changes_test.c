/* Changes of sessions are reported once, also if memory is short meanwhile. */
#include "collector-server/query/session_changes.h"

#include "collector-server/query/query.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int set_up(void **state)
{
    lab_file_set_up(state);
    lab_file_put_metadata(*state);
    return 0;
}

static void a_change_is_reported_after_memory_was_short(void **state)
{
    lab_file *lab = *state;
    sqlite3 *database = NULL;
    bool has_failed = true;
    uint64_t later = 0;
    assert_int_equal(sj_database_open_reader(lab->path, &database, &lab->error), SJ_OK);
    sj_session_changes *changes = sj_session_changes_new();
    assert_non_null(changes);
    json_decref(sj_session_changes_poll(changes, database));
    for (unsigned n = 0; has_failed; n++) {
        char sql[96];
        snprintf(sql, sizeof(sql), "UPDATE sessions SET name = 'name %u'", n);
        lab_file_run(lab, sql);
        fail_alloc_at(n);
        json_t *reply = sj_session_changes_poll(changes, database);
        has_failed = fail_alloc_stop();
        if (reply == NULL) {
            reply = sj_session_changes_poll(changes, database);
            later++;
        }
        const json_t *items = json_object_get(reply, "items");
        assert_int_equal(json_array_size(items), 1);
        snprintf(sql, sizeof(sql), "name %u", n);
        assert_string_equal(json_string_value(json_object_get(json_array_get(items, 0), "name")),
                            sql);
        json_decref(reply);
    }
    assert_true(later > 10);
    sj_session_changes_free(changes);
    sqlite3_close(database);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_change_is_reported_after_memory_was_short, set_up,
                                        lab_file_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
