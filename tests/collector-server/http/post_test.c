/* Requests that change something: the token, marks of other sites, bodies. */
#include "collector-server/http/import_progress.h"
#include "collector-server/http/post.h"
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char database_path[64];
static char token_path[80];
static char token[80];
static sqlite3 *database;
static sj_http *server;

static int start_server(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "http_post_test.%d.db", (int)getpid());
    snprintf(token_path, sizeof(token_path), "%s.token", database_path);
    unlink(token_path);
    database = fixture_create(database_path, 0);
    fixture_run(database, "INSERT INTO device_tokens VALUES (1, x'00', 1, NULL);"
                          "UPDATE devices SET own_tags = '{\"site\":\"oslo\"}',"
                          " tags = '{\"site\":\"oslo\"}'");
    const sj_http_options options = {.database_path = database_path, .token_path = token_path};
    if (sj_http_start(&options, &server, &error) != SJ_OK) {
        return -1;
    }
    FILE *file = fopen(token_path, "re");
    const bool is_read = file != NULL && fscanf(file, "%70s", token) == 1;
    fclose(file);
    return is_read ? 0 : -1;
}

static int stop_server(void **state)
{
    (void)state;
    sj_http_stop(server);
    sqlite3_close(database);
    unlink(token_path);
    return unlink(database_path);
}

/* Sends a body with the given headers ("A: b\r\n" each). The caller frees the response. */
static client_response post(const char *target, const char *headers, const char *body)
{
    const size_t capacity = strlen(body) + 1024;
    char *request = malloc(capacity);
    const int size = snprintf(request, capacity,
                              "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                              "Content-Length: %zu\r\n%s\r\n%s",
                              target, strlen(body), headers, body);
    client_response response = client_exchange(server, request, (size_t)size);
    free(request);
    return response;
}

static char good_headers[256];

static const char *headers_with(const char *more)
{
    snprintf(good_headers, sizeof(good_headers),
             "Authorization: Bearer %s\r\nContent-Type: application/json\r\n%s", token, more);
    return good_headers;
}

static void expect(const char *headers, const char *body, int status, const char *said)
{
    client_response response = post("/api/v1/commands", headers, body);
    if (response.status != status || strstr(response.text, said) == NULL) {
        fail_msg("%s gave %d: %s", body, response.status, response.text);
    }
    client_free(&response);
}

static int64_t count(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static const char good_body[] = "{\"devices\": \"bench-07\", \"kind\": \"status\"}";

static void the_token_is_made_for_the_owner_only(void **state)
{
    (void)state;
    struct stat about;
    assert_int_equal(stat(token_path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(strlen(token), 64);
}

static void without_the_token_nothing_happens(void **state)
{
    (void)state;
    const int64_t before = count("SELECT count(*) FROM commands");
    char wrong[128];
    expect("Content-Type: application/json\r\n", good_body, 401, token_path);
    snprintf(wrong, sizeof(wrong),
             "Authorization: Bearer %.63s0\r\nContent-Type: application/json\r\n", token);
    if (token[63] == '0') {
        wrong[22 + 63] = '1';
    }
    expect(wrong, good_body, 401, token_path);
    snprintf(wrong, sizeof(wrong), "Authorization: Basic %s\r\n", token);
    expect(wrong, good_body, 401, token_path);
    assert_int_equal(count("SELECT count(*) FROM commands"), before);
}

static void other_sites_cannot_use_a_token_that_they_know(void **state)
{
    (void)state;
    static const char *const signs[] = {
        "Origin: https://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"};
    const int64_t before = count("SELECT count(*) FROM commands");
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        expect(headers_with(signs[i]), good_body, 403, "other sites");
    }
    assert_int_equal(count("SELECT count(*) FROM commands"), before);
}

static void malformed_commands_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const bodies[][2] = {
        {"", "empty"},
        {"{", "line 1"},
        {"[]", "not a JSON object"},
        {"{\"kind\": \"status\"}", "devices"},
        {"{\"devices\": \"bench-07\"}", "kind"},
        {"{\"devices\": \"bench-07\", \"kind\": \"statsu\"}", "did you mean"},
        {"{\"devices\": \"bench-07\", \"kind\": \"write\"}", "unknown command"},
        {"{\"devices\": \"bench-07\", \"kind\": \"launch\"}", "either an"},
        {"{\"devices\": \"bench-07\", \"kind\": \"attach\", \"arguments\": {\"pid\": \"1\"}}",
         "whole number"},
        {"{\"devices\": \"bench-07\", \"kind\": \"attach\", \"arguments\": {}}", "missing"},
        {"{\"devices\": \"bench-07\", \"kind\": \"stop\", \"arguments\": {\"sesion\": \"a\"}}",
         "session"},
        {"{\"devices\": \"bench-07\", \"kind\": \"status\", \"timeout_ms\": 0}", "timeout_ms"},
        {"{\"devices\": \"bench-07\", \"kind\": \"policy\", \"arguments\":"
         " {\"policy\": {\"policy\": 1, \"mode\": \"trase\"}}}",
         "trace"},
        {"{\"devices\": \"tag:\", \"kind\": \"status\"}", "tag:KEY"}};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        expect(headers_with(""), bodies[i][0], 400, bodies[i][1]);
    }
    expect(headers_with(""), "{\"devices\": \"nobody\", \"kind\": \"status\"}", 404, "nobody");
    expect(headers_with(""), "{\"devices\": \"tag:none\", \"kind\": \"status\"}", 404, "tag:none");
}

