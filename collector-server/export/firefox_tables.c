#include "collector-server/export/firefox_tables.h"

#include "collector-server/export/json_text.h"
#include "proto/base/array.h"
#include "schema/queries/export/firefox.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

enum { COLUMN_NAME, COLUMN_MODULE, COLUMN_FILE, COLUMN_LINE };

/* Writes to `*index` the place of a key in a list. `*is_new` is true if the caller has to append
 * it to the list, which has `count` elements. */
static sj_status find_index(sj_hash_map *known, int64_t id, uint32_t sub, size_t count,
                            uint32_t *index, bool *is_new)
{
    const sj_hash_entry *entry = sj_hash_map_find(known, (uint64_t)id, sub);
    *is_new = entry == NULL;
    *index = entry != NULL ? entry->first : (uint32_t)count;
    return *is_new ? sj_hash_map_put(known, &(sj_hash_entry){.key = (uint64_t)id,
                                                             .sub = sub,
                                                             .first = (uint32_t)count})
                   : SJ_OK;
}

static sj_status find_function(sj_firefox_tables *tables, int64_t function_id, uint32_t *function)
{
    bool is_new;
    SJ_TRY(sj_array_reserve(&tables->functions, &tables->function_capacity, tables->function_count,
                            1, sizeof(*tables->functions)));
    SJ_TRY(find_index(&tables->known_functions, function_id, 1, tables->function_count, function,
                      &is_new));
    if (is_new) {
        tables->functions[tables->function_count++] =
            (sj_firefox_function){.function_id = function_id};
    }
    return SJ_OK;
}

sj_status sj_firefox_tables_stack(sj_firefox_tables *tables, uint32_t caller, int64_t function_id,
                                  uint32_t *stack)
{
    bool is_new;
    SJ_TRY(sj_array_reserve(&tables->stacks, &tables->stack_capacity, tables->stack_count, 1,
                            sizeof(*tables->stacks)));
    /* `sub` is above 0, because a key of zeros cannot be used. */
    SJ_TRY(find_index(&tables->known_stacks, function_id, caller + 1, tables->stack_count, stack,
                      &is_new));
    if (is_new) {
        uint32_t function;
        SJ_TRY(find_function(tables, function_id, &function));
        tables->stacks[tables->stack_count++] =
            (sj_firefox_stack){.caller = caller, .function = function};
    }
    return SJ_OK;
}

static sj_status find_module(sj_firefox_tables *tables, int64_t module_id, uint32_t *module)
{
    bool is_new;
    uint32_t index;
    SJ_TRY(sj_array_reserve(&tables->module_ids, &tables->module_capacity, tables->module_count, 1,
                            sizeof(*tables->module_ids)));
    SJ_TRY(find_index(&tables->known_modules, module_id, 1, tables->module_count, &index, &is_new));
    if (is_new) {
        tables->module_ids[tables->module_count++] = module_id;
    }
    *module = index + 1;
    return SJ_OK;
}

/* Reads the row of an id. `*is_known` is false if the database does not have it. */
static sj_status read_row(sqlite3_stmt *row, int64_t id, bool *is_known)
{
    sqlite3_bind_int64(row, 1, id);
    const int result = sqlite3_step(row);
    *is_known = result == SQLITE_ROW;
    return *is_known || result == SQLITE_DONE ? SJ_OK : SJ_EIO;
}

/* Writes the name of a function as a text, and notes its module, file and line. */
static sj_status write_name(sj_firefox_tables *tables, sj_firefox_function *function,
                            sqlite3_stmt *row, FILE *output)
{
    bool is_known;
    sj_status status = read_row(row, function->function_id, &is_known);
    const char *name = is_known ? (const char *)sqlite3_column_text(row, COLUMN_NAME) : NULL;
    fputs(",\n", output);
    sj_json_text(output, name != NULL ? name : "(unknown function)");
    if (is_known && sqlite3_column_type(row, COLUMN_MODULE) != SQLITE_NULL) {
        status = find_module(tables, sqlite3_column_int64(row, COLUMN_MODULE), &function->module);
    }
    if (is_known && sqlite3_column_type(row, COLUMN_FILE) != SQLITE_NULL) {
        function->line = sqlite3_column_int64(row, COLUMN_LINE);
        function->file = ++tables->file_count;
    }
    sqlite3_reset(row);
    return status;
}

static sj_status write_text(sqlite3_stmt *row, int column, int64_t id, FILE *output)
{
    bool is_known;
    const sj_status status = read_row(row, id, &is_known);
    const char *text = is_known ? (const char *)sqlite3_column_text(row, column) : NULL;
    fputs(",\n", output);
    sj_json_text(output, text != NULL ? text : "");
    sqlite3_reset(row);
    return status;
}

/* Writes all texts: the fixed ones, names of functions, paths of modules, files. */
static sj_status write_string_array(sj_firefox_tables *tables, sqlite3_stmt *function,
                                    sqlite3_stmt *module, FILE *output)
{
    fputs("\"stringArray\":[\n\"Lost calls\"", output);
    for (size_t i = 0; i < tables->function_count; i++) {
        SJ_TRY(write_name(tables, &tables->functions[i], function, output));
    }
    for (size_t i = 0; i < tables->module_count; i++) {
        SJ_TRY(write_text(module, 0, tables->module_ids[i], output));
    }
    for (size_t i = 0; i < tables->function_count; i++) {
        if (tables->functions[i].file != 0) {
            SJ_TRY(write_text(function, COLUMN_FILE, tables->functions[i].function_id, output));
        }
    }
    fputc(']', output);
    return SJ_OK;
}

