#include "collector-server/forward/clickhouse.h"

#include "collector-server/forward/clickhouse_block.h"
#include "collector-server/forward/clickhouse_refusal.h"
#include "proto/base/array.h"
#include "proto/base/late_library.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_MS = 5000,
    UPLOAD_BYTES = 512 << 10,
    SILENCE_S = 60, /* a request fails after this time without a byte in either direction */
    ANSWER_MAX_BYTES = 256 << 20,
    HTTP_OK = 200
};

/* Functions of libcurl, loaded when needed: its 30 libraries would cost each command 4 ms at its
 * start. */
typedef struct curl_functions {
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_escape) *easy_escape;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_perform) *easy_perform;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
    __typeof__(curl_free) *free;
} curl_functions;

struct sj_forward_target {
    curl_functions http;
    CURL *curl;
    char *url, *user, *password, *ca_file;
    char database[64];
    char secret_header[512];
    const atomic_bool *stop;
    char cluster[64]; /* the cluster that the last `check` found; empty: one node */
};

typedef struct answer_text {
    char *bytes;
    size_t size, capacity;
} answer_text;

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    answer_text *answer = context;
    const size_t more = size * count;
    if (answer->size + more > ANSWER_MAX_BYTES ||
        sj_array_reserve(&answer->bytes, &answer->capacity, answer->size, more + 1, 1) != SJ_OK) {
        return 0;
    }
    memcpy(answer->bytes + answer->size, bytes, more);
    answer->size += more;
    answer->bytes[answer->size] = '\0';
    return more;
}

static int look_for_stop(void *context, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                         curl_off_t up)
{
    const sj_forward_target *target = context;
    (void)down_all, (void)down, (void)up_all, (void)up;
    return target->stop != NULL && atomic_load(target->stop);
}

static sj_status load_curl(curl_functions *functions, sj_error *error)
{
#define SYMBOL(name)                                                                               \
    {                                                                                              \
        "curl_" #name, offsetof(curl_functions, name)                                              \
    }
    static const sj_late_symbol symbols[] = {
        SYMBOL(easy_cleanup), SYMBOL(easy_init),      SYMBOL(easy_reset),    SYMBOL(easy_escape),
        SYMBOL(easy_setopt),  SYMBOL(easy_perform),   SYMBOL(easy_strerror), SYMBOL(easy_getinfo),
        SYMBOL(slist_append), SYMBOL(slist_free_all), SYMBOL(free)};
#undef SYMBOL
    return sj_late_library_load("libcurl-gnutls.so.4", symbols,
                                sizeof(symbols) / sizeof(symbols[0]), functions, error);
}

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return text[0] != '\0' && strspn(text, letters) == strlen(text);
}

static sj_status read_password(const char *path, char **password, sj_error *error)
{
    char line[256];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return sj_fail(error, SJ_EIO, "cannot read the password in %s: %s", path, strerror(errno));
    }
    const bool is_read = fgets(line, sizeof(line), file) != NULL;
    fclose(file);
    if (is_read) {
        line[strcspn(line, "\r\n")] = '\0';
    }
    *password = is_read ? strdup(line) : NULL;
    return *password != NULL ? SJ_OK
                             : sj_fail(error, SJ_EINVAL, "%s: the first line is no password", path);
}

static void close_target(sj_forward_target *target)
{
    if (target == NULL) {
        return;
    }
    if (target->curl != NULL) {
        target->http.easy_cleanup(target->curl);
    }
    free(target->url);
    free(target->user);
    free(target->password);
    free(target->ca_file);
    free(target);
}

