/* The writer's SQL: each statement is prepared once and run by name. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STATEMENTS_H
#define SJ_COLLECTOR_SERVER_STORE_STATEMENTS_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

#include <sqlite3.h>

/* Selects the first free function id of the schema `main`. It ignores ids that the store never
 * assigned. Otherwise a forged file could use up all ids. */
#define SJ_NEXT_FUNCTION_SQL                                                                       \
    "SELECT max(coalesce((SELECT max(first_function_id + function_count) FROM main.modules WHERE"  \
    " first_function_id BETWEEN 1 AND 1 << 60 AND function_count BETWEEN 0 AND 4294967295), 1),"   \
    " coalesce((SELECT max(function_id) + 1 FROM main.functions WHERE function_id <= 1 << 60), "   \
    "1))"

typedef enum sj_statement {
    SJ_SQL_BEGIN,
    SJ_SQL_COMMIT,
    SJ_SQL_ROLLBACK,
    SJ_SQL_SAVEPOINT,
    SJ_SQL_RELEASE,
    SJ_SQL_ROLLBACK_TO,
    SJ_SQL_DEVICE_FIND,
    SJ_SQL_DEVICE_HELLO,
    SJ_SQL_SESSION_FIND,
    SJ_SQL_SESSION_WAS_REMOVED,
    SJ_SQL_SESSION_IS_KEPT,
    SJ_SQL_SESSION_PUT,
    SJ_SQL_SESSION_TOTALS,
    SJ_SQL_SESSION_STALE,
    SJ_SQL_SESSION_LOST,
    SJ_SQL_SESSION_RECEIPT,
    SJ_SQL_SESSION_SILENT_NEXT,
    SJ_SQL_SESSION_LOSE_CONTACT,
    SJ_SQL_MISSING_READ,
    SJ_SQL_HOLE_LIST,
    SJ_SQL_MISSING_FORGET,
    SJ_SQL_MISSING_NOTE,
    SJ_SQL_SESSION_STALE_NEXT,
    SJ_SQL_SESSION_QUARANTINE,
    SJ_SQL_SESSION_END,
    SJ_SQL_PROCESS_PUT,
    SJ_SQL_THREAD_PUT,
    SJ_SQL_STREAM_LINK,
    SJ_SQL_STREAM_ADD,
    SJ_SQL_STREAM_SUMS,
    SJ_SQL_STREAM_END,
    SJ_SQL_STREAM_LAST_BLOCK,
    SJ_SQL_SESSION_LAST_TICKS,
    SJ_SQL_STREAM_LIST,
    SJ_SQL_STREAM_HIGHEST,
    SJ_SQL_MODULE_FIND,
    SJ_SQL_MODULE_DISOWN,
    SJ_SQL_MODULE_NEXT_FUNCTION,
    SJ_SQL_MODULE_ADD,
    SJ_SQL_FUNCTION_ADD,
    SJ_SQL_PLAN_FIND,
    SJ_SQL_PLAN_ADD,
    SJ_SQL_PLAN_FUNCTION_ADD,
    SJ_SQL_SESSION_MODULE_ADD,
    SJ_SQL_SESSION_MODULE_LIST,
    SJ_SQL_PART_ADD,
    SJ_SQL_PART_LIST,
    SJ_SQL_PART_DELETE,
    SJ_SQL_MAPPING_PUT,
    SJ_SQL_REFUSED_ADD,
    SJ_SQL_BLOCK_BEFORE,
    SJ_SQL_BLOCK_FIND,
    SJ_SQL_BLOCK_STACK,
    SJ_SQL_BLOCK_ADD,
    SJ_SQL_OUTLINE_PUT,
    SJ_SQL_BLOCK_UNCOUNTED_LIST,
    SJ_SQL_BLOCK_READ,
    SJ_SQL_BLOCK_QUARANTINE,
    SJ_SQL_REFUSED_NOTE,
    SJ_SQL_BLOCK_KEEP_ASIDE,
    SJ_SQL_BLOCK_IS_ASIDE,
    SJ_SQL_GAP_ADD,
    SJ_SQL_VALUE_ADD,
    SJ_SQL_COST_ADD,
    SJ_SQL_OPEN_CALL_ADD,
    SJ_SQL_MARK_ADD,
    SJ_SQL_CLOCK_ADD,
    SJ_SQL_DEVICE_CLOCK_ADD,
    SJ_SQL_PATH_LIST,
    SJ_SQL_PATH_PUT,
    SJ_SQL_PATH_FORGET,
    SJ_SQL_FUNCTION_STATS_PUT,
    SJ_SQL_ESTIMATE_LIST,
    SJ_SQL_ESTIMATE_PUT,
    SJ_SQL_EDGE_PUT,
    SJ_SQL_POLICY_ADD,
    SJ_SQL_PROFILE_ADD,
    SJ_SQL_DECISION_ADD,
    SJ_SQL_TRIGGER_ADD,
    SJ_SQL_STACK_ADD,
    SJ_SQL_REPORT_ADD,
    SJ_SQL_FIRST_LINES_ADD,
    SJ_SQL_ZOMBIE_PUT,
    SJ_SQL_ZOMBIE_FIND,
    SJ_SQL_ZOMBIE_REPORT_ADD,
    SJ_SQL_ZOMBIE_REPORT_KNOWN,
    SJ_SQL_REPORT_REMOVE,
    SJ_SQL_ZOMBIE_FRAME_ADD,
    SJ_SQL_ZOMBIE_ACCOUNT_KNOWN,
    SJ_SQL_ZOMBIE_ACCOUNT_ADD,
    SJ_SQL_ZOMBIE_EVENT_ADD,
    SJ_SQL_FILTERED_FRAME_ADD,
    SJ_SQL_FILTERED_ADD,
    SJ_SQL_SLOW_LIST,
    SJ_SQL_SLOW_CUT,
    SJ_SQL_SLOW_PUT,
    SJ_SQL_TIMELINE_ADD,
    SJ_SQL_TIMELINE_PATH,
    SJ_SQL_TIMELINE_PATH_LIST,
    SJ_SQL_TIMELINE_PATH_MOVE,
    SJ_SQL_TIMELINE_SUM,
    SJ_SQL_STATEMENTS
} sj_statement;