static void types_and_lengths_are_checked_before_the_body_is_read(void **state)
{
    (void)state;
    char headers[256];
    snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n", token);
    expect(headers, good_body, 415, "application/json");
    snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\nContent-Type: text/plain\r\n",
             token);
    expect(headers, good_body, 415, "application/json");
    char request[512];
    snprintf(request, sizeof(request),
             "POST /api/v1/commands HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999\r\n"
             "%s\r\n",
             headers_with(""));
    client_response response = client_exchange(server, request, strlen(request));
    assert_int_equal(response.status, 413);
    client_free(&response);
    snprintf(request, sizeof(request),
             "POST /api/v1/commands HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
             "%s\r\n0\r\n\r\n",
             headers_with(""));
    response = client_exchange(server, request, strlen(request));
    assert_int_equal(response.status, 411);
    client_free(&response);
}

static void a_command_is_queued_with_its_audit(void **state)
{
    (void)state;
    char *long_body = malloc(40000);
    memset(long_body, 'x', 40000);
    const int head =
        snprintf(long_body, 40000,
                 "{\"devices\": \"tag:site=oslo\", \"kind\": \"launch\", \"arguments\":"
                 " {\"command\": [\"/bin/true\", \"");
    long_body[head] = 'x';
    snprintf(long_body + 30000, 10000, "%s", "\"]}, \"timeout_ms\": 5000}");
    expect(headers_with("Origin: http://127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n"), long_body,
           202, "\"device\":\"bench-07\"");
    free(long_body);
    assert_int_equal(
        count("SELECT count(*) FROM commands WHERE kind = 'launch' AND state = 'queued'"
              " AND requested_by = 'token:admin' AND timeout_ms = 5000 AND device_id = 1"),
        1);
}

static void tags_and_policies_are_set_at_once(void **state)
{
    (void)state;
    expect(headers_with(""),
           "{\"devices\": \"1\", \"kind\": \"tags\", \"arguments\": {\"tags\":"
           " {\"ring\": \"beta\", \"site\": null}}}",
           202, "command");
    assert_int_equal(count("SELECT count(*) FROM devices WHERE tags = '{\"ring\":\"beta\"}'"), 1);
    expect(headers_with(""),
           "{\"devices\": \"tag:ring=beta\", \"kind\": \"policy\", \"arguments\":"
           " {\"policy\": \"jank\", \"app\": \"shop\"}}",
           202, "bench-07");
    assert_int_equal(count("SELECT count(*) FROM policy_rules WHERE scope = 'tag' AND app = 'shop'"
                           " AND ended_realtime_ns IS NULL"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM commands WHERE kind = 'policies'"
                           " AND arguments ->> '$.rules[0].app' = 'shop'"),
                     1);
    expect(headers_with(""),
           "{\"devices\": \"tag:ring=beta\", \"kind\": \"policy\", \"arguments\":"
           " {\"app\": \"shop\"}}",
           202, "commands");
    assert_int_equal(count("SELECT count(*) FROM policy_rules WHERE ended_realtime_ns IS NULL"), 0);
    expect(headers_with(""), "{\"devices\": \"all\", \"kind\": \"policy\"}", 404, "no such policy");
}

