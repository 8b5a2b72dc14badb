#include "collector-server/maintenance/symbols.h"

#include "agent/objfile/demangle.h"
#include "agent/objfile/symbol_file.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "collector-server/store/store.h"
#include "collector-server/store/stored_text.h"

#include <stdlib.h>
#include <string.h>

typedef enum symbol_statement {
    NAME_FUNCTION,
    LINE_FUNCTION,
    CLEAR_INLINED,
    ADD_INLINED,
    STATEMENTS
} symbol_statement;

typedef struct symbol_run {
    sqlite3 *database;
    sqlite3_stmt *prepared[STATEMENTS];
    int64_t module_id;
    const char *module_path;
    char *name; /* capacity SJ_DEMANGLE_MAX_BYTES */
    sj_late_symbols *added;
    uint64_t function; /* the function whose inlined functions follow */
    int64_t inlined_number;
    sj_error *error;
} symbol_run;

static sj_status fail_sql(const symbol_run *run)
{
    return sj_fail(run->error, sj_database_status(sqlite3_extended_errcode(run->database)),
                   "cannot add symbols: %s", sqlite3_errmsg(run->database));
}

static void bind_text(sqlite3_stmt *statement, int place, const char *text)
{
    (void)sj_stored_text_bind(statement, place, text, text != NULL ? strlen(text) : 0);
}

/* Binds the module to ?1 and the offset to ?2, and runs a prepared statement. */
static sj_status step(symbol_run *run, symbol_statement which, uint64_t offset)
{
    sqlite3_stmt *statement = run->prepared[which];
    sqlite3_bind_int64(statement, 1, run->module_id);
    sqlite3_bind_int64(statement, 2, (int64_t)offset);
    const int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result == SQLITE_DONE ? SJ_OK : fail_sql(run);
}

static sj_status add_symbol(void *context, uint64_t address, const char *symbol)
{
    symbol_run *run = context;
    sqlite3_stmt *statement = run->prepared[NAME_FUNCTION];
    sj_demangle(symbol, run->name, SJ_DEMANGLE_MAX_BYTES);
    bind_text(statement, 3, run->name);
    bind_text(statement, 4, symbol);
    sqlite3_bind_int64(statement, 5, sj_store_symbol_key(run->module_path, run->name));
    SJ_TRY(step(run, NAME_FUNCTION, address));
    run->added->named += sqlite3_changes(run->database);
    return SJ_OK;
}

static sj_status add_line(void *context, uint64_t address, const char *file, int line)
{
    symbol_run *run = context;
    bind_text(run->prepared[LINE_FUNCTION], 3, file);
    sqlite3_bind_int(run->prepared[LINE_FUNCTION], 4, line);
    SJ_TRY(step(run, LINE_FUNCTION, address));
    run->added->lined += sqlite3_changes(run->database);
    return SJ_OK;
}

static sj_status add_inlined(void *context, uint64_t function, int depth, const char *name,
                             const char *call_file, int call_line)
{
    symbol_run *run = context;
    sqlite3_stmt *statement = run->prepared[ADD_INLINED];
    if (function != run->function) {
        SJ_TRY(step(run, CLEAR_INLINED, function));
        run->function = function;
        run->inlined_number = 0;
    }
    sj_demangle(name, run->name, SJ_DEMANGLE_MAX_BYTES);
    sqlite3_bind_int64(statement, 3, ++run->inlined_number);
    sqlite3_bind_int(statement, 4, depth);
    bind_text(statement, 5, run->name);
    bind_text(statement, 6, call_file);
    sqlite3_bind_int(statement, 7, call_line);
    SJ_TRY(step(run, ADD_INLINED, function));
    run->added->inlined += sqlite3_changes(run->database);
    return SJ_OK;
}

