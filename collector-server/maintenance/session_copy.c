/* Design notes
 *
 * The source is attached. Functions, modules and plans are matched by their identity. Every other
 * id is shifted by an offset, so that references between rows stay valid. The names of columns tell
 * which ids they hold, as everywhere in the schema. So tables of later migrations are copied, too:
 * any table with a session_id, a stream_id or a report_id belongs to a session.
 *
 * If the target has a part of the session, the rows of the source are added to it: session_join.h.
 */
#include "collector-server/maintenance/session_copy.h"

#include "collector-server/maintenance/session_check.h"
#include "collector-server/maintenance/session_join.h"
#include "collector-server/store/block_files.h"
#include "collector-server/store/database.h"
#include "collector-server/store/foreign_log.h"
#include "proto/base/progress.h"
#include "schema/queries/maintenance/session_copy.h"

#include <stdbool.h>
#include <string.h>

/* Reads a number that changes when another connection writes to the source. */
#define SOURCE_VERSION_SQL "PRAGMA source.data_version"

typedef struct column_rule {
    const char *table; /* NULL: any table */
    const char *column;
    const char *value; /* SQL value; `r` is the row of the source */
} column_rule;

#define ROW_TAGS "iif(iif(json_valid(r.tags), json_type(r.tags), '') = 'object', r.tags, '{}')"

/* The temporary table `moved` has one row with the offsets and ids. */
static const column_rule rules[] = {
    {NULL, "session_id", "m.session_id"},
    {NULL, "parent_session_id", "NULL"},
    {NULL, "tags", ROW_TAGS},
    {NULL, "received_realtime_ns", "unixepoch('now') * 1000000000"},
    {NULL, "device_id", "m.device_id"},
    {NULL, "thread_id", "(SELECT new_id FROM temp.moved_threads WHERE old_id = r.thread_id)"},
    {NULL, "stream_id", "(SELECT new_id FROM temp.moved_streams WHERE old_id = r.stream_id)"},
    {NULL, "block_id", "r.block_id + m.block_offset"},
    {NULL, "aggregates_valid_before_block", "r.aggregates_valid_before_block + m.block_offset"},
    {NULL, "call_id",
     "coalesce((SELECT new_id << 38 FROM temp.moved_streams WHERE old_id = r.call_id >> 38), 0) | "
     "(r.call_id & 274877906943)"}, /* a note may have any number */
    {NULL, "path_id", "(m.session_id << 32) | (r.path_id & 4294967295)"},
    {NULL, "parent_path_id",
     "iif(r.parent_path_id IS NULL, NULL, (m.session_id << 32) | "
     "(r.parent_path_id & 4294967295))"},
    {NULL, "module_id", "(SELECT new_id FROM moved_modules WHERE old_id = r.module_id)"},
    {NULL, "hook_plan_id", "(SELECT new_id FROM moved_plans WHERE old_id = r.hook_plan_id)"},
    /* a report of another session gets 0, which is never the id of a report */
    {NULL, "report_id",
     "coalesce((SELECT new_id FROM temp.moved_reports WHERE old_id = r.report_id), 0)"},
    {NULL, "zombie_id", "(SELECT new_id FROM temp.moved_zombies WHERE old_id = r.zombie_id)"},
    {"blocks", "storage", "'inline'"},
    {"blocks", "data", "block_bytes(r.storage, r.data)"},
};

/* A table's column that says to which session a row belongs, and the condition on it. */
static const char *const owners[][2] = {
    {"session_id", "session_id = (SELECT id FROM temp.wanted)"},
    {"stream_id", "stream_id IN (SELECT old_id FROM temp.moved_streams)"},
    {"report_id", "report_id IN (SELECT old_id FROM temp.moved_reports)"},
};

static const char *const function_columns[] = {"function_id", "caller_function_id",
                                               "callee_function_id"};

/* Finds modules, their functions and plans by their identity, or copies them. */
static sj_status copy_modules(const sj_copy_job *copy)
{
    SJ_TRY(sj_copy_run_made(copy, "modules",
                            sqlite3_mprintf(sj_session_copy_modules_sql, (long long)copy->from)));
    SJ_TRY(sj_copy_run(copy, "functions", sj_session_copy_functions_sql));
    return sj_copy_run_made(copy, "plans",
                            sqlite3_mprintf(sj_session_copy_plans_sql, (long long)copy->from));
}