static sj_status take_options(sj_forward_target *target, const sj_forward_options *options,
                              sj_error *error)
{
    const char *database = options->database != NULL ? options->database : "sojourn";
    if (strncmp(options->url, "http://", 7) != 0 && strncmp(options->url, "https://", 8) != 0) {
        return sj_fail(error, SJ_EINVAL,
                       "%s: give http://HOST:8123 or https://HOST:8443, a node of ClickHouse",
                       options->url);
    }
    if (!is_name(database) || strlen(database) >= sizeof(target->database)) {
        return sj_fail(error, SJ_EINVAL, "%s: not the name of a database", database);
    }
    snprintf(target->database, sizeof(target->database), "%s", database);
    if (options->password_file != NULL) {
        SJ_TRY(read_password(options->password_file, &target->password, error));
    }
    target->stop = options->stop;
    SJ_TRY(load_curl(&target->http, error));
    target->curl = target->http.easy_init();
    target->url = strdup(options->url);
    target->user = strdup(options->user != NULL ? options->user : "default");
    target->ca_file = options->ca_file != NULL ? strdup(options->ca_file) : NULL;
    return target->curl != NULL && target->url != NULL && target->user != NULL &&
                   (options->ca_file == NULL || target->ca_file != NULL)
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status open_target(const sj_forward_options *options, sj_forward_target **target,
                             sj_error *error)
{
    sj_forward_target *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = take_options(made, options, error);
    if (status != SJ_OK) {
        close_target(made);
        return status;
    }
    *target = made;
    return SJ_OK;
}

typedef struct http_request {
    const char *query;      /* sent in the URL; NULL: the body is the statement */
    const char *settings;   /* "&name=value..." */
    const sj_slice *pieces; /* pieces of the body */
    size_t piece_count;
    int64_t timeout_ms; /* 0: no limit while bytes arrive */
} http_request;

/* The position in a request's body. */
typedef struct body_reader {
    const http_request *request;
    size_t piece, offset;
} body_reader;

static size_t give_body(char *to, size_t size, size_t count, void *context)
{
    body_reader *body = context;
    size_t given = 0;
    while (given < size * count && body->piece < body->request->piece_count) {
        const sj_slice *piece = &body->request->pieces[body->piece];
        const size_t left = piece->size - body->offset;
        const size_t taken = left < size * count - given ? left : size * count - given;
        memcpy(to + given, piece->data + body->offset, taken);
        given += taken;
        body->offset += taken;
        if (body->offset == piece->size) {
            body->piece++;
            body->offset = 0;
        }
    }
    return given;
}

/* Rewinds the body, because the server had closed the connection and curl resends the request on
 * another one. */
static int rewind_body(void *context, curl_off_t offset, int origin)
{
    body_reader *body = context;
    body->piece = body->offset = 0;
    return offset == 0 && origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
}

static curl_off_t body_bytes(const http_request *request)
{
    size_t sum = 0;
    for (size_t i = 0; i < request->piece_count; i++) {
        sum += request->pieces[i].size;
    }
    return (curl_off_t)sum;
}

static CURLcode perform(sj_forward_target *target, const http_request *request, answer_text *answer,
                        char *problem)
{
    CURL *curl = target->curl;
    const curl_functions *http = &target->http;
    body_reader body = {.request = request};
    struct curl_slist *headers = http->slist_append(NULL, "Expect:");
    char header[512];
    char *query = request->query != NULL ? http->easy_escape(curl, request->query, 0) : NULL;
    char *url = NULL;
    http->easy_reset(curl);
    snprintf(header, sizeof(header), "X-ClickHouse-User: %.400s", target->user);
    headers = http->slist_append(headers, header);
    if (target->password != NULL) {
        snprintf(header, sizeof(header), "X-ClickHouse-Key: %.400s", target->password);
        headers = http->slist_append(headers, header);
    }
    const size_t capacity =
        strlen(target->url) + strlen(request->settings) + (query != NULL ? strlen(query) : 0) + 32;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (headers != NULL && (url = malloc(capacity)) != NULL &&
        (request->query == NULL || query != NULL)) {
        snprintf(url, capacity, "%s/?%s%s%s", target->url,
                 query != NULL ? "query=" : "wait_end_of_query=1", query != NULL ? query : "",
                 request->settings);
        http->easy_setopt(curl, CURLOPT_URL, url);
        http->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        http->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        http->easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        http->easy_setopt(curl, CURLOPT_POST, 1L);
        http->easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, body_bytes(request));
        http->easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES);
        http->easy_setopt(curl, CURLOPT_READFUNCTION, give_body);
        http->easy_setopt(curl, CURLOPT_READDATA, &body);
        http->easy_setopt(curl, CURLOPT_SEEKFUNCTION, rewind_body);
        http->easy_setopt(curl, CURLOPT_SEEKDATA, &body);
        http->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
        http->easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
        http->easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
        http->easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
        http->easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
        http->easy_setopt(curl, CURLOPT_WRITEDATA, answer);
        http->easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        http->easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_for_stop);
        http->easy_setopt(curl, CURLOPT_XFERINFODATA, target);
        http->easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
        if (target->ca_file != NULL) {
            http->easy_setopt(curl, CURLOPT_CAINFO, target->ca_file);
        }
        code = http->easy_perform(curl);
    }
    http->slist_free_all(headers);
    http->free(query);
    free(url);
    return code;
}

