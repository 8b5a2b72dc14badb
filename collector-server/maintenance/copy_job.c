#include "collector-server/maintenance/copy_job.h"

#include "collector-server/store/database.h"

sj_status sj_copy_fail(const sj_copy_job *copy, const char *what)
{
    const int result = sqlite3_extended_errcode(copy->target);
    return sj_fail(copy->error, sj_database_status(result), "cannot copy the session (%s): %s",
                   what, sqlite3_errmsg(copy->target));
}

sj_status sj_copy_run(const sj_copy_job *copy, const char *what, const char *sql)
{
    return sqlite3_exec(copy->target, sql, NULL, NULL, NULL) == SQLITE_OK
               ? SJ_OK
               : sj_copy_fail(copy, what);
}

sj_status sj_copy_run_made(const sj_copy_job *copy, const char *what, char *sql)
{
    if (sql == NULL) {
        return sj_fail(copy->error, SJ_ENOMEM, "no memory for copying a session");
    }
    const sj_status status = sj_copy_run(copy, what, sql);
    sqlite3_free(sql);
    return status;
}

sj_status sj_copy_number(const sj_copy_job *copy, const char *sql, int64_t *number)
{
    sqlite3_stmt *statement = NULL;
    sj_status status = SJ_OK;
    if (sqlite3_prepare_v2(copy->target, sql, -1, &statement, NULL) != SQLITE_OK) {
        return sj_copy_fail(copy, "reading");
    }
    if (sqlite3_bind_parameter_count(statement) > 0) {
        sqlite3_bind_int64(statement, 1, copy->from);
    }
    if (sqlite3_step(statement) == SQLITE_ROW) {
        *number = sqlite3_column_int64(statement, 0);
    } else {
        status = SJ_ENOTFOUND;
    }
    sqlite3_finalize(statement);
    return status;
}
