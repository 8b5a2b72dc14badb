/* The writer's SQL: each statement of schema/queries/store is prepared once. Run it with its
 * generated functions, at the end of this file.
 *
 * An "error of the database" is SJ_ECORRUPT if a row violates a constraint, else the result of
 * sj_database_status. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STATEMENTS_H
#define SJ_COLLECTOR_SERVER_STORE_STATEMENTS_H

#include "collector-server/store/sql.h"
#include "proto/base/error.h"

#include <sqlite3.h>

typedef enum sj_statement {
#include "collector-server/store/statement_numbers.h"
    SJ_SQL_STATEMENTS
} sj_statement;

typedef struct sj_statements {
    sqlite3 *database; /* borrowed */
    sqlite3_stmt *prepared[SJ_SQL_STATEMENTS];
    bool met_damage; /* SQLite found the file damaged; the code that reads the flag clears it */
} sj_statements;

/* Prepares all statements. Returns SJ_EIO or SJ_ENOMEM, and names the statement that does not
 * fit the schema. */
SJ_MUST_CHECK sj_status sj_statements_prepare(sj_statements *statements, sqlite3 *database,
                                              sj_error *error);
void sj_statements_finalize(sj_statements *statements);

/* Resets a statement and binds its parameters. Returns an error of the database. */
SJ_MUST_CHECK sj_status sj_sql_bind(sj_statements *statements, sj_statement which,
                                    sj_sql_binds binds, sj_error *error);

/* Steps to the next row. Returns SJ_OK if there is a row. Otherwise resets the statement and
 * returns SJ_ENOTFOUND after the last row, or an error of the database. */
SJ_MUST_CHECK sj_status sj_sql_step(sj_statements *statements, sj_statement which, sj_error *error);

/* Binds as sj_sql_bind does, and runs a statement that returns no rows. Returns an error of the
 * database. */
SJ_MUST_CHECK sj_status sj_sql_run(sj_statements *statements, sj_statement which,
                                   sj_sql_binds binds, sj_error *error);

/* Binds, and reads the first column of the first row. Returns SJ_ENOTFOUND if there is no row. */
SJ_MUST_CHECK sj_status sj_sql_get_number(sj_statements *statements, sj_statement which,
                                          sj_sql_binds binds, int64_t *number, sj_error *error);

static inline sqlite3_stmt *sj_sql_row(sj_statements *statements, sj_statement which)
{
    return statements->prepared[which];
}

void sj_sql_reset(sj_statements *statements, sj_statement which);

/* Each statement NAME has these generated functions. If the statement has parameters, the functions
 * take a sj_NAME_binds. The macros SJ_RUN, SJ_START, SJ_GET and SJ_FIND make it from initialisers
 * such as ".session_id = 1".
 *
 *   sj_run_NAME    runs a statement that returns no rows
 *   sj_get_NAME    reads one number as sj_sql_get_number does
 *   sj_start_NAME  binds as sj_sql_bind does
 *   sj_next_NAME   steps to the next row as sj_sql_step does, and reads it
 *   sj_find_NAME   reads the first row. Resets the statement unless the row borrows texts or blobs;
 *                  then the caller resets it */
#include "collector-server/store/statement_functions.h"

#define SJ_RUN(sql, name, error, ...) sj_run_##name(sql, &(sj_##name##_binds){__VA_ARGS__}, error)
#define SJ_START(sql, name, error, ...)                                                            \
    sj_start_##name(sql, &(sj_##name##_binds){__VA_ARGS__}, error)
#define SJ_GET(sql, name, number, error, ...)                                                      \
    sj_get_##name(sql, &(sj_##name##_binds){__VA_ARGS__}, number, error)
#define SJ_FIND(sql, name, row, error, ...)                                                        \
    sj_find_##name(sql, &(sj_##name##_binds){__VA_ARGS__}, row, error)

#endif
