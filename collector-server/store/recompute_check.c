/* Design notes
 *
 * Temporary tables shadow the tables of the same names that rebuilding a session changes
 * (rebuild.c). So the same statements recompute the aggregates without writing to the file.
 * SQLite resolves a name without a schema to `temp` first, and prepares all statements again
 * when that changes. Each session is checked in one read transaction, which is rolled back. It
 * shows the blocks and the aggregates of one moment.
 *
 * Replaying is deterministic, so every difference is an error, except for slow calls. Of equally
 * long calls, the first ones are kept (slow_calls.h). But the order in which blocks of several
 * threads came is not stored. So only the durations of such calls are compared. Slow calls are
 * not compared at all if the functions of a session have more of them than the session keeps. */
#include "collector-server/store/recompute_check.h"

#include "collector-server/store/database.h"
#include "collector-server/store/store_internal.h"
#include "collector-server/store/verify.h"
#include "proto/base/progress.h"
#include "proto/callgraph/slow_calls.h"
#include "schema/queries/checks/recompute_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shadowed_table {
    const char *name;
    const char *copied;   /* condition: rows to copy into the shadow; NULL: none */
    const char *compared; /* columns; NULL: the table is not compared */
    const char *own;      /* condition: rows of the session ?1 */
} shadowed_table;

#define OF_SESSION "session_id = ?1"
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define SLOW_OF_FUNCTION 5
#define SLOW_OF_SESSION 4096
_Static_assert(SLOW_OF_FUNCTION == SJ_SLOW_CALLS_A_FUNCTION, "as SQL says");
_Static_assert(SLOW_OF_SESSION == SJ_SLOW_CALLS_A_SESSION, "as SQL says");
/* True for a call whose length no other call has, not even one that was no longer kept. */
#define HAS_LENGTH_ALONE                                                                           \
    "count(*) OVER (PARTITION BY function_id, duration_ns) = 1 AND"                                \
    " (duration_ns > min(duration_ns) OVER (PARTITION BY function_id)"                             \
    " OR count(*) OVER (PARTITION BY function_id) < " TEXT(SLOW_OF_FUNCTION) ")"
#define ALL_SLOW_CALLS_ARE_KEPT                                                                    \
    "(SELECT sum(min(calls, " TEXT(SLOW_OF_FUNCTION) ")) FROM main.function_stats"                 \
                                                     " WHERE session_id = ?1) <= " TEXT(           \
                                                         SLOW_OF_SESSION)
#define OF_STREAMS "stream_id IN (SELECT stream_id FROM main.streams WHERE session_id = ?1)"

static const shadowed_table shadowed[] = {
    {"sessions", OF_SESSION, NULL, NULL},
    {"forwarded_sessions", NULL, NULL, NULL},
    {"gaps", OF_SESSION, NULL, NULL},
    {"streams", OF_SESSION, "stream_id, calls, first_enter_ns, last_leave_ns, max_depth",
     OF_SESSION},
    {"block_outlines", OF_STREAMS, NULL, NULL},
    {"call_paths", NULL,
     "path_id, parent_path_id, function_id, calls, total_ns, self_ns, min_ns, max_ns", OF_SESSION},
    {"function_stats", NULL, "function_id, calls, total_ns, self_ns, min_ns, max_ns", OF_SESSION},
    {"call_edges", NULL, "caller_function_id, callee_function_id, calls, total_ns, self_ns",
     OF_SESSION},
    {"slow_calls", NULL,
     "function_id, place, duration_ns, CASE WHEN " HAS_LENGTH_ALONE
     " THEN json_array(call_id, path_id, start_ns, self_ns) END",
     OF_SESSION " AND " ALL_SLOW_CALLS_ARE_KEPT},
    {"timeline", NULL, "stream_id, level, number, start_ns, end_ns, calls, max_depth", OF_STREAMS},
};

enum { TABLES = sizeof(shadowed) / sizeof(shadowed[0]) };

static sj_status fail(const sj_store *store, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_errcode(store->database)),
                   "aggregates cannot be recomputed: %s", sqlite3_errmsg(store->database));
}

static sj_status run_sql(sj_store *store, const char *sql, sj_error *error)
{
    return sqlite3_exec(store->database, sql, NULL, NULL, NULL) == SQLITE_OK ? SJ_OK
                                                                             : fail(store, error);
}

/* Runs a statement about the session, and returns the first column as a number, or 0 if no row
 * matches. */
static sj_status ask(sj_store *store, const char *sql, int64_t session_id, int64_t *number,
                     sj_error *error)
{
    *number = 0;
    const sj_status status =
        sj_sql_number(store->database, sql, SJ_SQL_INTS(session_id), number, error);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

typedef struct shadow_making {
    sj_store *store;
    sj_error *error;
} shadow_making;

/* Changes the SQL of a row, which creates a table or an index of main, to create it in temp. */
static sj_status create_shadow(void *context, sqlite3_stmt *row)
{
    const shadow_making *making = context;
    const char *sql = (const char *)sqlite3_column_text(row, 0);
    static const char *const begins[][2] = {{"CREATE TABLE ", "CREATE TEMP TABLE "},
                                            {"CREATE INDEX ", "CREATE INDEX temp."},
                                            {"CREATE UNIQUE INDEX ", "CREATE UNIQUE INDEX temp."}};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); ++i) {
        const size_t size = strlen(begins[i][0]);
        if (strncmp(sql, begins[i][0], size) != 0) {
            continue;
        }
        char *made = sqlite3_mprintf("%s%s", begins[i][1], sql + size);
        const sj_status status =
            made != NULL ? run_sql(making->store, made, making->error) : SJ_ENOMEM;
        sqlite3_free(made);
        return status;
    }
    return sj_fail(making->error, SJ_ECORRUPT, "the schema has a statement of another kind: %.60s",
                   sql);
}