static sj_status request_answer(sj_forward_target *target, const http_request *request,
                                answer_text *answer, sj_error *error)
{
    char problem[CURL_ERROR_SIZE] = "";
    long http = 0;
    const CURLcode code = perform(target, request, answer, problem);
    if (code == CURLE_OUT_OF_MEMORY) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (code != CURLE_OK) {
        return sj_fail(error, SJ_EAGAIN, "%s is not reached: %s", target->url,
                       problem[0] != '\0' ? problem : target->http.easy_strerror(code));
    }
    target->http.easy_getinfo(target->curl, CURLINFO_RESPONSE_CODE, &http);
    return http == HTTP_OK
               ? SJ_OK
               : sj_clickhouse_refusal(target->url, target->user, http,
                                       answer->bytes != NULL ? answer->bytes : "", error);
}

/* Runs one statement and ignores its answer. */
static sj_status run(sj_forward_target *target, const char *sql, sj_error *error)
{
    answer_text answer = {0};
    const sj_slice body = {.data = (const uint8_t *)sql, .size = strlen(sql)};
    const http_request request = {.settings = "", .pieces = &body, .piece_count = 1};
    const sj_status status = request_answer(target, &request, &answer, error);
    free(answer.bytes);
    return status;
}

sj_status sj_clickhouse_ask(sj_forward_target *target, const char *sql, const char *settings,
                            int64_t timeout_ms, char **answer, size_t *size, sj_error *error)
{
    answer_text text = {0};
    char limits[512];
    snprintf(limits, sizeof(limits), "&database=%s&readonly=1%s", target->database, settings);
    const sj_slice body = {.data = (const uint8_t *)sql, .size = strlen(sql)};
    const http_request request = {
        .settings = limits, .pieces = &body, .piece_count = 1, .timeout_ms = timeout_ms};
    const sj_status status = request_answer(target, &request, &text, error);
    if (status != SJ_OK || (text.bytes == NULL && (text.bytes = strdup("")) == NULL)) {
        free(text.bytes);
        return status != SJ_OK ? status : sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    *answer = text.bytes;
    *size = text.size;
    return SJ_OK;
}

/* Writes the list of a table's columns, with or without types. */
static void print_columns(FILE *text, const sj_forward_table *table, bool types)
{
    fprintf(text, types ? "%s FixedString(32), version UInt64, day Date" : "%s, version, day",
            table->owner);
    for (const sj_forward_column *column = table->columns; column->name != NULL; ++column) {
        if (column->kind == SJ_FORWARD_HISTOGRAM) {
            fprintf(text, types ? ", bins Array(UInt16), counts Array(UInt64)" : ", bins, counts");
        } else {
            fprintf(text, ", %s%s%s", column->name, types ? " " : "",
                    types ? sj_clickhouse_type(column->kind) : "");
        }
    }
}

typedef struct statement {
    char *text;
    size_t size;
    FILE *file;
} statement;

static bool begin_statement(statement *made)
{
    *made = (statement){0};
    made->file = open_memstream(&made->text, &made->size);
    return made->file != NULL;
}

static sj_status run_statement(sj_forward_target *target, statement *made, sj_error *error)
{
    const bool failed = fclose(made->file) != 0;
    const sj_status status =
        failed ? sj_fail(error, SJ_ENOMEM, "out of memory") : run(target, made->text, error);
    free(made->text);
    return status;
}

static sj_status make_raw(sj_forward_target *target, const sj_forward_table *table,
                          const sj_clickhouse_layout *layout, sj_error *error)
{
    statement made;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    fprintf(made.file, "CREATE TABLE IF NOT EXISTS %s.raw_%s (", target->database, table->name);
    print_columns(made.file, table, true);
    const char *replacing = table->is_replacing ? "Replacing" : "";
    if (layout->is_replicated) {
        fprintf(made.file,
                ") ENGINE = Replicated%sMergeTree('/clickhouse/tables/{shard}/%s/raw_%s', "
                "'{replica}'%s)",
                replacing, target->database, table->name, table->is_replacing ? ", version" : "");
    } else {
        fprintf(made.file, ") ENGINE = %sMergeTree%s", replacing,
                table->is_replacing ? "(version)" : "");
    }
    fprintf(made.file, " PARTITION BY toYYYYMM(day) ORDER BY (%s, %s%s)", table->owner,
            table->is_replacing ? "" : "version, ", table->order);
    return run_statement(target, &made, error);
}

static sj_status make_view(sj_forward_target *target, const sj_forward_table *table,
                           const sj_clickhouse_layout *layout, sj_error *error)
{
    statement made;
    const bool is_sessions = strcmp(table->name, "sessions") == 0;
    const bool is_removals = table == &sj_forward_removals;
    const char *database = target->database;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    fprintf(made.file, "CREATE VIEW IF NOT EXISTS %s.%s%s AS SELECT ", database,
            layout->cluster != NULL ? "part_" : "", table->name);
    print_columns(made.file, table, false);
    if (table == &sj_forward_commands) {
        fprintf(made.file, " FROM %s.raw_%s FINAL WHERE removed = 0", database, table->name);
        return run_statement(target, &made, error);
    }
    if (table->is_replacing) {
        fprintf(made.file, " FROM %s.raw_%s FINAL WHERE session IN (SELECT session FROM %s.%s)",
                database, table->name, database,
                layout->cluster != NULL ? "part_sessions" : "sessions");
        return run_statement(target, &made, error);
    }
    fprintf(made.file,
            " FROM %s.raw_%s WHERE (session, version) IN (SELECT session, max(version) FROM "
            "%s.raw_sessions GROUP BY session)%s",
            database, is_removals ? "sessions" : table->name, database,
            is_removals   ? " AND removed = 1"
            : is_sessions ? " AND removed = 0"
                          : "");
    return run_statement(target, &made, error);
}

static sj_status make_distributed(sj_forward_target *target, const sj_forward_table *table,
                                  const char *name_prefix, const char *local_prefix,
                                  const char *cluster, sj_error *error)
{
    statement made;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    fprintf(made.file, "CREATE TABLE IF NOT EXISTS %s.%s%s (", target->database, name_prefix,
            table->name);
    print_columns(made.file, table, true);
    fprintf(made.file, ") ENGINE = Distributed(%s, %s, %s%s, cityHash64(%s))", cluster,
            target->database, local_prefix, table->name, table->owner);
    return run_statement(target, &made, error);
}

static sj_status make_table(sj_forward_target *target, const sj_forward_table *table,
                            const sj_clickhouse_layout *layout, sj_error *error)
{
    SJ_TRY(make_view(target, table, layout, error));
    if (layout->cluster == NULL) {
        return SJ_OK;
    }
    SJ_TRY(make_distributed(target, table, "", "part_", layout->cluster, error));
    return table == &sj_forward_removals /* removals are rows of `sessions` */
               ? SJ_OK
               : make_distributed(target, table, "put_", "raw_", layout->cluster, error);
}

static sj_status ask_number(sj_forward_target *target, const char *sql, uint64_t *number,
                            sj_error *error)
{
    char *answer = NULL;
    size_t size = 0;
    SJ_TRY(sj_clickhouse_ask(target, sql, "", 0, &answer, &size, error));
    *number = strtoull(answer, NULL, 10);
    free(answer);
    return SJ_OK;
}

/* Reads the version of the tables and the name of their cluster. */
static sj_status read_schema(sj_forward_target *target, unsigned long long *version,
                             sj_error *error)
{
    char sql[160];
    char *answer = NULL;
    size_t size = 0;
    snprintf(sql, sizeof(sql), "SELECT max(version), any(cluster) FROM %s.schema_version",
             target->database);
    const sj_status status = sj_clickhouse_ask(target, sql, "", 0, &answer, &size, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, status,
                       "%s has no tables of Sojourn in %s: run \"sojourn forward init\" first",
                       target->url, target->database);
    }
    SJ_TRY(status);
    char *cluster = NULL;
    *version = strtoull(answer, &cluster, 10);
    cluster += *cluster == '\t';
    snprintf(target->cluster, sizeof(target->cluster), "%.*s", (int)strcspn(cluster, "\n"),
             cluster);
    free(answer);
    if (target->cluster[0] != '\0' && !is_name(target->cluster)) {
        return sj_fail(error, SJ_EVERSION, "%s.schema_version was changed by hand",
                       target->database);
    }
    return SJ_OK;
}