/* Finds the device, and computes the offsets of this session's ids. */
static sj_status prepare_ids(sj_copy_job *copy)
{
    SJ_TRY(sj_copy_run_made(copy, "device",
                            sqlite3_mprintf(sj_session_copy_device_sql, (long long)copy->from)));
    /* A call's id has 25 bits for its stream, so streams get consecutive numbers. */
    SJ_TRY(sj_copy_run_made(copy, "ids",
                            sqlite3_mprintf(sj_session_copy_moved_sql, (long long)copy->from)));
    SJ_TRY(sj_copy_run_made(copy, "threads",
                            sqlite3_mprintf(sj_session_copy_threads_sql, (long long)copy->from)));
    SJ_TRY(sj_copy_run_made(copy, "streams",
                            sqlite3_mprintf(sj_session_copy_streams_sql, (long long)copy->from)));
    SJ_TRY(sj_copy_run_made(copy, "reports",
                            sqlite3_mprintf(sj_session_copy_reports_sql, (long long)copy->from)));
    SJ_TRY(sj_copy_run_made(copy, "findings",
                            sqlite3_mprintf(sj_session_copy_zombies_sql, (long long)copy->from)));
    static const char clocks_sql[] =
        "INSERT OR IGNORE INTO main.device_clocks SELECT m.device_id, c.boot_id, c.boottime_ns, "
        "c.offset_ns, c.uncertainty_ns FROM temp.moved AS m CROSS JOIN source.sessions AS s JOIN "
        "source.device_clocks AS c ON c.device_id = s.device_id WHERE s.session_id = %lld";
    SJ_TRY(sj_copy_run_made(copy, "clocks", sqlite3_mprintf(clocks_sql, (long long)copy->from)));
    return sj_copy_number(copy, "SELECT session_id FROM temp.moved", &copy->to);
}