static sj_status create_shadows_of(sj_store *store, const char *table, sj_error *error)
{
    shadow_making making = {.store = store, .error = error};
    return sj_sql_each(store->database,
                       "SELECT sql FROM main.sqlite_schema WHERE tbl_name = ?1 AND type IN"
                       " ('table', 'index') AND sql IS NOT NULL ORDER BY type DESC",
                       SJ_SQL_TEXT(table), create_shadow, &making, error);
}

static void drop_shadows(sj_store *store)
{
    for (size_t i = 0; i < TABLES; ++i) {
        char sql[96];
        snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS temp.%s", shadowed[i].name);
        sqlite3_exec(store->database, sql, NULL, NULL, NULL);
    }
    sqlite3_exec(store->database, "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY", NULL,
                 NULL, NULL);
}

/* Creates the shadows. Foreign keys are off, because they would look for their parents in temp. The
 * shadows lie in a file, because a session's rows may exceed the memory. The writer's own temporary
 * tables stay in memory. */
static sj_status create_shadows(sj_store *store, sj_error *error)
{
    sj_status status = run_sql(store,
                               "PRAGMA foreign_keys = OFF; PRAGMA temp_store = FILE;"
                               "PRAGMA temp.cache_size = -16384",
                               error);
    for (size_t i = 0; i < TABLES && status == SJ_OK; ++i) {
        status = create_shadows_of(store, shadowed[i].name, error);
    }
    return status;
}

static sj_status copy_rows(sj_store *store, int64_t session_id, sj_error *error)
{
    sj_status status = SJ_OK;
    for (size_t i = 0; i < TABLES && status == SJ_OK; ++i) {
        char sql[256];
        int64_t none;
        if (shadowed[i].copied != NULL) {
            snprintf(sql, sizeof(sql), "INSERT INTO temp.%1$s SELECT * FROM main.%1$s WHERE %2$s",
                     shadowed[i].name, shadowed[i].copied);
            status = ask(store, sql, session_id, &none, error);
        }
    }
    return status;
}

static sj_status compare_table(sj_store *store, int64_t session_id, const shadowed_table *table,
                               sj_recompute_report *report, void *context, sj_error *error)
{
    char sql[2048];
    int64_t stored;
    int64_t made;
    static const char pattern[] = "SELECT count(*) FROM (SELECT %1$s FROM %3$s.%2$s WHERE %5$s"
                                  " EXCEPT SELECT %1$s FROM %4$s.%2$s WHERE %5$s)";
    snprintf(sql, sizeof(sql), pattern, table->compared, table->name, "main", "temp", table->own);
    SJ_TRY(ask(store, sql, session_id, &stored, error));
    snprintf(sql, sizeof(sql), pattern, table->compared, table->name, "temp", "main", table->own);
    SJ_TRY(ask(store, sql, session_id, &made, error));
    if (stored != 0 || made != 0) {
        char text[200];
        snprintf(text, sizeof(text),
                 "calls or times in %lld rows of %s do not follow from its blocks (--rebuild "
                 "recomputes them)",
                 (long long)(stored > made ? stored : made), table->name);
        report(context, session_id, text);
    }
    return SJ_OK;
}

/* Rebuilds the session in the shadows. Clears `*is_comparable` if some blocks cannot be read, or
 * not now because their file is missing. Marks on unreadable blocks last until the transaction is
 * rolled back. */
static sj_status rebuild_shadows(sj_store *store, int64_t session_id, int64_t *is_comparable,
                                 sj_error *error)
{
    SJ_TRY(ask(store, sj_recompute_check_is_comparable_sql, session_id, is_comparable, error));
    if (!*is_comparable) {
        return SJ_OK;
    }
    SJ_TRY(copy_rows(store, session_id, error));
    store->in_batch = true;
    const sj_status status = sj_store_rebuild_in_batch(store, session_id, error);
    store->in_batch = false;
    sj_store_forget_sessions(store, false);
    if (status != SJ_OK) {
        *is_comparable = 0;
        return status == SJ_ENOMEM || status == SJ_EFULL ? status : SJ_OK;
    }
    return ask(store, sj_recompute_check_is_comparable_sql, session_id, is_comparable, error);
}

static sj_status compare_session(sj_store *store, int64_t session_id, sj_recompute_report *report,
                                 void *context, sj_error *error)
{
    int64_t is_comparable = 0;
    sj_status status = rebuild_shadows(store, session_id, &is_comparable, error);
    if (!is_comparable) {
        return status;
    }
    for (size_t i = 0; i < TABLES && status == SJ_OK; ++i) {
        if (shadowed[i].compared != NULL) {
            status = compare_table(store, session_id, &shadowed[i], report, context, error);
        }
    }
    return status;
}

sj_status sj_store_check_recomputed(sj_store *store, const int64_t *session_ids,
                                    size_t session_count, sj_recompute_report *report,
                                    void *context, sj_error *error)
{
    sj_status status = create_shadows(store, error);
    const sj_progress_work work = sj_progress_begin(session_count);
    for (size_t i = 0; i < session_count && status == SJ_OK; ++i) {
        status = run_sql(store, "BEGIN", error);
        if (status == SJ_OK) {
            status = compare_session(store, session_ids[i], report, context, error);
            sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
        }
        sj_progress_step(work);
    }
    sj_progress_end(work);
    drop_shadows(store);
    return status;
}