typedef struct sj_statements {
    sqlite3 *database; /* borrowed */
    sqlite3_stmt *prepared[SJ_SQL_STATEMENTS];
    bool met_damage; /* SQLite found the file damaged; the code that reads the flag clears it */
} sj_statements;

/* Prepares all statements. Returns SJ_EIO, and names the statement that does not fit the schema. */
SJ_MUST_CHECK sj_status sj_statements_prepare(sj_statements *statements, sqlite3 *database,
                                              sj_error *error);
void sj_statements_finalize(sj_statements *statements);

/* Resets a statement and binds one argument per letter of `format`. Returns SJ_ENOMEM or SJ_EIO.
 *
 *   i  int64_t
 *   u  uint64_t; larger values become INT64_MAX
 *   t  const char *; NULL binds null
 *   b  sj_slice *, borrowed until the next reset
 *   s  sj_slice * of text, borrowed until the next reset
 *   o  const int64_t *; NULL binds null */
SJ_MUST_CHECK sj_status sj_sql_bind(sj_statements *statements, sj_statement which, sj_error *error,
                                    const char *format, ...);

/* Steps to the next row. Returns SJ_OK, or SJ_ENOTFOUND after the last row, which also resets the
 * statement, or another error. */
SJ_MUST_CHECK sj_status sj_sql_step(sj_statements *statements, sj_statement which, sj_error *error);

/* Binds as sj_sql_bind does, and runs a statement that returns no rows. */
SJ_MUST_CHECK sj_status sj_sql_run(sj_statements *statements, sj_statement which, sj_error *error,
                                   const char *format, ...);

/* Binds, and reads the first column of the first row. Returns SJ_ENOTFOUND if there is no row. */
SJ_MUST_CHECK sj_status sj_sql_get_number(sj_statements *statements, sj_statement which,
                                          int64_t *number, sj_error *error, const char *format,
                                          ...);

static inline sqlite3_stmt *sj_sql_row(sj_statements *statements, sj_statement which)
{
    return statements->prepared[which];
}

void sj_sql_reset(sj_statements *statements, sj_statement which);

#endif