/* Writes one value of a column. */
typedef void cell_writer(const sj_firefox_tables *tables, size_t row, FILE *output);

static void write_index(uint32_t index_and_one, FILE *output)
{
    if (index_and_one == 0) {
        fputs("null", output);
    } else {
        fprintf(output, "%" PRIu32, index_and_one - 1);
    }
}

static void write_caller(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    write_index(tables->stacks[row].caller, output);
}

static void write_stack_function(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    fprintf(output, "%" PRIu32, tables->stacks[row].function);
}

static void write_row(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    (void)tables;
    fprintf(output, "%zu", row);
}

static void write_name_index(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    (void)tables;
    fprintf(output, "%zu", SJ_FIREFOX_TEXTS + row);
}

static void write_module_index(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    fprintf(output, "%zu", SJ_FIREFOX_TEXTS + tables->function_count + row);
}

static void write_file_index(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    fprintf(output, "%zu", SJ_FIREFOX_TEXTS + tables->function_count + tables->module_count + row);
}

static void write_resource(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    fprintf(output, "%" PRId64, (int64_t)tables->functions[row].module - 1);
}

static void write_source(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    write_index(tables->functions[row].file, output);
}

static void write_line(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    if (tables->functions[row].line > 0) {
        fprintf(output, "%" PRId64, tables->functions[row].line);
    } else {
        fputs("null", output);
    }
}

static void write_null(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    (void)tables;
    (void)row;
    fputs("null", output);
}

static void write_zero(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    (void)tables;
    (void)row;
    fputc('0', output);
}

static void write_one(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    (void)tables;
    (void)row;
    fputc('1', output);
}

static void write_no_address(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    (void)tables;
    (void)row;
    fputs("-1", output);
}

static void write_false(const sj_firefox_tables *tables, size_t row, FILE *output)
{
    (void)tables;
    (void)row;
    fputs("false", output);
}

typedef struct table_column {
    const char *name;
    cell_writer *write;
} table_column;

static void write_table(const sj_firefox_tables *tables, const char *name,
                        const table_column *columns, size_t rows, FILE *output)
{
    fprintf(output, ",\n\"%s\":{", name);
    for (const table_column *column = columns; column->name != NULL; column++) {
        fprintf(output, "\"%s\":[", column->name);
        for (size_t row = 0; row < rows; row++) {
            if (row != 0) {
                fputc(',', output);
            }
            column->write(tables, row, output);
        }
        fputs("],\n", output);
    }
    fprintf(output, "\"length\":%zu}", rows);
}

static const table_column stack_columns[] = {
    {"frame", write_stack_function}, {"prefix", write_caller}, {0}};

/* A function has one frame. */
static const table_column frame_columns[] = {
    {"address", write_no_address}, {"inlineDepth", write_zero},
    {"category", write_zero},      {"subcategory", write_zero},
    {"func", write_row},           {"nativeSymbol", write_null},
    {"innerWindowID", write_null}, {"line", write_line},
    {"column", write_null},        {0}};

static const table_column function_columns[] = {
    {"name", write_name_index},     {"isJS", write_false},
    {"relevantForJS", write_false}, {"resource", write_resource},
    {"source", write_source},       {"lineNumber", write_line},
    {"columnNumber", write_null},   {0}};

static const table_column resource_columns[] = {{"lib", write_null},
                                                {"name", write_module_index},
                                                {"host", write_null},
                                                {"type", write_one},
                                                {0}};

static const table_column symbol_columns[] = {{"libIndex", write_null},
                                              {"address", write_null},
                                              {"name", write_null},
                                              {"functionSize", write_null},
                                              {0}};

static const table_column source_columns[] = {
    {"id", write_null},         {"filename", write_file_index}, {"startLine", write_one},
    {"startColumn", write_one}, {"sourceMapURL", write_null},   {0}};

sj_status sj_firefox_tables_write(sj_firefox_tables *tables, sqlite3 *database, FILE *output,
                                  sj_error *error)
{
    sqlite3_stmt *function = NULL;
    sqlite3_stmt *module = NULL;
    sj_status status = SJ_OK;
    fputs("\"shared\":{", output);
    if (sqlite3_prepare_v2(database, sj_firefox_function_sql, -1, &function, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(database, "SELECT path FROM modules WHERE module_id = ?1", -1, &module,
                           NULL) != SQLITE_OK) {
        status = SJ_EIO;
    } else {
        status = write_string_array(tables, function, module, output);
    }
    if (status == SJ_EIO) {
        status = sj_fail(error, SJ_EIO, "cannot read the functions: %s", sqlite3_errmsg(database));
    }
    sqlite3_finalize(function);
    sqlite3_finalize(module);
    if (status == SJ_OK) {
        write_table(tables, "stackTable", stack_columns, tables->stack_count, output);
        write_table(tables, "frameTable", frame_columns, tables->function_count, output);
        write_table(tables, "funcTable", function_columns, tables->function_count, output);
        write_table(tables, "resourceTable", resource_columns, tables->module_count, output);
        write_table(tables, "nativeSymbols", symbol_columns, 0, output);
        write_table(tables, "sources", source_columns, tables->file_count, output);
    }
    fputc('}', output);
    return status;
}

void sj_firefox_tables_deinit(sj_firefox_tables *tables)
{
    sj_hash_map_deinit(&tables->known_stacks);
    sj_hash_map_deinit(&tables->known_functions);
    sj_hash_map_deinit(&tables->known_modules);
    free(tables->stacks);
    free(tables->functions);
    free(tables->module_ids);
    *tables = (sj_firefox_tables){0};
}
