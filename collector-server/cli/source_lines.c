#include "collector-server/cli/source_lines.h"

#include "agent/objfile/debug_file.h"
#include "agent/objfile/symbol_file.h"
#include "schema/queries/cli/source_lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MODULES_MAX = 64, PATH_BYTES = 4096 };

typedef struct module_lines {
    int64_t module_id;
    sj_symbol_file *file; /* NULL: this machine has no debug data of the module */
} module_lines;

typedef struct source_lines {
    module_lines modules[MODULES_MAX];
    size_t module_count;
} source_lines;

static void free_lines(void *context)
{
    source_lines *lines = context;
    for (size_t i = 0; i < lines->module_count; i++) {
        sj_symbol_file_close(lines->modules[i].file);
    }
    free(lines);
}

/* Returns NULL if the module has no separate debug file. */
static sj_symbol_file *open_debug_file(const char *path)
{
    sj_elf module;
    sj_elf debug;
    char debug_path[PATH_BYTES];
    sj_symbol_file *file = NULL;
    if (sj_elf_open(path, &module, NULL) != SJ_OK) {
        return NULL;
    }
    if (sj_debug_file_find(&module, path, "/usr/lib/debug", &debug, debug_path,
                           sizeof(debug_path)) == SJ_OK) {
        sj_elf_close(&debug);
        (void)!sj_symbol_file_open(debug_path, &file, NULL);
    }
    sj_elf_close(&module);
    return file;
}

static bool has_build_id(const sj_symbol_file *file, const void *build_id, size_t bytes)
{
    size_t size = 0;
    const uint8_t *found = sj_symbol_file_build_id(file, &size);
    return bytes != 0 && size == bytes && memcmp(found, build_id, bytes) == 0;
}

/* Opens the file with a module's line table: the module itself, or its separate debug file. Returns
 * NULL if there is none, or if the module at `path` has another build-id. */
static sj_symbol_file *open_module(const char *path, const void *build_id, size_t bytes)
{
    struct stat status;
    sj_symbol_file *file = NULL;
    if (path == NULL || stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        sj_symbol_file_open(path, &file, NULL) != SJ_OK) {
        return NULL;
    }
    if (!has_build_id(file, build_id, bytes)) {
        sj_symbol_file_close(file);
        return NULL;
    }
    if (sj_symbol_file_has_lines(file)) {
        return file;
    }
    sj_symbol_file_close(file);
    return open_debug_file(path);
}

/* Opens the module of the row at its first use; the module stays open. Returns NULL if it has no
 * line table. */
static sj_symbol_file *find_module(source_lines *lines, sqlite3_stmt *row)
{
    const int64_t module_id = sqlite3_column_int64(row, 0);
    for (size_t i = 0; i < lines->module_count; i++) {
        if (lines->modules[i].module_id == module_id) {
            return lines->modules[i].file;
        }
    }
    if (lines->module_count == MODULES_MAX) {
        return NULL;
    }
    module_lines *added = &lines->modules[lines->module_count++];
    added->module_id = module_id;
    added->file = open_module((const char *)sqlite3_column_text(row, 2),
                              sqlite3_column_blob(row, 3), (size_t)sqlite3_column_bytes(row, 3));
    return added->file;
}

static bool find_line(source_lines *lines, sqlite3_stmt *row, const char **path, int *line)
{
    if (sqlite3_column_type(row, 4) != SQLITE_NULL) {
        *path = (const char *)sqlite3_column_text(row, 4);
        *line = sqlite3_column_int(row, 5);
        return true;
    }
    sj_symbol_file *file = find_module(lines, row);
    return file != NULL &&
           sj_symbol_file_line(file, (uint64_t)sqlite3_column_int64(row, 1), path, line) == SJ_OK;
}

/* Implements source_line. Prepares its statement on each call, because a kept statement would
 * prevent the connection from closing. */
static void source_line(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    (void)count;
    sqlite3_stmt *row = NULL;
    const char *path = NULL;
    int line = 0;
    if (sqlite3_prepare_v2(sqlite3_context_db_handle(context), sj_source_line_sql, -1, &row,
                           NULL) != SQLITE_OK) {
        sqlite3_result_error(context, "source lines cannot be read", -1);
        return;
    }
    sqlite3_bind_value(row, 1, arguments[0]);
    if (sqlite3_step(row) == SQLITE_ROW &&
        find_line(sqlite3_user_data(context), row, &path, &line)) {
        sqlite3_result_text(context, sqlite3_mprintf("%s:%d", path, line), -1, sqlite3_free);
    }
    sqlite3_finalize(row);
}

sj_status sj_source_lines_register(sqlite3 *database, sj_error *error)
{
    source_lines *lines = calloc(1, sizeof(*lines));
    if (lines == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for source lines");
    }
    /* SQLite frees the context, even if it refuses the function. */
    return sqlite3_create_function_v2(database, "source_line", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                      lines, source_line, NULL, NULL, free_lines) == SQLITE_OK
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "no memory for source lines");
}

bool sj_source_lines_exist(sqlite3 *database, int64_t session_id)
{
    static const char sql[] =
        "SELECT count(source_line(function_id)) FROM (SELECT function_id FROM function_stats "
        "WHERE session_id = ?1 ORDER BY total_ns DESC LIMIT 10)";
    sqlite3_stmt *count = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &count, NULL) != SQLITE_OK) {
        return false;
    }
    sqlite3_bind_int64(count, 1, session_id);
    const bool exist = sqlite3_step(count) == SQLITE_ROW && sqlite3_column_int(count, 0) != 0;
    sqlite3_finalize(count);
    return exist;
}