static void expect_change(const char *body, int status, const char *said)
{
    client_response response = post("/api/v1/sessions", headers_with(""), body);
    if (response.status != status || strstr(response.text, said) == NULL) {
        fail_msg("%s gave %d: %s", body, response.status, response.text);
    }
    client_free(&response);
}

static void sessions_are_pinned_tagged_and_removed_at_once(void **state)
{
    (void)state;
    expect_change("{\"sessions\": [\"1\", \"2\"], \"do\": \"tag\", \"key\": \"rack\","
                  " \"value\": \"7'); DROP TABLE sessions; --\"}",
                  202, "\"tags\":\"{}\"");
    assert_int_equal(count("SELECT count(*) FROM sessions WHERE tags ->> 'rack' ="
                           " '7''); DROP TABLE sessions; --'"),
                     2);
    expect_change("{\"sessions\": [\"2\"], \"do\": \"untag\", \"key\": \"rack\"}", 202, "DROP");
    assert_int_equal(count("SELECT count(*) FROM sessions WHERE tags = '{}'"), 2);
    expect_change("{\"sessions\": [\"1\", \"2\"], \"do\": \"pin\"}", 202, "\"is_pinned\":false");
    assert_int_equal(count("SELECT sum(pinned) FROM sessions"), 2);
    expect_change("{\"sessions\": [\"2\", \"1\"], \"do\": \"remove\"}", 403, "pinned");
    assert_int_equal(count("SELECT count(*) FROM sessions"), 3);
    expect_change("{\"sessions\": [\"2\"], \"do\": \"unpin\"}", 202, "\"is_pinned\":true");
    expect_change("{\"sessions\": [\"2\"], \"do\": \"remove\"}", 202, "before");
    assert_int_equal(count("SELECT count(*) FROM sessions"), 2);
    expect_change("{\"sessions\": [\"3\"], \"do\": \"remove\"}", 403, "record");
}

