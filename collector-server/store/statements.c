#include "collector-server/store/statements.h"

#include "collector-server/store/database.h"

#include "collector-server/store/statement_texts.inc"

sj_status sj_statements_prepare(sj_statements *statements, sqlite3 *database, sj_error *error)
{
    *statements = (sj_statements){.database = database};
    for (int i = 0; i < SJ_SQL_STATEMENTS; ++i) {
        const int result = sqlite3_prepare_v3(database, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                              &statements->prepared[i], NULL);
        if (result != SQLITE_OK) {
            return sj_fail(error, sj_database_status(result), "cannot prepare %.80s: %s", texts[i],
                           sqlite3_errmsg(database));
        }
    }
    return SJ_OK;
}

void sj_statements_finalize(sj_statements *statements)
{
    for (int i = 0; i < SJ_SQL_STATEMENTS; ++i) {
        sqlite3_finalize(statements->prepared[i]);
        statements->prepared[i] = NULL;
    }
}

static sj_status fail(sj_statements *statements, int result, sj_error *error)
{
    /* forged frames and damaged rows violate constraints; a full disk does not */
    const bool is_constraint = (result & 0xff) == SQLITE_CONSTRAINT;
    statements->met_damage = statements->met_damage || sj_database_is_damaged(result);
    return sj_fail(error, is_constraint ? SJ_ECORRUPT : sj_database_status(result),
                   "the database refused: %s", sqlite3_errmsg(statements->database));
}

sj_status sj_sql_bind(sj_statements *statements, sj_statement which, sj_sql_binds binds,
                      sj_error *error)
{
    sqlite3_reset(statements->prepared[which]);
    const int result = sj_sql_bind_values(statements->prepared[which], binds);
    return result == SQLITE_OK ? SJ_OK : fail(statements, result, error);
}

sj_status sj_sql_step(sj_statements *statements, sj_statement which, sj_error *error)
{
    const int result = sqlite3_step(statements->prepared[which]);
    if (result == SQLITE_ROW) {
        return SJ_OK;
    }
    const sj_status status = result == SQLITE_DONE ? SJ_ENOTFOUND : fail(statements, result, error);
    sqlite3_reset(statements->prepared[which]);
    return status;
}

sj_status sj_sql_run(sj_statements *statements, sj_statement which, sj_sql_binds binds,
                     sj_error *error)
{
    sqlite3_stmt *statement = statements->prepared[which];
    int result = sj_sql_bind_values(statement, binds);
    if (result == SQLITE_OK) {
        result = sqlite3_step(statement);
    }
    sj_status status = SJ_OK;
    if (result != SQLITE_DONE && result != SQLITE_ROW) {
        status = fail(statements, result, error);
    }
    sqlite3_reset(statement);
    return status;
}

sj_status sj_sql_get_number(sj_statements *statements, sj_statement which, sj_sql_binds binds,
                            int64_t *number, sj_error *error)
{
    const int result = sj_sql_bind_values(statements->prepared[which], binds);
    if (result != SQLITE_OK) {
        return fail(statements, result, error);
    }
    SJ_TRY(sj_sql_step(statements, which, error));
    *number = sqlite3_column_int64(statements->prepared[which], 0);
    sqlite3_reset(statements->prepared[which]);
    return SJ_OK;
}

void sj_sql_reset(sj_statements *statements, sj_statement which)
{
    sqlite3_reset(statements->prepared[which]);
}
