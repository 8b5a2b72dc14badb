#include "collector-server/maintenance/session_check.h"

#include "collector-server/store/block_check.h"
#include "collector-server/store/database.h"
#include "collector-server/store/store.h"
#include "schema/queries/maintenance/session_check.h"

#include <stdbool.h>
#include <string.h>

/* A query about session ?1. A row of its result means that the session is inconsistent. */
typedef struct session_rule {
    const char *what;
    const char *sql;
} session_rule;

/* Query that returns a row if a span of ids is too large to be shifted as a whole. */
#define SPAN(column, rows, most)                                                                   \
    "SELECT 1 FROM (SELECT min(" column ") < 0 OR max(" column ") / 2 - min(" column               \
    ") / 2 > " most " AS is_bad FROM " rows ") WHERE is_bad"

static const session_rule rules[] = {
    {"a module has another number of functions than it says", sj_session_check_function_count_sql},
    {"a function is outside of its module", sj_session_check_outside_module_sql},
    {"the functions of its modules share numbers", sj_session_check_shared_numbers_sql},
    {"its clock or its times make no sense",
     "SELECT 1 FROM source.sessions WHERE session_id = ?1 AND (tick_ns_numerator NOT BETWEEN 1 AND"
     " 1 << 62 OR tick_ns_denominator NOT BETWEEN 1 AND 1 << 62 OR clock_step < 0 OR length(uuid)"
     " <> 16)"},
    {"its threads or blocks use up their numbers",
     SPAN("thread_id", "source.threads WHERE session_id = ?1", "(1 << 40)") " UNION ALL " SPAN(
         "block_id", "source.streams JOIN source.blocks USING (stream_id) WHERE session_id = ?1",
         "(1 << 40)")},
    {"a stream belongs to a thread of another session",
     "SELECT 1 FROM source.streams AS s WHERE session_id = ?1 AND (number NOT BETWEEN 1 AND"
     " 4294967295 OR thread_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM source.threads AS t WHERE"
     " t.thread_id = s.thread_id AND t.session_id = ?1))"},
    {"a block's numbers are out of range", sj_session_check_block_range_sql},
    {"a call path is not its own or goes round in a circle", sj_session_check_paths_sql},
    {"it has hook plans of other modules or functions", sj_session_check_strange_plans_sql},
    {"its calls or sums are of functions that it does not have",
     sj_session_check_strange_functions_sql},
    {"its calls refer to call paths that it does not have", sj_session_check_strange_paths_sql},
    {"its calls are of streams that it does not have", sj_session_check_strange_streams_sql},
    {"its sums by call path, function and caller differ (\"sojourn verify --rebuild\" there makes "
     "them anew)",
     sj_session_check_sums_differ_sql},
    {"its sums are of other blocks (\"sojourn verify --rebuild\" there makes them anew)",
     sj_session_check_other_blocks_sql},
};

static sj_status fail_sql(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_errcode(database)),
                   "cannot check the session: %s", sqlite3_errmsg(database));
}

typedef struct check_run {
    sqlite3 *database;
    int64_t session_id;
    sj_block_checker *blocks;
    sj_progress_work work;
    sj_error *error;
} check_run;

static sj_status add_function(void *digest, sqlite3_stmt *row)
{
    const sj_session_check_functions_row function = sj_read_session_check_functions(row);
    sj_store_digest_function(digest, function.offset, (uint32_t)function.size_bytes,
                             function.symbol != NULL ? function.symbol : "");
    return SJ_OK;
}

/* Compares a module's stored digest with the digest of its functions: offsets, sizes, and the
 * symbols that the device sent. */
static sj_status check_digest(void *context, sqlite3_stmt *row)
{
    const check_run *run = context;
    const sj_session_check_digests_row module = sj_read_session_check_digests(row);
    uint64_t digest[2] = SJ_FUNCTIONS_DIGEST_BEGIN;
    SJ_TRY(sj_sql_each(run->database, sj_session_check_functions_sql, SJ_SQL_INTS(module.module_id),
                       add_function, digest, run->error));
    return memcmp(module.functions_digest.data, digest, sizeof(digest)) == 0
               ? SJ_OK
               : sj_fail(run->error, SJ_EINVAL,
                         "session %lld contradicts itself: the functions of a module are not those "
                         "that it is known by",
                         (long long)run->session_id);
}

