#include "collector-server/forward/cluster_question.h"

#include "collector-server/forward/clickhouse.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "collector-server/forward/questions.inc"

enum { MOST_ROWS = 1000000, NAME_BYTES = 64, SETTINGS_BYTES = 224 };

const sj_shipped_query *sj_cluster_questions(size_t *count)
{
    *count = sizeof(queries) / sizeof(queries[0]);
    return queries;
}

const sj_shipped_query *sj_cluster_question_find(const char *name)
{
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); ++i) {
        if (strcmp(queries[i].name, name) == 0) {
            return &queries[i];
        }
    }
    return NULL;
}

char *sj_cluster_pattern(const char *pattern)
{
    char *made = malloc(2 * strlen(pattern) + 1);
    char *to = made;
    for (const char *at = pattern; made != NULL && *at != '\0'; ++at) {
        if (*at == '_' || *at == '%' || *at == '\\') {
            *to++ = '\\';
        }
        *to++ = (char)(*at == '*' ? '%' : *at == '?' ? '_' : *at);
    }
    if (made != NULL) {
        *to = '\0';
    }
    return made;
}

static void put_literal(FILE *text, const char *value)
{
    char *end = NULL;
    strtod(value, &end);
    const size_t digits = strspn(value, "0123456789.-+eE");
    if (end != value && *end == '\0' && value[digits] == '\0') {
        fputs(value, text);
        return;
    }
    fputc('\'', text);
    for (const char *at = value; *at != '\0'; ++at) {
        if (*at == '\'' || *at == '\\') {
            fputc('\\', text);
        }
        fputc(*at, text);
    }
    fputc('\'', text);
}

/* Returns the end of a text, quoted name or comment that begins at `at`. Returns `at` if none
 * begins there. */
static const char *skip_text(const char *at)
{
    if (*at == '\'' || *at == '"' || *at == '`') {
        const char quote = *at;
        for (++at; *at != '\0' && *at != quote; ++at) {
            at += *at == '\\' && at[1] != '\0';
        }
        return *at != '\0' ? at + 1 : at;
    }
    if (strncmp(at, "--", 2) == 0) {
        return at + strcspn(at, "\n");
    }
    if (strncmp(at, "/*", 2) == 0) {
        const char *end = strstr(at + 2, "*/");
        return end != NULL ? end + 2 : at + strlen(at);
    }
    return at;
}

static size_t name_length(const char *at)
{
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_') {
        length++;
    }
    return isdigit((unsigned char)at[0]) ? 0 : length;
}

