#include "collector-server/export/call_arguments.h"

#include "collector-server/export/json_text.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest integer up to which all integers are exact as doubles. JSON readers use doubles. */
#define EXACT_MOST (INT64_C(1) << 53)

enum { COLUMN_POSITION, COLUMN_KIND, COLUMN_VALUE, COLUMN_NOTE, COLUMN_RULES };

/* Several rules may store the same value. GROUP BY merges their rows. */
static const char values_sql[] =
    "SELECT position, kind, value, note, nullif(group_concat(nullif(rule, ''), ', '), '') "
    "FROM arguments WHERE session_id = ?1 AND call_id = ?2 GROUP BY position, kind "
    "ORDER BY position = 0, position, kind";

static const char costs_sql[] =
    "SELECT cpu_ns, cpu_self_ns, allocations, allocated_bytes, frees, freed_bytes, "
    "allocated_self_bytes FROM call_costs WHERE session_id = ?1 AND call_id = ?2";

static const char names_sql[] =
    "SELECT function_id, position, max(name) FROM value_types WHERE session_id = ?1 AND name <> '' "
    "AND function_id IS NOT NULL AND position IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2";

static int compare_names(const void *left, const void *right)
{
    const sj_value_name *a = left;
    const sj_value_name *b = right;
    return a->function_id != b->function_id
               ? (a->function_id < b->function_id ? -1 : 1)
               : (a->position > b->position) - (a->position < b->position);
}

static sj_status add_name(void *context, sqlite3_stmt *row)
{
    sj_call_arguments_reader *reader = context;
    SJ_TRY(sj_array_reserve(&reader->names, &reader->name_capacity, reader->name_count, 1,
                            sizeof(*reader->names)));
    sj_value_name *name = &reader->names[reader->name_count];
    *name = (sj_value_name){.function_id = sqlite3_column_int64(row, 0),
                            .position = sqlite3_column_int64(row, 1),
                            .name = strdup((const char *)sqlite3_column_text(row, 2))};
    reader->name_count += name->name != NULL;
    return name->name != NULL ? SJ_OK : SJ_ENOMEM;
}

/* Prepares `sql` if `any_sql` returns a row for the session. Otherwise does not change
 * `*statement`. */
static sj_status prepare(sqlite3 *database, const char *any_sql, const char *sql,
                         int64_t session_id, sqlite3_stmt **statement)
{
    sqlite3_stmt *any = NULL;
    int result = sqlite3_prepare_v2(database, any_sql, -1, &any, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(any, 1, session_id);
        result = sqlite3_step(any);
    }
    sqlite3_finalize(any);
    if (result == SQLITE_DONE) {
        return SJ_OK;
    }
    if (result != SQLITE_ROW ||
        sqlite3_prepare_v2(database, sql, -1, statement, NULL) != SQLITE_OK) {
        return SJ_EIO;
    }
    sqlite3_bind_int64(*statement, 1, session_id);
    return SJ_OK;
}

sj_status sj_call_arguments_open(sqlite3 *database, int64_t session_id,
                                 sj_call_arguments_reader *reader, sj_error *error)
{
    *reader = (sj_call_arguments_reader){.session_id = session_id};
    sj_status status = prepare(database, "SELECT 1 FROM arguments WHERE session_id = ?1 LIMIT 1",
                               values_sql, session_id, &reader->values);
    if (status == SJ_OK) {
        status = prepare(database, "SELECT 1 FROM call_costs WHERE session_id = ?1 LIMIT 1",
                         costs_sql, session_id, &reader->costs);
    }
    if (status != SJ_OK) {
        return sj_fail(error, status, "cannot read the values: %s", sqlite3_errmsg(database));
    }
    return reader->values == NULL
               ? SJ_OK
               : sj_sql_each(database, names_sql, SJ_SQL_INTS(session_id), add_name, reader, error);
}

void sj_call_arguments_close(sj_call_arguments_reader *reader)
{
    sqlite3_finalize(reader->values);
    sqlite3_finalize(reader->costs);
    for (size_t i = 0; i < reader->name_count; i++) {
        free(reader->names[i].name);
    }
    free(reader->names);
    *reader = (sj_call_arguments_reader){0};
}

/* Writes the JSON key of a value, for example "errno", "result", "path" or "argument 2". */
static void write_key(const sj_call_arguments_reader *reader, int64_t function_id,
                      sqlite3_stmt *row, FILE *output)
{
    const sj_value_name key = {.function_id = function_id,
                               .position = sqlite3_column_int64(row, COLUMN_POSITION)};
    const char *kind = (const char *)sqlite3_column_text(row, COLUMN_KIND);
    const sj_value_name *named =
        reader->name_count != 0
            ? bsearch(&key, reader->names, reader->name_count, sizeof(key), compare_names)
            : NULL;
    if (kind != NULL && strcmp(kind, "errno") == 0) {
        fputs("\"errno\":", output);
    } else if (kind != NULL && strcmp(kind, "thrown") == 0) {
        fputs("\"thrown\":", output);
    } else if (key.position == 0) {
        fputs("\"result\":", output);
    } else if (named != NULL) {
        sj_json_text(output, named->name);
        fputc(':', output);
    } else {
        fprintf(output, "\"argument %lld\":", (long long)key.position);
    }
}