/* Checks the digests of modules, because later recordings of a program find its module by the
 * digest. */
static sj_status check_digests(sqlite3 *database, int64_t session_id, sj_error *error)
{
    check_run run = {.database = database, .session_id = session_id, .error = error};
    return sj_sql_each(database, sj_session_check_digests_sql, SJ_SQL_INTS(session_id),
                       check_digest, &run, error);
}

/* Tables with numbers that are added up. */
static const char *const measured[] = {
    "sessions", "threads",        "streams", "call_paths", "call_edges",     "slow_calls",
    "timeline", "function_stats", "gaps",    "profiles",   "filtered_calls", "call_costs"};

/* Runs a query about session ?1. Returns SJ_EINVAL if the result has a row, or if SQLite fails on a
 * number, for example by an overflow. */
static sj_status ask(sqlite3 *database, const char *sql, int64_t session_id, const char *what,
                     sj_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return fail_sql(database, error);
    }
    sqlite3_bind_int64(row, 1, session_id);
    const int result = sqlite3_step(row);
    sj_status status = SJ_OK;
    if (result == SQLITE_ROW || result == SQLITE_ERROR) {
        status = sj_fail(error, SJ_EINVAL, "session %lld contradicts itself: %s",
                         (long long)session_id, what);
    } else if (result != SQLITE_DONE) {
        status = fail_sql(database, error);
    }
    sqlite3_finalize(row);
    return status;
}

/* Adds conditions to `sql` that are true if a column has numbers out of range: beyond 62 bits. If
 * it has counts or self times, numbers must also not be negative, and their sum must fit in 62
 * bits. */
static sj_status add_column(void *sql, sqlite3_stmt *row)
{
    const char *column = (const char *)sqlite3_column_text(row, 0);
    sqlite3_str_appendf(sql, " OR max(\"%w\") > 1 << 62 OR min(\"%w\") < -(1 << 62)", column,
                        column);
    if (sqlite3_column_int(row, 1) != 0) {
        sqlite3_str_appendf(sql, " OR min(\"%w\") < 0 OR total(\"%w\") > 1 << 62", column, column);
    }
    return SJ_OK;
}

static sj_status check_numbers(sqlite3 *database, int64_t session_id, const char *table,
                               sj_error *error)
{
    sqlite3_str *sql = sqlite3_str_new(database);
    sqlite3_str_appendall(sql, "SELECT 1 FROM (SELECT 0");
    const sj_status listed =
        sj_sql_each(database,
                    "SELECT name, name IN ('calls', 'events', 'self_ns') FROM"
                    " pragma_table_info(?1) WHERE type = 'INTEGER' AND name NOT LIKE '%\\_id'"
                    " ESCAPE '\\' AND name <> 'flags' ORDER BY cid",
                    SJ_SQL_TEXT(table), add_column, sql, error);
    sqlite3_str_appendf(sql, " AS is_bad FROM source.\"%w\" WHERE %s) WHERE is_bad", table,
                        strcmp(table, "timeline") == 0
                            ? "stream_id IN (SELECT stream_id FROM source.streams WHERE session_id"
                              " = ?1)"
                            : "session_id = ?1");
    char *text = sqlite3_str_finish(sql);
    if (listed != SJ_OK || text == NULL) {
        sqlite3_free(text);
        return listed != SJ_OK ? listed : sj_fail(error, SJ_ENOMEM, "no memory to check a session");
    }
    char *what = sqlite3_mprintf("numbers of its %s are out of range", table);
    const sj_status status =
        ask(database, text, session_id, what != NULL ? what : "out of range", error);
    sqlite3_free(what);
    sqlite3_free(text);
    return status;
}

