/* Tests the list of devices: it shows the last takeover of each, and its cost grows linearly. */
#include "collector-server/store/database.h"
#include "schema/queries/cli/devices.h"
#include "tests/support/check.h"

#include <unistd.h>

enum { DEVICES = 10000, EVENTS_A_DEVICE = 3, MOST_STEPS_A_ROW = 200 };

/* Each device was taken over in second 1000 and, except the first device, in second 2000. All were
 * enrolled in second 3000. */
static const char fill_sql[] =
    "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
    " INSERT INTO devices (device_id, uuid, name, first_seen_realtime_ns, last_seen_realtime_ns)"
    " SELECT i, CAST(printf('%016d', i) AS BLOB), 'device ' || i, 0, 0 FROM n;"
    "INSERT INTO token_events (device_id, what, realtime_ns)"
    " SELECT device_id, 'enrolled', 3000000000000 FROM devices UNION ALL"
    " SELECT device_id, 'taken over', 1000000000000 FROM devices UNION ALL"
    " SELECT device_id, 'taken over', 2000000000000 FROM devices WHERE device_id > 1; COMMIT";

static sqlite3 *make_database(char path[64])
{
    sqlite3 *database = NULL;
    sj_error error;
    snprintf(path, 64, "device_list_test.%d.db", (int)getpid());
    unlink(path);
    assert_int_equal(sj_database_open(path, SJ_DATABASE_CREATE, &database, &error), SJ_OK);
    assert_int_equal(sqlite3_exec(database, fill_sql, NULL, NULL, NULL), SQLITE_OK);
    return database;
}

/* Counts steps of SQLite's virtual machine, which are the same on every machine. */
static void the_list_grows_with_devices_and_events(void **state)
{
    char path[64];
    int rows = 0;
    int last = 0;
    (void)state;
    sqlite3 *database = make_database(path);
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(database, sj_devices_data_sql, -1, &row, NULL), SQLITE_OK);
    const int note = sqlite3_column_count(row) - 1;
    for (; sqlite3_step(row) == SQLITE_ROW; rows++) {
        const char *text = (const char *)sqlite3_column_text(row, note);
        const bool is_first = sqlite3_column_int(row, 0) == 1;
        assert_string_equal(text, is_first ? "taken over 1970-01-01 00:16:40"
                                           : "taken over 1970-01-01 00:33:20");
        last += !is_first;
    }
    assert_int_equal(rows, DEVICES);
    assert_int_equal(last, DEVICES - 1);
    assert_in_range(sqlite3_stmt_status(row, SQLITE_STMTSTATUS_VM_STEP, 0), DEVICES,
                    DEVICES * (1 + EVENTS_A_DEVICE) * MOST_STEPS_A_ROW);
    sqlite3_finalize(row);
    sqlite3_close(database);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_grows_with_devices_and_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