static sj_status check_schema(sj_forward_target *target, sj_error *error)
{
    unsigned long long version = 0;
    SJ_TRY(read_schema(target, &version, error));
    return version == SJ_CLICKHOUSE_SCHEMA
               ? SJ_OK
               : sj_fail(error, SJ_EVERSION,
                         "%s.%s has tables of version %llu, this Sojourn writes version %d%s",
                         target->url, target->database, version, (int)SJ_CLICKHOUSE_SCHEMA,
                         version < SJ_CLICKHOUSE_SCHEMA
                             ? ": run \"sojourn forward init\" with it again"
                             : "");
}

/* Fails if the tables are of another layout: tables of two layouts together would answer only in
 * part. */
static sj_status check_layout(sj_forward_target *target, const sj_clickhouse_layout *layout,
                              sj_error *error)
{
    if (strcmp(target->cluster, layout->cluster != NULL ? layout->cluster : "") == 0) {
        return SJ_OK;
    }
    if (target->cluster[0] == '\0') {
        return sj_fail(error, SJ_EINVAL, "%s.%s has tables of one node: init them without --shards",
                       target->url, target->database);
    }
    return sj_fail(error, SJ_EINVAL,
                   "%s.%s has tables of the cluster %s: init them with --shards %s", target->url,
                   target->database, target->cluster, target->cluster);
}