static void notes_on_sessions_are_written_and_removed(void **state)
{
    (void)state;
    expect_change("{\"sessions\": [\"1\"], \"do\": \"note\", \"value\": \"slow since 9.1\","
                  " \"from_ns\": 100, \"to_ns\": 900}",
                  202, "before");
    expect_change("{\"sessions\": [\"1\"], \"do\": \"note\", \"value\": \"'); DROP TABLE x; --\"}",
                  202, "before");
    assert_int_equal(count("SELECT count(*) FROM annotations WHERE session_id = 1 AND author ="
                           " 'token:admin' AND start_ns = 100 AND end_ns = 900"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM annotations WHERE start_ns IS NULL"), 1);
    static const char *const wrong[] = {
        "{\"sessions\": [\"1\"], \"do\": \"note\"}",
        "{\"sessions\": [\"1\"], \"do\": \"note\", \"value\": \"x\", \"from_ns\": 5}",
        "{\"sessions\": [\"1\"], \"do\": \"note\", \"value\": \"x\", \"from_ns\": 5, \"to_ns\": 4}",
        "{\"sessions\": [\"1\"], \"do\": \"note\", \"value\": \"x\", \"from_ns\": \"1\", "
        "\"to_ns\": 4}",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        expect_change(wrong[i], 400, "error");
    }
    expect_change("{\"sessions\": [\"1\"], \"do\": \"unnote\", \"value\": \"slow since 9.1\"}", 202,
                  "before");
    assert_int_equal(count("SELECT count(*) FROM annotations"), 1);
}

static void a_change_of_sessions_is_made_for_all_or_none(void **state)
{
    (void)state;
    static const char *const fail_late[] = {"{\"sessions\": [\"1\", \"3\", \"99\"], \"do\": "
                                            "\"tag\", \"key\": \"half\", \"value\": \"1\"}",
                                            "{\"sessions\": [\"3\", \"99\"], \"do\": \"pin\"}",
                                            "{\"sessions\": [\"1\", \"99\"], \"do\": \"unpin\"}"};
    const int64_t pinned = count("SELECT sum(pinned) FROM sessions");
    for (size_t i = 0; i < sizeof(fail_late) / sizeof(fail_late[0]); i++) {
        expect_change(fail_late[i], 404, "no session 99");
    }
    assert_int_equal(count("SELECT count(*) FROM sessions WHERE tags ->> 'half' = '1'"), 0);
    assert_int_equal(count("SELECT sum(pinned) FROM sessions"), pinned);
    fixture_run(database, "UPDATE sessions SET tags = 'none' WHERE session_id = 3");
    expect_change("{\"sessions\": [\"1\", \"3\"], \"do\": \"tag\", \"key\": \"all\","
                  " \"value\": \"1\"}",
                  202, "before");
    assert_int_equal(count("SELECT count(*) FROM sessions WHERE tags ->> 'all' = '1'"), 2);
    expect_change("{\"sessions\": [\"1\", \"3\"], \"do\": \"untag\", \"key\": \"all\"}", 202,
                  "all");
}

static void at_most_50_sessions_are_removed_by_one_request(void **state)
{
    (void)state;
    char body[600] = "{\"do\": \"remove\", \"sessions\": [\"99\"";
    const int64_t before = count("SELECT count(*) FROM sessions");
    for (int i = 0; i < 50; i++) {
        strcat(body, ", \"1\"");
    }
    strcat(body, "]}");
    expect_change(body, 400, "1 to 50 ids");
    assert_int_equal(count("SELECT count(*) FROM sessions"), before);
}

static void wrong_changes_of_sessions_change_nothing(void **state)
{
    (void)state;
    expect_change("{\"sessions\": [\"2\"], \"do\": \"pin\"}", 404, "no session 2");
    expect_change("{\"sessions\": [\"1\", 3], \"do\": \"unpin\"}", 400, "list of ids");
    expect_change("{\"sessions\": [], \"do\": \"unpin\"}", 400, "1 to 1000");
    expect_change("{\"sessions\": [\"1\"], \"do\": \"drop\"}", 400, "pin, unpin");
    expect_change("{\"sessions\": [\"1\"], \"do\": \"tag\", \"key\": \"a\"}", 400, "value");
    assert_int_equal(count("SELECT sum(pinned) FROM sessions"), 1);
    client_response response = post("/api/v1/sessions", "Content-Type: application/json\r\n",
                                    "{\"sessions\": [\"1\"], \"do\": \"unpin\"}");
    assert_int_equal(response.status, 401);
    client_free(&response);
    assert_int_equal(count("SELECT sum(pinned) FROM sessions"), 1);
}

static void policies_are_checked_and_not_set(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int status;
        const char *said;
    } cases[] = {
        {"{\"policy\": {\"policy\": 1, \"name\": \"calm\", \"mode\": \"flight\"}}", 202, "flight"},
        {"{\"policy\": {\"policy\": 1, \"no_such_key\": 1}}", 400, "no_such_key"},
        {"{\"policy\": {\"policy\": 1, \"mode\": \"dance\"}}", 400, "flight"},
        {"{\"policy\": \"default\"}", 400, "document"}};
    const int64_t before = count("SELECT count(*) FROM policy_rules");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        client_response response = post("/api/v1/policies", headers_with(""), cases[i].body);
        if (response.status != cases[i].status || strstr(response.text, cases[i].said) == NULL) {
            fail_msg("%s gave %d: %s", cases[i].body, response.status, response.text);
        }
        client_free(&response);
    }
    assert_int_equal(count("SELECT count(*) FROM policy_rules"), before);
}