static bool is_function_column(const char *name)
{
    for (size_t i = 0; i < sizeof(function_columns) / sizeof(function_columns[0]); ++i) {
        if (strcmp(name, function_columns[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Appends the value of a column of the copied row. Returns false if the target generates the
 * column. */
static bool append_value(sqlite3_str *values, const char *table, const char *column, bool own_key)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); ++i) {
        if (strcmp(column, rules[i].column) == 0 &&
            (rules[i].table == NULL || strcmp(table, rules[i].table) == 0)) {
            sqlite3_str_appendf(values, ", %s", rules[i].value);
            return true;
        }
    }
    if (own_key) {
        return false;
    }
    if (is_function_column(column)) {
        sqlite3_str_appendf(values,
                            ", coalesce((SELECT r.%s - v.old_first + v.new_first FROM "
                            "temp.moved_modules AS v WHERE r.%s BETWEEN v.old_first AND "
                            "v.old_first + v.functions - 1), r.%s)",
                            column, column, column);
    } else {
        sqlite3_str_appendf(values, ", r.\"%w\"", column);
    }
    return true;
}

/* The columns of a copied table, and their values. */
typedef struct column_lists {
    const char *table;
    sqlite3_str *names, *values; /* each begins with ", " */
} column_lists;

static sj_status add_column(void *context, sqlite3_stmt *row)
{
    const column_lists *lists = context;
    const sj_session_copy_columns_row column = sj_read_session_copy_columns(row);
    if (append_value(lists->values, lists->table, column.name, column.is_only_key != 0)) {
        sqlite3_str_appendf(lists->names, ", \"%w\"", column.name);
    }
    return SJ_OK;
}

/* Returns the condition on the rows that belong to the session. */
static const char *rows_by(const char *owner)
{
    size_t i = 0;
    while (i + 1 < sizeof(owners) / sizeof(owners[0]) && strcmp(owners[i][0], owner) != 0) {
        ++i;
    }
    return owners[i][1];
}

/* Copies the rows of one table that belong to the session. */
static sj_status copy_table(void *context, sqlite3_stmt *row)
{
    const sj_copy_job *copy = context;
    const char *table = (const char *)sqlite3_column_text(row, 0);
    const char *rows = rows_by((const char *)sqlite3_column_text(row, 1));
    const char *joined = copy->is_join ? sj_session_join_rows(table) : "";
    if (joined == NULL) {
        return SJ_OK;
    }
    column_lists lists = {table, sqlite3_str_new(NULL), sqlite3_str_new(NULL)};
    sj_status status =
        sj_sql_each(copy->target, sj_session_copy_columns_sql,
                    sj_bind_session_copy_columns(&(sj_session_copy_columns_binds){.table = table}),
                    add_column, &lists, copy->error);
    char *name_list = sqlite3_str_finish(lists.names);
    char *value_list = sqlite3_str_finish(lists.values);
    if (status == SJ_OK && (name_list == NULL || value_list == NULL)) {
        status = SJ_ENOMEM;
    }
    if (status == SJ_OK) {
        status = sj_copy_run_made(
            copy, table,
            sqlite3_mprintf("INSERT INTO main.\"%w\"(%s) SELECT %s FROM temp.moved AS m CROSS JOIN "
                            "source.\"%w\" AS r WHERE r.%s%s",
                            table, name_list + 2, value_list + 2, table, rows, joined));
    }
    sqlite3_free(name_list);
    sqlite3_free(value_list);
    return status;
}

/* Copies all tables of a session, in the order of their references. */
static sj_status copy_tables(const sj_copy_job *copy)
{
    return sj_sql_each(copy->target, sj_session_copy_tables_sql, (sj_sql_binds){0}, copy_table,
                       (void *)(uintptr_t)copy, copy->error);
}

/* Fails unless the session is in the source. Sets `is_join` if the target has a part of it. Returns
 * SJ_EEXIST if the target has all of it. */
static sj_status check_is_new(sj_copy_job *copy)
{
    int64_t is_there = 0;
    const sj_status found =
        sj_copy_number(copy,
                       "SELECT EXISTS (SELECT 1 FROM main.sessions AS t WHERE t.uuid = s.uuid) FROM"
                       " source.sessions AS s WHERE s.session_id = ?1",
                       &is_there);
    if (found == SJ_ENOTFOUND) {
        return sj_fail(copy->error, SJ_ENOTFOUND, "there is no session %lld",
                       (long long)copy->from);
    }
    copy->is_join = is_there != 0;
    return found == SJ_OK && copy->is_join ? sj_session_join_check(copy) : found;
}

static sj_status copy_all(sj_copy_job *copy)
{
    int64_t version = 0;
    SJ_TRY(check_is_new(copy));
    SJ_TRY(sj_copy_number(copy, SOURCE_VERSION_SQL, &version));
    if (version != copy->checked_version) { /* another process has written to the source */
        SJ_TRY(sj_session_check(copy->target, copy->from, copy->work, copy->error));
    }
    SJ_TRY(sj_copy_run_made(
        copy, "ids",
        sqlite3_mprintf("CREATE TEMP TABLE wanted AS SELECT %lld AS id", (long long)copy->from)));
    SJ_TRY(copy_modules(copy));
    SJ_TRY(prepare_ids(copy));
    if (!copy->is_join) {
        return copy_tables(copy);
    }
    SJ_TRY(sj_session_join_begin(copy));
    SJ_TRY(copy_tables(copy));
    return sj_session_join_end(copy);
}

/* Fails if a row of PRAGMA table_list has the name of a table of the schema, but is not a table. */
static sj_status check_name(void *context, sqlite3_stmt *row)
{
    const sj_copy_job *copy = context;
    const char *name = (const char *)sqlite3_column_text(row, 1);
    const char *type = (const char *)sqlite3_column_text(row, 2);
    int64_t is_known;
    if (type != NULL && strcmp(type, "table") == 0) {
        return SJ_OK;
    }
    const sj_status status = sj_sql_number(
        copy->target,
        "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE",
        SJ_SQL_TEXT(name), &is_known, copy->error);
    return status == SJ_ENOTFOUND ? SJ_OK
           : status == SJ_OK
               ? sj_fail(copy->error, SJ_EINVAL,
                         "the file was not written by Sojourn: its \"%s\" is not a table", name)
               : status;
}

/* Checks that all names are tables. Another object can run for ever, with the target locked, such
 * as a view that calls itself. The PRAGMA returns SQLite's view of the schema, which no object in
 * the file can replace. */
static sj_status check_attached(const sj_copy_job *copy)
{
    return sj_sql_each(copy->target, "PRAGMA source.table_list", (sj_sql_binds){0}, check_name,
                       (void *)(uintptr_t)copy, copy->error);
}

/* Checks all rows of the session before the target is locked, so that other connections do not wait
 * for that. */
static sj_status check_source(sj_copy_job *copy)
{
    SJ_TRY(sj_copy_run(copy, "begin", "BEGIN"));
    sj_status status = check_is_new(copy);
    if (status == SJ_OK) {
        status = sj_copy_number(copy, SOURCE_VERSION_SQL, &copy->checked_version);
    }
    if (status == SJ_OK) {
        status = sj_session_check(copy->target, copy->from, copy->work, copy->error);
    }
    sqlite3_exec(copy->target, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static sj_status copy_attached(sj_copy_job *copy)
{
    SJ_TRY(check_source(copy));
    /* BEGIN IMMEDIATE would lock the source for writing, too. The empty UPDATE locks only the
     * target. */
    SJ_TRY(sj_copy_run(copy, "begin", "BEGIN; PRAGMA defer_foreign_keys=ON"));
    sj_status status =
        sj_copy_run(copy, "begin", "UPDATE main.sessions SET pinned = pinned WHERE 0");
    if (status == SJ_OK) {
        status = copy_all(copy);
    }
    if (status == SJ_OK) {
        status = sj_copy_run(copy, "commit", "COMMIT");
    }
    if (status != SJ_OK) {
        sqlite3_exec(copy->target, "ROLLBACK", NULL, NULL, NULL);
    }
    sqlite3_exec(copy->target, sj_session_copy_drop_sql, NULL, NULL, NULL);
    return status;
}

static sj_status attach(const sj_copy_job *copy, const char *source_path)
{
    sqlite3 *checked = NULL;
    SJ_TRY(sj_foreign_log_check(source_path, copy->error));
    /* checks that it is a Sojourn database */
    SJ_TRY(sj_database_open(source_path, SJ_DATABASE_READ, &checked, copy->error));
    sqlite3_close(checked);
    SJ_TRY(sj_copy_run_made(copy, "attach", sqlite3_mprintf("ATTACH %Q AS source", source_path)));
    const sj_status status = check_attached(copy);
    if (status != SJ_OK) {
        sqlite3_exec(copy->target, "DETACH source", NULL, NULL, NULL);
    }
    return status;
}

sj_status sj_session_copy_check(const char *source_path, sqlite3 *target, sj_error *error)
{
    const sj_copy_job copy = {.target = target, .error = error};
    SJ_TRY(attach(&copy, source_path));
    return sj_copy_run(&copy, "detach", "DETACH source");
}

/* SQL function block_bytes(storage, data): returns a block's bytes, from the row or from a file. */
static void block_bytes(sqlite3_context *context, int count, sqlite3_value **values)
{
    sj_slice bytes;
    sj_error error = {0};
    const sj_copy_job *copy = sqlite3_user_data(context);
    (void)count;
    sj_progress_step(copy->work);
    const void *data = sqlite3_value_blob(values[1]);
    const char *storage = (const char *)sqlite3_value_text(values[0]);
    const sj_status status = sj_block_files_get(
        copy->files, storage,
        (sj_slice){.data = data, .size = (size_t)sqlite3_value_bytes(values[1])}, &bytes, &error);
    if (status == SJ_OK) {
        sqlite3_result_blob64(context, bytes.data, bytes.size, SQLITE_TRANSIENT);
        /* a block that is missing in the source is missing in the copy, too */
    } else if (status != SJ_ENOTFOUND) {
        sqlite3_result_error(context, error.text, -1);
    }
}

static uint64_t count_blocks(const sj_copy_job *copy)
{
    sqlite3_stmt *row = NULL;
    uint64_t count = 0;
    if (sqlite3_prepare_v2(copy->target,
                           "SELECT count(*) FROM source.streams JOIN source.blocks USING"
                           " (stream_id) WHERE session_id = ?1",
                           -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, copy->from);
        count = sqlite3_step(row) == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
    }
    sqlite3_finalize(row);
    return count;
}

static sj_status copy_with_files(sj_copy_job *copy)
{
    sj_status status = SJ_ENOMEM;
    if (sj_block_files_new(copy->target, "source", &copy->files) == SJ_OK &&
        sqlite3_create_function_v2(copy->target, "block_bytes", 2, SQLITE_UTF8, copy, block_bytes,
                                   NULL, NULL, NULL) == SQLITE_OK) {
        copy->work = sj_progress_begin(2 * count_blocks(copy));
        status = copy_attached(copy);
        sj_progress_end(copy->work);
    } else {
        sj_fail(copy->error, status, "no memory for copying a session");
    }
    sqlite3_create_function_v2(copy->target, "block_bytes", 2, SQLITE_UTF8, NULL, NULL, NULL, NULL,
                               NULL);
    sj_block_files_free(copy->files);
    return status;
}

sj_status sj_session_copy(const char *source_path, int64_t session_id, sqlite3 *target,
                          sj_copied_session *copied, sj_error *error)
{
    sj_copy_job copy = {.target = target, .from = session_id, .error = error};
    SJ_TRY(attach(&copy, source_path));
    const sj_status status = copy_with_files(&copy);
    sqlite3_exec(target, "DETACH source", NULL, NULL, NULL);
    *copied = (sj_copied_session){.session_id = copy.to, .is_joined = copy.is_join};
    return status;
}