static sj_status prepare(symbol_run *run)
{
    static const char *const sql[STATEMENTS] = {
        [NAME_FUNCTION] = "UPDATE functions SET name = ?3, symbol = ?4, symbol_key = ?5, source = "
                          "'symbol_file' WHERE module_id = ?1 AND offset = ?2 AND symbol = ''",
        [LINE_FUNCTION] = "INSERT OR REPLACE INTO function_lines SELECT function_id, ?3, ?4 FROM "
                          "functions WHERE module_id = ?1 AND offset = ?2",
        [CLEAR_INLINED] = "DELETE FROM inlined_functions WHERE function_id IN (SELECT function_id "
                          "FROM functions WHERE module_id = ?1 AND offset = ?2)",
        [ADD_INLINED] = "INSERT OR REPLACE INTO inlined_functions SELECT function_id, ?3, ?4, ?5, "
                        "?6, ?7 FROM functions WHERE module_id = ?1 AND offset = ?2",
    };
    for (int i = 0; i < STATEMENTS; ++i) {
        if (sqlite3_prepare_v2(run->database, sql[i], -1, &run->prepared[i], NULL) != SQLITE_OK) {
            return fail_sql(run);
        }
    }
    return SJ_OK;
}

typedef struct module_work {
    symbol_run *run;
    sj_symbol_file *file;
    bool has_module;
} module_work;

static sj_status add_to_module(void *context, sqlite3_stmt *row)
{
    module_work *work = context;
    symbol_run *run = work->run;
    const sj_symbol_visitor visitor = {
        .context = run, .symbol = add_symbol, .line = add_line, .inlined = add_inlined};
    run->module_id = sqlite3_column_int64(row, 0);
    run->module_path = (const char *)sqlite3_column_text(row, 1);
    run->function = 0;
    work->has_module = true;
    return sj_symbol_file_read(work->file, &visitor);
}

/* Adds the symbols to every module with the build-id, because planners of several versions may have
 * listed its functions. */
static sj_status add_to_modules(symbol_run *run, sj_symbol_file *file)
{
    static const sj_sql_field fields[] = {{SJ_BIND_BLOB, 0}};
    module_work work = {.run = run, .file = file};
    sj_slice build_id;
    build_id.data = sj_symbol_file_build_id(file, &build_id.size);
    SJ_TRY(sj_sql_each(run->database, "SELECT module_id, path FROM modules WHERE build_id = ?1",
                       (sj_sql_binds){fields, 1, &build_id}, add_to_module, &work, run->error));
    return work.has_module
               ? SJ_OK
               : sj_fail(run->error, SJ_ENOTFOUND, "no session loaded a module with this build-id");
}

static sj_status note_file(symbol_run *run, const sj_symbol_file *file, const char *path)
{
    static const char sql[] = "INSERT OR REPLACE INTO symbol_files(build_id, path, named_functions,"
                              "lined_functions, added_realtime_ns) VALUES (?1, ?2, ?3, ?4, "
                              "unixepoch() * 1000000000)";
    sqlite3_stmt *statement = NULL;
    size_t size;
    const uint8_t *build_id = sj_symbol_file_build_id(file, &size);
    if (sqlite3_prepare_v2(run->database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return fail_sql(run);
    }
    sqlite3_bind_blob(statement, 1, build_id, (int)size, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, path, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, run->added->named);
    sqlite3_bind_int64(statement, 4, run->added->lined);
    const int result = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return result == SQLITE_DONE ? SJ_OK : fail_sql(run);
}

static sj_status add_in_transaction(symbol_run *run, sj_symbol_file *file, const char *path)
{
    if (sqlite3_exec(run->database, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        return fail_sql(run);
    }
    sj_status status = prepare(run);
    if (status == SJ_OK) {
        status = add_to_modules(run, file);
    }
    if (status == SJ_OK) {
        status = note_file(run, file, path);
    }
    for (int i = 0; i < STATEMENTS; ++i) {
        sqlite3_finalize(run->prepared[i]);
    }
    if (status == SJ_OK && sqlite3_exec(run->database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        status = fail_sql(run);
    }
    if (status != SJ_OK) {
        sqlite3_exec(run->database, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

sj_status sj_late_symbols_add(sqlite3 *database, const char *path, sj_late_symbols *added,
                              sj_error *error)
{
    sj_symbol_file *file = NULL;
    symbol_run run = {.database = database, .added = added, .error = error};
    *added = (sj_late_symbols){0};
    SJ_TRY(sj_symbol_file_open(path, &file, error));
    run.name = malloc(SJ_DEMANGLE_MAX_BYTES);
    const sj_status status = run.name == NULL ? sj_fail(error, SJ_ENOMEM, "no memory for symbols")
                                              : add_in_transaction(&run, file, path);
    free(run.name);
    sj_symbol_file_close(file);
    return status;
}