__attribute__((format(printf, 2, 3))) static json_t *import_step(int status, const char *format,
                                                                 ...)
{
    va_list values;
    char *body = malloc(SJ_POST_MAX_BYTES + 4096);
    va_start(values, format);
    vsnprintf(body, SJ_POST_MAX_BYTES + 4096, format, values);
    va_end(values);
    client_response response = post("/api/v1/imports", headers_with(""), body);
    if (response.status != status) {
        fail_msg("%.200s gave %d: %s", body, response.status, response.text);
    }
    json_t *reply = json_loads(response.body, 0, NULL);
    assert_non_null(reply);
    client_free(&response);
    free(body);
    return reply;
}

static char *hex_of_file(const char *path, size_t *digits)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    char *hex = malloc(2 * size + 1);
    for (size_t i = 0; i < size; i++) {
        snprintf(hex + 2 * i, 3, "%02x", (unsigned)fgetc(file));
    }
    fclose(file);
    *digits = 2 * size;
    return hex;
}

/* Sends a file in pieces. The caller still has to finish the import. */
static void send_file(const char *path, char import[80])
{
    size_t digits = 0;
    const size_t piece = 2 * (64 << 10);
    char *hex = hex_of_file(path, &digits);
    json_t *begun = import_step(202, "{\"do\": \"begin\"}");
    snprintf(import, 80, "%s", json_string_value(json_object_get(begun, "import")));
    for (size_t at = 0; at < digits; at += piece) {
        json_decref(import_step(202,
                                "{\"do\": \"append\", \"import\": \"%s\", \"offset\": %zu,"
                                " \"hex\": \"%.*s\"}",
                                import, at / 2, (int)piece, hex + at));
    }
    json_decref(begun);
    free(hex);
}

/* Sends a file. Returns the response to its end. */
static json_t *import_file(const char *path, int status)
{
    char import[80];
    send_file(path, import);
    return import_step(status, "{\"do\": \"finish\", \"import\": \"%s\"}", import);
}

/* Creates a fixture whose modules have all functions that they name, as in a recording, and whose
 * sums are not made yet. */
static sqlite3 *create_source(const char *path)
{
    sqlite3 *source = fixture_create(path, 0);
    fixture_run(
        source,
        "UPDATE modules SET function_count = 200 WHERE function_count > 200;"
        "UPDATE session_modules SET function_count = (SELECT m.function_count FROM modules AS m"
        " WHERE m.module_id = session_modules.module_id);"
        "UPDATE functions SET module_id = 1;"
        "DELETE FROM timeline; DELETE FROM call_edges; DELETE FROM function_stats;"
        "DELETE FROM call_paths; UPDATE sessions SET aggregates_valid_before_block = 0;"
        "WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199)"
        " INSERT OR IGNORE INTO functions (function_id, module_id, offset, size_bytes, name,"
        " symbol, symbol_key) SELECT first_function_id + i, module_id, 4096 + 16 * i, 16,"
        " 'f' || i, '', i FROM modules JOIN n ON i < function_count");
    return source;
}

static void a_database_is_imported_in_pieces(void **state)
{
    (void)state;
    char path[96];
    snprintf(path, sizeof(path), "%s.source", database_path);
    sqlite3 *source = create_source(path);
    fixture_run(source, "PRAGMA journal_mode = DELETE");
    sqlite3_close(source);
    const int64_t before = count("SELECT count(*) FROM sessions");
    json_t *done = import_file(path, 202);
    const size_t came = json_array_size(json_object_get(done, "sessions"));
    assert_int_equal(came + (size_t)json_integer_value(json_object_get(done, "known")), 3);
    assert_true(came > 0);
    assert_int_equal(count("SELECT count(*) FROM sessions"), before + (int64_t)came);
    json_decref(done);
    done = import_file(path, 202);
    assert_int_equal(json_array_size(json_object_get(done, "sessions")), 0);
    assert_int_equal(json_integer_value(json_object_get(done, "known")), 3);
    json_decref(done);
    FILE *file = fopen(path, "we");
    fputs("this is no database, and never was one", file);
    fclose(file);
    done = import_file(path, 400);
    assert_non_null(json_object_get(done, "error"));
    json_decref(done);
    unlink(path);
    json_t *left = client_json(server, "/api/v1/imports", 200);
    assert_int_equal(json_integer_value(json_object_get(left, "under_way")), 0);
    json_decref(left);
}