static void write_number(sqlite3_stmt *row, FILE *output)
{
    const int64_t number = sqlite3_column_int64(row, COLUMN_VALUE);
    const bool is_exact = number <= EXACT_MOST && number >= -EXACT_MOST;
    fprintf(output, is_exact ? "%lld" : "\"%lld\"", (long long)number);
}

static void write_value(sqlite3_stmt *row, FILE *output)
{
    const int type = sqlite3_column_type(row, COLUMN_VALUE);
    const char *note = (const char *)sqlite3_column_text(row, COLUMN_NOTE);
    if (type == SQLITE_INTEGER) {
        write_number(row, output);
    } else if (type == SQLITE_FLOAT && isfinite(sqlite3_column_double(row, COLUMN_VALUE))) {
        fprintf(output, "%.17g", sqlite3_column_double(row, COLUMN_VALUE));
    } else if (type == SQLITE_NULL && note != NULL && strcmp(note, "null") == 0) {
        fputs("null", output);
    } else if (type == SQLITE_NULL) {
        sj_json_text(output, note != NULL ? note : "");
    } else {
        const char *text = (const char *)sqlite3_column_text(row, COLUMN_VALUE);
        sj_json_text(output, text != NULL ? text : "");
    }
}

/* A JSON object with the recorded data of a call, which is written pair by pair. An object without
 * pairs is not written. */
typedef struct pair_list {
    const sj_call_arguments_reader *reader;
    int64_t function_id;
    FILE *output;
    const char *before; /* written before the object */
    char *rules;        /* rules of the first value that has some */
    bool has_any;
} pair_list;

static FILE *begin_pair(pair_list *pairs)
{
    if (!pairs->has_any) {
        fputs(pairs->before, pairs->output);
    }
    fputc(pairs->has_any ? ',' : '{', pairs->output);
    pairs->has_any = true;
    return pairs->output;
}

static sj_status write_pair(void *context, sqlite3_stmt *row)
{
    pair_list *pairs = context;
    FILE *output = begin_pair(pairs);
    write_key(pairs->reader, pairs->function_id, row, output);
    write_value(row, output);
    if (pairs->rules == NULL && sqlite3_column_type(row, COLUMN_RULES) != SQLITE_NULL) {
        pairs->rules = strdup((const char *)sqlite3_column_text(row, COLUMN_RULES));
        return pairs->rules != NULL ? SJ_OK : SJ_ENOMEM;
    }
    return SJ_OK;
}

static sj_status write_values(pair_list *pairs, int64_t call_id, sj_error *error)
{
    sqlite3_bind_int64(pairs->reader->values, 2, call_id);
    const sj_status status = sj_sql_each_row(pairs->reader->values, write_pair, pairs, error);
    if (pairs->rules != NULL) {
        FILE *output = begin_pair(pairs);
        fputs("\"rules\":", output);
        sj_json_text(output, pairs->rules);
        free(pairs->rules);
    }
    return status;
}

static sj_status write_costs(void *context, sqlite3_stmt *row)
{
    pair_list *pairs = context;
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        if (sqlite3_column_type(row, i) != SQLITE_NULL) {
            fprintf(begin_pair(pairs), "\"%s\":%lld", sqlite3_column_name(row, i),
                    (long long)sqlite3_column_int64(row, i));
        }
    }
    return SJ_OK;
}

sj_status sj_call_arguments_write(const sj_call_arguments_reader *reader, int64_t function_id,
                                  int64_t call_id, const char *before, FILE *output,
                                  sj_error *error)
{
    pair_list pairs = {
        .reader = reader, .function_id = function_id, .output = output, .before = before};
    sj_status status = reader->values != NULL ? write_values(&pairs, call_id, error) : SJ_OK;
    if (status == SJ_OK && reader->costs != NULL) {
        sqlite3_bind_int64(reader->costs, 2, call_id);
        status = sj_sql_each_row(reader->costs, write_costs, &pairs, error);
    }
    if (pairs.has_any) {
        fputc('}', output);
    }
    return status;
}

sj_status sj_call_arguments_text(const sj_call_arguments_reader *reader, int64_t function_id,
                                 int64_t call_id, char **text, sj_error *error)
{
    size_t size = 0;
    *text = NULL;
    if (reader->values == NULL && reader->costs == NULL) {
        return SJ_OK;
    }
    FILE *output = open_memstream(text, &size);
    if (output == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = sj_call_arguments_write(reader, function_id, call_id, "", output, error);
    if (fclose(output) != 0) {
        status = SJ_ENOMEM;
    }
    if (status != SJ_OK || size == 0) {
        free(*text);
        *text = NULL;
    }
    return status;
}