/* Adds the columns of estimates to function_stats, which did not have them before version 6. Drops
 * the view and the distributed tables, so that they are created again with these columns. */
static sj_status add_estimates(sj_forward_target *target, sj_error *error)
{
    static const char *const shown_by[] = {"", "part_", "put_"};
    char sql[256];
    uint64_t is_there = 0;
    for (size_t i = 0; i < sizeof(shown_by) / sizeof(shown_by[0]); ++i) {
        snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS %s.%sfunction_stats", target->database,
                 shown_by[i]);
        SJ_TRY(run(target, sql, error));
    }
    SJ_TRY(ask_number(target,
                      "SELECT count() FROM system.columns WHERE database = currentDatabase() "
                      "AND table = 'raw_function_stats' AND name = 'error_ns'",
                      &is_there, error));
    snprintf(sql, sizeof(sql),
             "ALTER TABLE %s.raw_function_stats ADD COLUMN untimed_calls Nullable(Int64), "
             "ADD COLUMN sampled_calls Nullable(Int64), ADD COLUMN error_ns Nullable(Int64)",
             target->database);
    return is_there == 0 ? run(target, sql, error) : SJ_OK;
}

sj_status sj_clickhouse_init(sj_forward_target *target, const sj_clickhouse_layout *layout,
                             sj_error *error)
{
    char sql[256];
    if (layout->cluster != NULL && !is_name(layout->cluster)) {
        return sj_fail(error, SJ_EINVAL, "%s: not the name of a cluster", layout->cluster);
    }
    snprintf(sql, sizeof(sql), "CREATE DATABASE IF NOT EXISTS %s", target->database);
    SJ_TRY(run(target, sql, error));
    unsigned long long version = 0;
    const sj_status status = read_schema(target, &version, error);
    if (status != SJ_OK && status != SJ_ENOTFOUND) {
        return status;
    }
    if (version > SJ_CLICKHOUSE_SCHEMA) {
        return check_schema(target, error);
    }
    SJ_TRY(version != 0 ? check_layout(target, layout, error) : SJ_OK);
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        SJ_TRY(make_raw(target, &sj_forward_tables[i], layout, error));
    }
    SJ_TRY(make_raw(target, &sj_forward_calls, layout, error));
    SJ_TRY(make_raw(target, &sj_forward_commands, layout, error));
    SJ_TRY(version < SJ_CLICKHOUSE_SCHEMA ? add_estimates(target, error) : SJ_OK);
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        SJ_TRY(make_table(target, &sj_forward_tables[i], layout, error));
    }
    SJ_TRY(make_table(target, &sj_forward_removals, layout, error));
    SJ_TRY(make_table(target, &sj_forward_calls, layout, error));
    SJ_TRY(make_table(target, &sj_forward_commands, layout, error));
    if (layout->cluster != NULL) { /* has one row for each shard that answers */
        snprintf(sql, sizeof(sql),
                 "CREATE TABLE IF NOT EXISTS %s.shards (dummy UInt8) "
                 "ENGINE = Distributed(%s, system, one)",
                 target->database, layout->cluster);
        SJ_TRY(run(target, sql, error));
    }
    snprintf(sql, sizeof(sql),
             "CREATE TABLE IF NOT EXISTS %s.schema_version (version UInt64, cluster String) "
             "ENGINE = TinyLog",
             target->database);
    SJ_TRY(run(target, sql, error));
    snprintf(sql, sizeof(sql), "INSERT INTO %s.schema_version VALUES (%d, '%s')", target->database,
             (int)SJ_CLICKHOUSE_SCHEMA, layout->cluster != NULL ? layout->cluster : "");
    return version < SJ_CLICKHOUSE_SCHEMA ? run(target, sql, error) : SJ_OK;
}

