#include "collector-server/forward/forward_calls.h"

#include "collector-server/forward/forward_lab.h"
#include "collector-server/store/sql.h"

#include <string.h>

enum { ID_BYTES = 16, PART_ROWS = 100000 };

typedef struct calls_run {
    const sj_forward_target_kind *kind;
    sj_forward_target *target;
    sj_forward_place place;
    sj_native_rows rows;
    uint64_t calls;
    sj_error *error;
} calls_run;

static sj_status read_place(sqlite3 *database, int64_t session_id, calls_run *run, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    sj_status status = SJ_ENOTFOUND;
    run->place.version = sj_forward_newer_than(0);
    if (sqlite3_prepare_v2(database,
                           "SELECT uuid, started_realtime_ns FROM sessions WHERE session_id = ?1",
                           -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        if (sqlite3_step(row) == SQLITE_ROW && sqlite3_column_bytes(row, 0) == ID_BYTES) {
            sj_forward_place_own(&run->place, sqlite3_column_blob(row, 0));
            run->place.day = sj_forward_day(sqlite3_column_int64(row, 1));
            status = SJ_OK;
        }
    }
    sqlite3_finalize(row);
    return status == SJ_OK
               ? SJ_OK
               : sj_fail(error, status, "there is no session %lld", (long long)session_id);
}

static sj_status write_part(calls_run *run, sj_error *error)
{
    if (sj_native_rows_failed(&run->rows)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (run->rows.rows == 0) {
        return SJ_OK;
    }
    SJ_TRY(run->kind->write(run->target, &sj_forward_calls, &run->rows, error));
    run->calls += run->rows.rows;
    sj_native_rows_clear(&run->rows);
    return SJ_OK;
}

static sj_status send_row(void *context, sqlite3_stmt *row)
{
    calls_run *run = context;
    SJ_TRY(sj_forward_collect_row(&sj_forward_calls, row, &run->place, &run->rows));
    return run->rows.rows >= PART_ROWS ? write_part(run, run->error) : SJ_OK;
}

sj_status sj_forward_calls_send(sqlite3 *database, int64_t session_id,
                                const sj_forward_window *window, const sj_forward_target_kind *kind,
                                sj_forward_target *target, uint64_t *calls, sj_error *error)
{
    calls_run run = {.kind = kind, .target = target, .error = error};
    *calls = 0;
    SJ_TRY(kind->check(target, error));
    SJ_TRY(read_place(database, session_id, &run, error));
    SJ_TRY(sj_function_keys_new(database, &run.place.functions, error));
    sj_status status = sj_sql_each(
        database, sj_forward_calls.select,
        SJ_SQL_INTS(session_id, window->from_ns, window->to_ns != 0 ? window->to_ns : INT64_MAX),
        send_row, &run, error);
    if (status == SJ_OK) {
        status = write_part(&run, error);
    }
    sj_function_keys_free(run.place.functions);
    sj_native_rows_deinit(&run.rows);
    *calls = run.calls;
    return status;
}
