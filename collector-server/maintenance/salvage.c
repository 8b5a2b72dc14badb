#include "collector-server/maintenance/salvage.h"

#include "collector-server/maintenance/part_file.h"
#include "collector-server/maintenance/salvage_repair.h"
#include "collector-server/maintenance/salvage_rows.h"
#include "collector-server/maintenance/salvage_source.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct salvage_run {
    sj_salvage_source source;
    sqlite3 *target;
    sj_salvaged *salvaged;
    /* SQL condition: sessions whose sums are not computed from blocks; NULL: none */
    char *profiled;
    sj_error *error;
} salvage_run;

static sj_status fail_sql(sqlite3 *database, const char *what, sj_error *error)
{
    const sj_status status = sj_database_status(sqlite3_errcode(database));
    return sj_fail(error, status != SJ_OK ? status : SJ_EIO, "cannot %s: %s", what,
                   sqlite3_errmsg(database));
}

static sj_status fail_memory(sj_error *error)
{
    return sj_fail(error, SJ_ENOMEM, "no memory to salvage a database");
}

/* True for tables of sums that are computed from the blocks again. */
static bool is_computed(const char *table)
{
    static const char *const computed[] = {"block_outlines", "call_edges", "call_paths",
                                           "function_stats", "slow_calls", "timeline"};
    for (size_t i = 0; i < sizeof(computed) / sizeof(computed[0]); ++i) {
        if (strcmp(table, computed[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns a text that is equal for tables with equal columns. Free it with sqlite3_free. */
static char *describe_table(sqlite3 *database, const char *table)
{
    sqlite3_stmt *row = NULL;
    char *text = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT (SELECT type || wr || strict FROM pragma_table_list(?1) WHERE"
                           " schema = 'main') || group_concat(name || ' ' || type || pk ||"
                           " \"notnull\") FROM pragma_table_info(?1)",
                           -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
        if (sqlite3_step(row) == SQLITE_ROW) {
            text = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
        }
    }
    sqlite3_finalize(row);
    return text;
}

static bool has_definition(const salvage_run *run, const char *table)
{
    char *found = describe_table(run->source.database, table);
    char *expected = describe_table(run->target, table);
    const bool is_same = found != NULL && expected != NULL && strcmp(found, expected) == 0;
    sqlite3_free(found);
    sqlite3_free(expected);
    return is_same;
}

typedef struct table_list {
    sj_salvaged *salvaged;
    size_t capacity;
} table_list;

static sj_status add_table(void *context, sqlite3_stmt *row)
{
    table_list *list = context;
    sj_salvaged *salvaged = list->salvaged;
    SJ_TRY(sj_array_reserve(&salvaged->tables, &list->capacity, salvaged->count, 1,
                            sizeof(*salvaged->tables)));
    snprintf(salvaged->tables[salvaged->count++].name, SJ_SALVAGED_NAME_BYTES, "%s",
             sqlite3_column_text(row, 0));
    return SJ_OK;
}

static sj_status list_tables(const salvage_run *run)
{
    table_list list = {.salvaged = run->salvaged};
    return sj_sql_each(run->target,
                       "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE"
                       " 'sqlite~_%' ESCAPE '~' ORDER BY name <> 'profiles', name",
                       (sj_sql_binds){0}, add_table, &list, run->error);
}

/* Finds the sessions whose sums came from the device, after the table `profiles` was salvaged. */
static sj_status note_profiled(salvage_run *run)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(run->target,
                           "SELECT 'session_id IN (' || group_concat(DISTINCT session_id) || ')'"
                           " FROM profiles",
                           -1, &row, NULL) != SQLITE_OK) {
        return SJ_OK; /* an older schema lacks the table */
    }
    if (sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) == SQLITE_TEXT) {
        run->profiled = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
    }
    return sqlite3_finalize(row) == SQLITE_OK ? SJ_OK : fail_memory(run->error);
}

static sj_status copy_table(const salvage_run *run, sj_salvaged_table *table)
{
    const char *condition = NULL;
    if (is_computed(table->name)) {
        const bool by_session =
            strcmp(table->name, "timeline") != 0 && strcmp(table->name, "block_outlines") != 0;
        if (run->profiled == NULL || !by_session) {
            return SJ_OK;
        }
        condition = run->profiled;
    }
    if (!has_definition(run, table->name)) {
        table->is_unknown = true;
        return SJ_OK;
    }
    return sj_salvage_rows(run->source.database, run->target, condition, table, run->error);
}

static sj_status copy_tables(salvage_run *run)
{
    sj_salvaged *salvaged = run->salvaged;
    sj_status status = list_tables(run);
    const sj_progress_work work = sj_progress_begin_list(salvaged->count);
    for (size_t i = 0; i < salvaged->count && status == SJ_OK; ++i) {
        status = copy_table(run, &salvaged->tables[i]);
        if (status == SJ_OK && i == 0) {
            status = note_profiled(run);
        }
        sj_progress_step(work);
    }
    sj_progress_end(work);
    return status;
}

/* Fills the empty file `part` with the rows that can be read. */
static sj_status fill_part(salvage_run *run, const char *from, const char *to, const char *part)
{
    SJ_TRY(sj_salvage_source_open(from, to, &run->source, run->error));
    run->salvaged->log_is_damaged = run->source.log_is_damaged;
    run->salvaged->log_is_foreign = run->source.log_is_foreign;
    SJ_TRY(sj_database_create_at(part, run->source.version, &run->target, run->error));
    if (sqlite3_exec(run->target, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return fail_sql(run->target, "begin", run->error);
    }
    SJ_TRY(copy_tables(run));
    SJ_TRY(sj_salvage_repair(run->target, run->salvaged, run->error));
    return sqlite3_exec(run->target, "COMMIT", NULL, NULL, NULL) == SQLITE_OK
               ? SJ_OK
               : fail_sql(run->target, "write the rows", run->error);
}

/* Records that the sums of a session cannot be computed, and why. `verify` and queries report
 * it. */
static sj_status set_apart(sqlite3 *database, int64_t session_id, const char *why, sj_error *error)
{
    char *sql = sqlite3_mprintf(
        "UPDATE sessions SET quarantine_reason = %Q, aggregates_valid_before_block = (SELECT"
        " min(block_id) FROM streams JOIN blocks USING (stream_id) WHERE session_id = %lld) WHERE"
        " session_id = %lld",
        why, (long long)session_id, (long long)session_id);
    if (sql == NULL) {
        return fail_memory(error);
    }
    const int result = sqlite3_exec(database, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return result == SQLITE_OK ? SJ_OK : fail_sql(database, "set a session apart", error);
}

static sj_status rebuild_session(sj_store *store, sqlite3 *database, int64_t session_id,
                                 sj_error *error)
{
    sj_error why = {0};
    const sj_status status = sj_store_rebuild(store, session_id, &why);
    switch (status) {
    case SJ_OK:
        return SJ_OK;
    case SJ_EFULL:
    case SJ_EIO:
    case SJ_ENOMEM:
    case SJ_EAGAIN:
        *error = why;
        return status;
    default:
        return set_apart(database, session_id, why.text, error);
    }
}

static sj_status rebuild_sums(sj_store *store, const char *part, sj_error *error)
{
    sqlite3 *database = NULL;
    sj_sql_numbers ids = {0};
    sj_status status = sj_database_open(part, SJ_DATABASE_WRITE, &database, error);
    if (status == SJ_OK) {
        status = sj_sql_list_numbers(
            database,
            "SELECT session_id FROM sessions AS s WHERE state <> 'removing' AND NOT"
            " EXISTS (SELECT 1 FROM profiles AS p WHERE p.session_id = s.session_id)",
            (sj_sql_binds){0}, &ids, error);
    }
    const sj_progress_work work = sj_progress_begin_list(ids.count);
    for (size_t i = 0; i < ids.count && status == SJ_OK; ++i) {
        status = rebuild_session(store, database, ids.values[i], error);
        sj_progress_step(work);
    }
    sj_progress_end(work);
    free(ids.values);
    sqlite3_close(database);
    return status;
}

/* Marks blocks that cannot be read, computes the sums of the others, and verifies the database. */
static sj_status finish_part(const char *part, const sj_verify_options *options,
                             sj_salvaged *salvaged, sj_error *error)
{
    const sj_store_options sink = {.path = part};
    const sj_verify_options silent = {0};
    sj_store *store = NULL;
    SJ_TRY(sj_store_open(&sink, &store, error));
    sj_status status = sj_store_verify(store, &silent, &salvaged->verified, error);
    if (status == SJ_OK) {
        status = rebuild_sums(store, part, error);
    }
    if (status == SJ_OK) {
        status = sj_store_verify(store, options, &salvaged->verified, error);
    }
    sj_store_close(store);
    salvaged->sessions = (int64_t)salvaged->verified.sessions;
    return status;
}

sj_status sj_database_salvage(const char *from, const char *to,
                              void (*report)(void *context, const sj_finding *finding),
                              void *context, sj_salvaged *salvaged, sj_error *error)
{
    char part[SJ_PART_BYTES];
    salvage_run run = {.salvaged = salvaged, .error = error};
    const sj_verify_options options = {.report = report, .context = context};
    *salvaged = (sj_salvaged){0};
    SJ_TRY(sj_part_make(to, part, error));
    sj_status status = fill_part(&run, from, to, part);
    sqlite3_free(run.profiled);
    sqlite3_close(run.target);
    sj_salvage_source_close(&run.source);
    if (status == SJ_OK) {
        status = finish_part(part, &options, salvaged, error);
    }
    if (status == SJ_OK) {
        status = sj_part_name(part, to, error);
    }
    if (status != SJ_OK) {
        sj_part_remove(part);
    }
    return status;
}

void sj_salvaged_deinit(sj_salvaged *salvaged)
{
    free(salvaged->tables);
    *salvaged = (sj_salvaged){0};
}

bool sj_salvaged_is_whole(const sj_salvaged *salvaged)
{
    bool is_whole =
        !salvaged->log_is_damaged && salvaged->verified.bad_blocks + salvaged->verified.other == 0;
    for (size_t i = 0; i < salvaged->count; ++i) {
        const sj_salvaged_table *table = &salvaged->tables[i];
        is_whole = is_whole && table->missing == 0 && table->dropped == 0 && !table->is_unknown &&
                   table->substitutes == 0;
    }
    return is_whole;
}