static sj_status newest_version(sj_forward_target *target, const sj_forward_table *table,
                                sj_slice owners, uint64_t *version, sj_error *error)
{
    enum { ID_BYTES = 16 };
    statement made;
    char *answer = NULL;
    size_t size = 0;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    /* Ask the raw table instead of the view, because a removal counts, too. */
    fprintf(made.file, "SELECT max(version) FROM %s_%s WHERE %s IN (''",
            target->cluster[0] != '\0' ? "put" : "raw", table->name, table->owner);
    for (size_t i = 0; i < owners.size; ++i) {
        fprintf(made.file, "%s%02x%s", i % ID_BYTES == 0 ? ", '" : "", owners.data[i],
                i % ID_BYTES == ID_BYTES - 1 ? "'" : "");
    }
    fprintf(made.file, ")");
    sj_status status = fclose(made.file) != 0 ? sj_fail(error, SJ_ENOMEM, "out of memory") : SJ_OK;
    if (status == SJ_OK) {
        status = sj_clickhouse_ask(target, made.text, "", 0, &answer, &size, error);
    }
    *version = status == SJ_OK ? strtoull(answer, NULL, 10) : 0;
    free(made.text);
    free(answer);
    return status;
}

static sj_status write_rows(sj_forward_target *target, const sj_forward_table *table,
                            const sj_native_rows *rows, sj_error *error)
{
    statement made;
    answer_text answer = {0};
    sj_clickhouse_block block;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    fprintf(made.file, "INSERT INTO %s.%s_%s (", target->database,
            target->cluster[0] != '\0' ? "put" : "raw", table->name);
    print_columns(made.file, table, false);
    fprintf(made.file, ") FORMAT Native");
    const bool is_made = fclose(made.file) == 0;
    sj_status status = sj_clickhouse_block_make(&block, table, rows);
    if (!is_made || status != SJ_OK) {
        status = sj_fail(error, SJ_ENOMEM, "out of memory");
    } else {
        const http_request request = {
            .query = made.text,
            .settings = target->cluster[0] != '\0' ? "&insert_distributed_sync=1" : "",
            .pieces = block.pieces,
            .piece_count = block.count};
        status = request_answer(target, &request, &answer, error);
    }
    sj_clickhouse_block_deinit(&block);
    free(made.text);
    free(answer.bytes);
    return status;
}