sj_status sj_cluster_fill(const char *sql, const char *(*find)(void *context, const char *name),
                          void *context, char **filled, sj_error *error)
{
    char *bytes = NULL;
    size_t size = 0;
    sj_status status = SJ_OK;
    FILE *text = open_memstream(&bytes, &size);
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    for (const char *at = sql; status == SJ_OK && *at != '\0';) {
        const char *end = skip_text(at);
        const size_t length = end == at && *at == ':' ? name_length(at + 1) : 0;
        if (length != 0 && length < NAME_BYTES) {
            char name[NAME_BYTES];
            snprintf(name, sizeof(name), "%.*s", (int)length, at + 1);
            const char *value = find(context, name);
            if (value == NULL) {
                status =
                    sj_fail(error, SJ_EINVAL,
                            "the query has the parameter :%s: give --param %s=VALUE", name, name);
            } else {
                put_literal(text, value);
            }
            at += length + 1;
        } else {
            end += end == at;
            fwrite(at, 1, (size_t)(end - at), text);
            at = end;
        }
    }
    if (fclose(text) != 0 && status == SJ_OK) {
        status = sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (status != SJ_OK) {
        free(bytes);
        return status;
    }
    *filled = bytes;
    return SJ_OK;
}

/* Returns the statement without trailing semicolons, followed by the answer format that this file
 * reads. The caller frees it. */
static char *with_format(const char *sql)
{
    size_t size = strlen(sql);
    while (size > 0 && (isspace((unsigned char)sql[size - 1]) || sql[size - 1] == ';')) {
        size--;
    }
    char *made = malloc(size + 32);
    if (made != NULL) {
        snprintf(made, size + 32, "%.*s\nFORMAT JSONCompact", (int)size, sql);
    }
    return made;
}

static bool make_table(sqlite3 *database, const json_t *columns, sqlite3_stmt **insert)
{
    sqlite3_str *table = sqlite3_str_new(database);
    sqlite3_str *values = sqlite3_str_new(database);
    sqlite3_str_appendall(table, "CREATE TEMP TABLE answer (");
    sqlite3_str_appendall(values, "INSERT INTO temp.answer VALUES (");
    for (size_t i = 0; i < json_array_size(columns); ++i) {
        const char *name = json_string_value(json_object_get(json_array_get(columns, i), "name"));
        sqlite3_str_appendf(table, "%s\"%w\"", i != 0 ? ", " : "", name != NULL ? name : "?");
        sqlite3_str_appendall(values, i != 0 ? ", ?" : "?");
    }
    sqlite3_str_appendall(table, ")");
    sqlite3_str_appendall(values, ")");
    char *create = sqlite3_str_finish(table);
    char *fill = sqlite3_str_finish(values);
    const bool made =
        create != NULL && fill != NULL &&
        sqlite3_exec(database, "DROP TABLE IF EXISTS temp.answer", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(database, create, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(database, fill, -1, insert, NULL) == SQLITE_OK &&
        sqlite3_exec(database, "SAVEPOINT answer", NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_free(create);
    sqlite3_free(fill);
    return made;
}

/* Binds one cell of an answer. The answer contains whole numbers of 64 bits as text. Arrays and
 * tuples are stored as JSON text. */
static void bind_cell(sqlite3_stmt *insert, int at, const json_t *cell, const char *type)
{
    const char *text = json_string_value(cell);
    char *end = NULL;
    const bool is_whole = type != NULL && strstr(type, "Int") != NULL && text != NULL;
    const long long number = is_whole ? strtoll(text, &end, 10) : 0;
    if (json_is_null(cell)) {
        sqlite3_bind_null(insert, at);
    } else if (is_whole && *end == '\0' && number != INT64_MAX) {
        sqlite3_bind_int64(insert, at, number);
    } else if (text != NULL) {
        sqlite3_bind_text(insert, at, text, -1, SQLITE_STATIC);
    } else if (json_is_integer(cell)) {
        sqlite3_bind_int64(insert, at, json_integer_value(cell));
    } else if (json_is_real(cell)) {
        sqlite3_bind_double(insert, at, json_real_value(cell));
    } else {
        sqlite3_bind_text(insert, at, json_dumps(cell, JSON_COMPACT | JSON_ENCODE_ANY), -1, free);
    }
}

static sj_status fill_table(sqlite3 *database, const json_t *root, int64_t most, bool *is_cut,
                            sj_error *error)
{
    const json_t *columns = json_object_get(root, "meta");
    const json_t *rows = json_object_get(root, "data");
    sqlite3_stmt *insert = NULL;
    bool is_good = make_table(database, columns, &insert);
    *is_cut = (int64_t)json_array_size(rows) > most;
    for (size_t i = 0; is_good && i < json_array_size(rows) && (int64_t)i < most; ++i) {
        const json_t *row = json_array_get(rows, i);
        for (size_t c = 0; c < json_array_size(columns); ++c) {
            const json_t *column = json_array_get(columns, c);
            bind_cell(insert, (int)c + 1, json_array_get(row, c),
                      json_string_value(json_object_get(column, "type")));
        }
        is_good = sqlite3_step(insert) == SQLITE_DONE && sqlite3_reset(insert) == SQLITE_OK;
    }
    is_good = is_good && sqlite3_exec(database, "RELEASE answer", NULL, NULL, NULL) == SQLITE_OK;
    const sj_status status = is_good
                                 ? SJ_OK
                                 : sj_fail(error, SJ_EIO, "the cluster's answer is not a table: %s",
                                           sqlite3_errmsg(database));
    sqlite3_finalize(insert);
    if (!is_good) {
        sqlite3_exec(database, "ROLLBACK TO answer; RELEASE answer", NULL, NULL, NULL);
    }
    return status;
}

static sj_status parse_reply(const char *bytes, size_t size, int64_t most, sqlite3 *database,
                             bool *is_cut, sj_error *error)
{
    json_error_t problem;
    json_t *root = json_loadb(bytes, size, 0, &problem);
    if (root == NULL) {
        return sj_fail(error, SJ_EIO, "the cluster's answer cannot be read: %s", problem.text);
    }
    const sj_status status = fill_table(database, root, most, is_cut, error);
    json_decref(root);
    return status;
}

sj_status sj_cluster_ask_into(sj_forward_target *target, const char *sql,
                              const sj_cluster_limits *limits, sqlite3 *database, bool *is_cut,
                              sj_error *error)
{
    const int64_t most = limits->rows != 0 ? limits->rows : MOST_ROWS;
    char settings[SETTINGS_BYTES];
    char *bytes = NULL;
    size_t size = 0;
    char *statement = with_format(sql);
    if (statement == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    snprintf(settings, sizeof(settings),
             SJ_CLICKHOUSE_PARTIAL "&max_result_rows=%lld&result_overflow_mode=break"
                                   "&max_execution_time=%lld"
                                   "&output_format_json_quote_64bit_integers=1",
             (long long)most + 1, (long long)(limits->time_ms + 999) / 1000);
    sj_status status =
        sj_clickhouse_ask(target, statement, settings, limits->time_ms, &bytes, &size, error);
    free(statement);
    if (status == SJ_OK) {
        status = parse_reply(bytes, size, most, database, is_cut, error);
        free(bytes);
    }
    return status;
}

sj_status sj_cluster_ask(sj_forward_target *target, const char *sql,
                         const sj_cluster_limits *limits, sqlite3 **reply, bool *is_cut,
                         sj_error *error)
{
    sqlite3 *database = NULL;
    const sj_status status = sqlite3_open(":memory:", &database) == SQLITE_OK
                                 ? sj_cluster_ask_into(target, sql, limits, database, is_cut, error)
                                 : sj_fail(error, SJ_ENOMEM, "out of memory");
    if (status != SJ_OK) {
        sqlite3_close(database);
        return status;
    }
    *reply = database;
    return SJ_OK;
}