static void imports_keep_to_their_own_file(void **state)
{
    (void)state;
    json_t *begun = import_step(202, "{\"do\": \"begin\"}");
    const char *import = json_string_value(json_object_get(begun, "import"));
    static const char *const wrong[] = {"../x", "", "../../../../etc/passwd"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        json_decref(import_step(404, "{\"do\": \"finish\", \"import\": \"%s\"}", wrong[i]));
    }
    json_decref(import_step(404,
                            "{\"do\": \"append\", \"import\": \"%064d\", \"offset\": 0,"
                            " \"hex\": \"00\"}",
                            0));
    json_decref(import_step(400,
                            "{\"do\": \"append\", \"import\": \"%s\", \"offset\": 7,"
                            " \"hex\": \"00\"}",
                            import));
    json_decref(import_step(400,
                            "{\"do\": \"append\", \"import\": \"%s\", \"offset\": 0,"
                            " \"hex\": \"0g\"}",
                            import));
    json_t *progress = import_step(202, "{\"do\": \"progress\", \"import\": \"%s\"}", import);
    assert_true(json_real_value(json_object_get(progress, "part")) == 0);
    json_decref(progress);
    json_decref(import_step(202, "{\"do\": \"cancel\", \"import\": \"%s\"}", import));
    json_decref(import_step(404, "{\"do\": \"progress\", \"import\": \"%s\"}", import));
    json_decref(import_step(400, "{\"do\": \"dance\", \"import\": \"%s\"}", import));
    json_decref(begun);
}

static json_int_t imports_under_way(void)
{
    json_t *reply = client_json(server, "/api/v1/imports", 200);
    const json_int_t under_way = json_integer_value(json_object_get(reply, "under_way"));
    json_decref(reply);
    return under_way;
}