/* The rows that belong to session ?1, by the column that says so. */
static const char *const owners[][2] = {
    {"session_id", "= ?1"},
    {"stream_id", "IN (SELECT stream_id FROM source.streams WHERE session_id = ?1)"},
    {"report_id", "IN (SELECT report_id FROM source.reports WHERE session_id = ?1)"},
    {"module_id", "IN (SELECT module_id FROM source.session_modules WHERE session_id = ?1)"},
    {"hook_plan_id", "IN (SELECT hook_plan_id FROM source.session_modules WHERE session_id = ?1)"},
    {"function_id", "IN (SELECT function_id FROM source.session_modules JOIN source.functions USING"
                    " (module_id) WHERE session_id = ?1)"},
    {"zombie_id", "IN (SELECT zombie_id FROM source.zombie_reports WHERE session_id = ?1)"},
    {"device_id", "= (SELECT device_id FROM source.sessions WHERE session_id = ?1)"}};

static const char *rows_by(const char *owner)
{
    size_t i = 0;
    while (i + 1 < sizeof(owners) / sizeof(owners[0]) && strcmp(owners[i][0], owner) != 0) {
        ++i;
    }
    return owners[i][1];
}

/* Refuses rows with the same unique key. The copy would fail half done, or drop one of them. */
static sj_status check_key(void *context, sqlite3_stmt *row)
{
    const check_run *run = context;
    const sj_session_check_keys_row key = sj_read_session_check_keys(row);
    char *sql = sqlite3_mprintf("SELECT 1 FROM source.\"%w\" WHERE %s %s AND %s GROUP BY %s"
                                " HAVING count(*) > 1",
                                key.name, key.owner, rows_by(key.owner), key.are_set, key.columns);
    char *what =
        sqlite3_mprintf("two rows of its %s have the same numbers (%s)", key.name, key.columns);
    const sj_status status = sql != NULL && what != NULL
                                 ? ask(run->database, sql, run->session_id, what, run->error)
                                 : sj_fail(run->error, SJ_ENOMEM, "no memory to check a session");
    sqlite3_free(sql);
    sqlite3_free(what);
    return status;
}

static sj_status check_keys(sqlite3 *database, int64_t session_id, sj_error *error)
{
    check_run run = {.database = database, .session_id = session_id, .error = error};
    return sj_sql_each(database, sj_session_check_keys_sql, (sj_sql_binds){0}, check_key, &run,
                       error);
}

static sj_status check_block(void *context, sqlite3_stmt *row)
{
    const check_run *run = context;
    const int64_t block_id = sqlite3_column_int64(row, 0);
    sj_block_verdict verdict;
    const sj_status status = sj_block_checker_check(run->blocks, block_id, &verdict);
    if (status != SJ_OK) {
        return sj_fail(run->error, status, "block %lld cannot be checked: %s", (long long)block_id,
                       sj_status_text(status));
    }
    sj_progress_step(run->work);
    return verdict.fault == NULL || !verdict.has_bytes
               ? SJ_OK
               : sj_fail(run->error, SJ_EINVAL,
                         "session %lld contradicts itself: block %lld is unsound: %s (\"sojourn "
                         "verify\" marks such blocks there; marked ones are copied as they are)",
                         (long long)run->session_id, (long long)block_id, verdict.fault);
}

/* Checks the bytes of the blocks that queries read. */
static sj_status check_blocks(sqlite3 *database, int64_t session_id, sj_progress_work work,
                              sj_error *error)
{
    check_run run = {.session_id = session_id, .work = work, .error = error};
    SJ_TRY(sj_block_checker_new(database, "source", &run.blocks, error));
    const sj_status status = sj_sql_each(database, sj_session_check_blocks_sql,
                                         SJ_SQL_INTS(session_id), check_block, &run, error);
    sj_block_checker_free(run.blocks);
    return status;
}

sj_status sj_session_check(sqlite3 *database, int64_t session_id, sj_progress_work work,
                           sj_error *error)
{
    SJ_TRY(check_keys(database, session_id, error));
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); ++i) {
        SJ_TRY(check_numbers(database, session_id, measured[i], error));
    }
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); ++i) {
        SJ_TRY(ask(database, rules[i].sql, session_id, rules[i].what, error));
    }
    SJ_TRY(check_digests(database, session_id, error));
    return check_blocks(database, session_id, work, error);
}