/* Counts all shards of the cluster, whether they answer or not. */
static sj_status count_all_shards(sj_forward_target *target, uint64_t *all, sj_error *error)
{
    char sql[160];
    *all = 1;
    if (target->cluster[0] == '\0') {
        return SJ_OK;
    }
    snprintf(sql, sizeof(sql),
             "SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = '%s'",
             target->cluster);
    return ask_number(target, sql, all, error);
}

sj_status sj_clickhouse_count_shards(sj_forward_target *target, uint64_t *answering,
                                     sj_error *error)
{
    char sql[160];
    char *answer = NULL;
    size_t size = 0;
    *answering = 1;
    if (target->cluster[0] == '\0') {
        return SJ_OK;
    }
    snprintf(sql, sizeof(sql), "SELECT count() FROM %s.shards", target->database);
    SJ_TRY(sj_clickhouse_ask(target, sql, SJ_CLICKHOUSE_PARTIAL, 0, &answer, &size, error));
    *answering = strtoull(answer, NULL, 10);
    free(answer);
    return SJ_OK;
}

/* Appends as much of a text to a line as fits. */
__attribute__((format(printf, 3, 4))) static void append_text(char *line, size_t capacity,
                                                              const char *format, ...)
{
    va_list values;
    const size_t used = strlen(line);
    va_start(values, format);
    vsnprintf(line + used, capacity - used, format, values);
    va_end(values);
}

/* Appends the names of the tables that some labs do not send. The sessions of these labs do not
 * have rows there. */
static sj_status append_left_out(sj_forward_target *target, char *line, size_t capacity,
                                 sj_error *error)
{
    char *answer = NULL;
    size_t size = 0;
    SJ_TRY(sj_clickhouse_ask(target,
                             "SELECT arrayStringConcat(arraySort(groupUniqArray(name)), ', ') "
                             "FROM left_out",
                             SJ_CLICKHOUSE_PARTIAL, 0, &answer, &size, error));
    const int length = (int)strcspn(answer, "\n");
    if (length != 0) {
        append_text(line, capacity, "; some labs do not give %.*s", length, answer);
    }
    free(answer);
    return SJ_OK;
}

sj_status sj_clickhouse_explain(sj_forward_target *target, uint64_t answered, char *line,
                                size_t capacity, sj_error *error)
{
    char *answer = NULL;
    size_t size = 0;
    uint64_t all = 0;
    uint64_t answering = 0;
    SJ_TRY(count_all_shards(target, &all, error));
    SJ_TRY(sj_clickhouse_count_shards(target, &answering, error));
    answering = answered < answering ? answered : answering;
    SJ_TRY(sj_clickhouse_ask(target,
                             "SELECT version(), toString(count()), toString(uniqExact(lab)) "
                             "FROM sessions",
                             SJ_CLICKHOUSE_PARTIAL, 0, &answer, &size, error));
    char *sessions = strchr(answer, '\t');
    char *labs = sessions != NULL ? strchr(sessions + 1, '\t') : NULL;
    if (labs != NULL) {
        *sessions = *labs = '\0';
        labs[1 + strcspn(labs + 1, "\n")] = '\0';
        snprintf(line, capacity, "answered by ClickHouse %s at %s: %s sessions of %s labs", answer,
                 target->url, sessions + 1, labs + 1);
        if (answering < all) {
            append_text(line, capacity, "; INCOMPLETE: %llu of %llu shards do not answer",
                        (unsigned long long)(all - answering), (unsigned long long)all);
        }
    }
    free(answer);
    return labs != NULL ? append_left_out(target, line, capacity, error)
                        : sj_fail(error, SJ_EIO, "%s: not an answer of ClickHouse", target->url);
}

const sj_forward_target_kind sj_forward_clickhouse = {.name = "clickhouse",
                                                      .open = open_target,
                                                      .check = check_schema,
                                                      .newest_version = newest_version,
                                                      .write = write_rows,
                                                      .close = close_target};