/* Makes a file beside the database that was last written two days ago. */
static void make_old_file(char path[160], const char *name)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - 2 * 86400}};
    times[1] = times[0];
    snprintf(path, 160, "%s.import.%s", database_path, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void only_files_of_imports_are_counted_and_removed(void **state)
{
    (void)state;
    static const char id[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    char foreign[160];
    char left[160];
    make_old_file(foreign, "log");
    make_old_file(left, id);
    assert_int_equal(imports_under_way(), 1);
    assert_int_equal(access(left, F_OK), 0); /* reading removes nothing */
    json_t *begun = import_step(202, "{\"do\": \"begin\"}");
    assert_int_not_equal(access(left, F_OK), 0);
    assert_int_equal(imports_under_way(), 1);
    json_decref(import_step(202, "{\"do\": \"cancel\", \"import\": \"%s\"}",
                            json_string_value(json_object_get(begun, "import"))));
    json_decref(begun);
    assert_int_equal(imports_under_way(), 0);
    assert_int_equal(unlink(foreign), 0);
}

static void imports_are_counted_whatever_the_database_is_called(void **state)
{
    (void)state;
    sj_error error;
    sj_http *kept = server;
    char path[96];
    snprintf(path, sizeof(path), "http_post_test.[x]*.%d.db", (int)getpid());
    sqlite3 *other = fixture_create(path, 0);
    const sj_http_options options = {.database_path = path, .token_path = token_path};
    assert_int_equal(sj_http_start(&options, &server, &error), SJ_OK);
    json_t *begun = import_step(202, "{\"do\": \"begin\"}");
    assert_int_equal(imports_under_way(), 1);
    json_decref(import_step(202, "{\"do\": \"cancel\", \"import\": \"%s\"}",
                            json_string_value(json_object_get(begun, "import"))));
    assert_int_equal(imports_under_way(), 0);
    json_decref(begun);
    sj_http_stop(server);
    server = kept;
    sqlite3_close(other);
    unlink(path);
}

static void an_import_leaves_nothing_beside_the_database(void **state)
{
    (void)state;
    char path[96];
    char pattern[96];
    glob_t found;
    snprintf(path, sizeof(path), "%s.source", database_path);
    sqlite3_close(create_source(path)); /* the file has a log */
    json_decref(import_file(path, 202));
    unlink(path);
    snprintf(pattern, sizeof(pattern), "%s.import.*", database_path);
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    globfree(&found);
}

static void a_file_with_views_for_tables_is_refused(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"modules", "Modules"}, {"sessions", "sessions"}};
    static const char *const kinds[][2] = {
        {"VIEW", "AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                 " SELECT i AS module_id, i AS session_id, 'completed' AS state FROM n"},
        {"VIRTUAL TABLE", "USING fts5(module_id, session_id, state)"}};
    char path[96];
    char sql[400];
    snprintf(path, sizeof(path), "%s.hostile", database_path);
    for (size_t i = 0; i < 4; i++) {
        sqlite3 *source = create_source(path);
        snprintf(sql, sizeof(sql), "PRAGMA foreign_keys = OFF; DROP TABLE %s", names[i / 2][0]);
        fixture_run(source, sql);
        snprintf(sql, sizeof(sql), "CREATE %s %s %s", kinds[i % 2][0], names[i / 2][1],
                 kinds[i % 2][1]);
        fixture_run(source, sql);
        sqlite3_close(source);
        json_t *refused = import_file(path, 400);
        const char *text = json_string_value(json_object_get(refused, "error"));
        assert_non_null(text);
        assert_non_null(strstr(text, names[i / 2][1]));
        json_decref(refused);
        unlink(path);
    }
}

static void malformed_tags_are_not_imported(void **state)
{
    (void)state;
    char path[96];
    snprintf(path, sizeof(path), "%s.tags", database_path);
    sqlite3 *source = create_source(path);
    fixture_run(source, "UPDATE sessions SET uuid = randomblob(16), tags = '{\"a\":';"
                        "UPDATE sessions SET tags = '[1]' WHERE session_id = 2;"
                        "UPDATE sessions SET tags = '{\"imported\":\"1\"}' WHERE session_id = 3;"
                        "UPDATE devices SET uuid = randomblob(16), name = 'far', tags = 'x'");
    sqlite3_close(source);
    json_decref(import_file(path, 202));
    unlink(path);
    assert_int_equal(count("SELECT count(*) FROM devices WHERE name = 'far' AND tags = '{}'"), 1);
    assert_int_equal(count("SELECT count(*) FROM sessions WHERE NOT json_valid(tags)"), 0);
    assert_int_equal(count("SELECT count(*) FROM sessions WHERE tags = '{\"imported\":\"1\"}'"), 1);
}

/* Makes a file whose call paths are looked up in 5,000 modules each, which is 500 million rows to
 * read. */
static void make_endless(const char *path)
{
    sqlite3 *source = create_source(path);
    fixture_run(
        source,
        "UPDATE sessions SET uuid = randomblob(16);"
        "UPDATE session_modules SET number = 9000 WHERE number = 2;"
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
        " INSERT INTO modules SELECT 10 + i, randomblob(8), x'07', 'x', '', 250000, 0 FROM n;"
        "INSERT INTO session_modules SELECT 1, module_id, module_id, 1, 250000, 0, 0, NULL"
        " FROM modules WHERE module_id > 10;"
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
        " INSERT INTO call_paths (path_id, session_id, function_id, depth, recursive, calls,"
        " total_ns, self_ns, unwound, untrusted, histogram, state) SELECT (1 << 32) + i, 1,"
        " 200001, 0, 0, 0, 0, 0, 0, 0, zeroblob(0), zeroblob(0) FROM n");
    sqlite3_close(source);
}

static int lock_and_release(void)
{
    const int result = sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (result == SQLITE_OK) {
        fixture_run(database, "ROLLBACK");
    }
    return result;
}

static void an_import_ends_with_its_client(void **state)
{
    (void)state;
    char path[96];
    char import[80];
    char request[1024];
    const int64_t before = count("SELECT count(*) FROM sessions");
    snprintf(path, sizeof(path), "%s.endless", database_path);
    make_endless(path);
    send_file(path, import);
    unlink(path);
    const int size = snprintf(request, sizeof(request),
                              "POST /api/v1/imports HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                              "Content-Length: %zu\r\n%s\r\n"
                              "{\"do\": \"finish\", \"import\": \"%s\"}",
                              strlen(import) + 30, headers_with(""), import);
    const int client = client_connect(server);
    assert_int_equal(write(client, request, (size_t)size), size);
    while (sj_import_progress_of(import) < 0) {
        usleep(1000);
    }
    json_t *progress = import_step(202, "{\"do\": \"progress\", \"import\": \"%s\"}", import);
    assert_true(json_is_real(json_object_get(progress, "part")));
    json_decref(progress);
    close(client);
    while (imports_under_way() != 0) {
        usleep(20000);
    }
    assert_int_equal(lock_and_release(), SQLITE_OK);
    assert_int_equal(count("SELECT count(*) FROM sessions"), before);
}

static void routes_without_post_refuse_a_post(void **state)
{
    (void)state;
    client_response response = post("/api/v1/devices", headers_with(""), good_body);
    assert_int_equal(response.status, 405);
    client_free(&response);
    json_decref(client_json(server, "/api/v1/commands/999999", 404));
    json_decref(client_json(server, "/api/v1/commands/1/file", 404));
}

static void a_server_over_a_cluster_refuses_changes(void **state)
{
    (void)state;
    sj_error error;
    sj_http *kept = server;
    char unused = 0; /* a mirror is not read before the POST is refused */
    const sj_http_options options = {.database_path = database_path,
                                     .token_path = token_path,
                                     .mirror = (struct sj_cluster_mirror *)&unused};
    assert_int_equal(sj_http_start(&options, &server, &error), SJ_OK);
    expect(headers_with(""), good_body, 403, "takes no changes");
    sj_http_stop(server);
    server = kept;
}

static void a_token_that_others_may_read_is_refused(void **state)
{
    (void)state;
    sj_error error;
    sj_http *none = NULL;
    const sj_http_options options = {.database_path = database_path, .token_path = token_path};
    assert_int_equal(chmod(token_path, 0644), 0);
    assert_int_equal(sj_http_start(&options, &none, &error), SJ_EPERM);
    assert_non_null(strstr(error.text, "chmod 600"));
    assert_int_equal(chmod(token_path, 0600), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_token_is_made_for_the_owner_only),
        cmocka_unit_test(without_the_token_nothing_happens),
        cmocka_unit_test(other_sites_cannot_use_a_token_that_they_know),
        cmocka_unit_test(malformed_commands_are_refused_with_the_reason),
        cmocka_unit_test(types_and_lengths_are_checked_before_the_body_is_read),
        cmocka_unit_test(a_command_is_queued_with_its_audit),
        cmocka_unit_test(tags_and_policies_are_set_at_once),
        cmocka_unit_test(sessions_are_pinned_tagged_and_removed_at_once),
        cmocka_unit_test(notes_on_sessions_are_written_and_removed),
        cmocka_unit_test(a_change_of_sessions_is_made_for_all_or_none),
        cmocka_unit_test(at_most_50_sessions_are_removed_by_one_request),
        cmocka_unit_test(wrong_changes_of_sessions_change_nothing),
        cmocka_unit_test(policies_are_checked_and_not_set),
        cmocka_unit_test(a_database_is_imported_in_pieces),
        cmocka_unit_test(imports_keep_to_their_own_file),
        cmocka_unit_test(only_files_of_imports_are_counted_and_removed),
        cmocka_unit_test(imports_are_counted_whatever_the_database_is_called),
        cmocka_unit_test(an_import_leaves_nothing_beside_the_database),
        cmocka_unit_test(a_file_with_views_for_tables_is_refused),
        cmocka_unit_test(malformed_tags_are_not_imported),
        cmocka_unit_test(an_import_ends_with_its_client),
        cmocka_unit_test(routes_without_post_refuse_a_post),
        cmocka_unit_test(a_server_over_a_cluster_refuses_changes),
        cmocka_unit_test(a_token_that_others_may_read_is_refused),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
