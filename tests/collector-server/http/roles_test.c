/* Tests the role that each route needs, tokens that end, and the rows of the audit. */
#include "collector-server/fleet/api_tokens.h"
#include "collector-server/http/question_worker.h"
#include "collector-server/http/route.h"
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROLES = 4, PATIENCE_MS = 60000, READS = 4 };

static char database_path[64];
static char token_path[80];
static char tokens[ROLES][SJ_SECRET_TEXT_BYTES]; /* reader to admin */
static sqlite3 *database;
static sj_http *server;

typedef struct expected_route {
    const char *pattern;
    sj_role reads;
    sj_role posts; /* SJ_ROLE_NONE: no POST */
} expected_route;

static const expected_route expected[] = {
    {"/api/v1/health", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions", SJ_ROLE_READER, SJ_ROLE_OPERATOR},
    {"/api/v1/sessions/{id}", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions/{id}/functions", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions/{id}/call-tree", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions/{id}/gaps", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions/{id}/unhooked", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions/{id}/timeline", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions/{id}/calls", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions/{id}/export", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sessions/facets", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/events", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/openapi.json", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/metrics", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/healthz", SJ_ROLE_NONE, SJ_ROLE_NONE},
    {"/api/v1/devices", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/policies", SJ_ROLE_READER, SJ_ROLE_OPERATOR},
    {"/api/v1/commands", SJ_ROLE_READER, SJ_ROLE_OPERATOR},
    {"/api/v1/commands/{id}", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/commands/{id}/file", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/zombies", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/zombies/{id}", SJ_ROLE_READER, SJ_ROLE_OPERATOR},
    {"/api/v1/zombies/{id}/frames", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/sql", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/queries", SJ_ROLE_READER, SJ_ROLE_NONE},
    {"/api/v1/imports", SJ_ROLE_READER, SJ_ROLE_ADMIN},
};

static int start_server(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "http_roles_test.%d.db", (int)getpid());
    snprintf(token_path, sizeof(token_path), "%s.token", database_path);
    unlink(token_path);
    database = fixture_create(database_path, 0);
    fixture_run(database, "INSERT INTO device_tokens VALUES (1, x'00', 1, NULL)");
    for (int i = 0; i < ROLES; i++) {
        const sj_role role = (sj_role)(SJ_ROLE_READER + i);
        char name[32];
        snprintf(name, sizeof(name), "the-%s", sj_role_name(role));
        if (sj_api_token_add(database, name, role, 0, tokens[i], &error) != SJ_OK) {
            return -1;
        }
    }
    const sj_http_options options = {.database_path = database_path, .token_path = token_path};
    return sj_http_start(&options, &server, &error) == SJ_OK ? 0 : -1;
}

static int stop_server(void **state)
{
    (void)state;
    sj_http_stop(server);
    sqlite3_close(database);
    unlink(token_path);
    return unlink(database_path);
}

/* Sends a request with a token (NULL: none). `body` is for POSTs. The caller frees the response. */
static client_response ask(const char *method, const char *target, const char *token,
                           const char *body)
{
    char request[2048];
    char line[128] = "";
    if (token != NULL) {
        snprintf(line, sizeof(line), "Authorization: Bearer %s\r\n", token);
    }
    const int head = snprintf(request, sizeof(request),
                              "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s",
                              method, target, line);
    const int size =
        body == NULL ? snprintf(request + head, sizeof(request) - (size_t)head, "\r\n")
                     : snprintf(request + head, sizeof(request) - (size_t)head,
                                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                strlen(body), body);
    return client_exchange(server, request, (size_t)(head + size));
}

static void expect(const char *method, const char *target, const char *token, const char *body,
                   int status, const char *said)
{
    client_response response = ask(method, target, token, body);
    if (response.status != status || strstr(response.text, said) == NULL) {
        fail_msg("%s %s gave %d: %s", method, target, response.status, response.text);
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

static const expected_route *expected_of(const char *pattern)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (strcmp(expected[i].pattern, pattern) == 0) {
            return &expected[i];
        }
    }
    fail_msg("the test does not say which role %s needs", pattern);
    return NULL;
}

/* Judges one role at one method of a route. */
static void judge(const char *method, const char *target, int role_index, sj_role needed)
{
    char said[80];
    const bool is_post = strcmp(method, "POST") == 0;
    const sj_role role = (sj_role)(SJ_ROLE_READER + role_index);
    if (role < needed) {
        snprintf(said, sizeof(said), "needs the role %s or a higher one; token:the-%s has",
                 sj_role_name(needed), sj_role_name(role));
        expect(method, target, tokens[role_index], is_post ? "{}" : NULL, 403, said);
        return;
    }
    client_response response =
        ask(is_post ? "POST" : "HEAD", target, tokens[role_index], is_post ? "{}" : NULL);
    if (response.status == 401 || response.status == 403 || response.status == 0) {
        fail_msg("%s %s as %s gave %d", method, target, sj_role_name(role), response.status);
    }
    client_free(&response);
}

static void every_route_needs_its_role(void **state)
{
    (void)state;
    size_t routes = 0;
    for (; sj_routes[routes] != NULL; routes++) {
        const sj_route *route = sj_routes[routes];
        const expected_route *wanted = expected_of(route->pattern);
        char target[128];
        const char *hole = strstr(route->pattern, "{id}");
        snprintf(target, sizeof(target), "%.*s%s%s",
                 (int)(hole != NULL ? hole - route->pattern : (long)strlen(route->pattern)),
                 route->pattern, hole != NULL ? "1" : "", hole != NULL ? hole + 4 : "");
        assert_true((route->post != NULL) == (wanted->posts != SJ_ROLE_NONE));
        if (wanted->reads != SJ_ROLE_NONE) {
            expect("GET", target, NULL, NULL, 401, "Bearer TOKEN");
        }
        for (int role = 0; role < ROLES; role++) {
            judge("GET", target, role, wanted->reads);
            if (route->post != NULL) {
                judge("POST", target, role, wanted->posts);
            }
        }
    }
    assert_int_equal(routes, sizeof(expected) / sizeof(expected[0]));
}

static void own_sql_needs_an_analyst_and_shipped_queries_do_not(void **state)
{
    (void)state;
    expect("GET", "/api/v1/sql?sql=SELECT+7", tokens[0], NULL, 403, "needs the role analyst");
    expect("GET", "/api/v1/sql?sql=SELECT+7&engine=cluster", tokens[0], NULL, 403, "analyst");
    expect("GET", "/api/v1/sql?query=storage", tokens[0], NULL, 200, "rows");
    expect("GET", "/api/v1/sql?query=web.hot&p.session=1", tokens[0], NULL, 200, "rows");
    expect("GET", "/api/v1/sql?sql=SELECT+7", tokens[1], NULL, 200, "[[7]]");
}

static void only_an_admin_removes_sessions(void **state)
{
    (void)state;
    static const char body[] = "{\"sessions\": [\"2\"], \"do\": \"remove\"}";
    expect("POST", "/api/v1/sessions", tokens[2], body, 403, "needs the role admin");
    assert_int_equal(count("SELECT count(*) FROM sessions"), 3);
    expect("POST", "/api/v1/sessions", tokens[3], body, 202, "before");
    assert_int_equal(count("SELECT count(*) FROM sessions"), 2);
}

static void health_names_the_token_and_its_role(void **state)
{
    (void)state;
    expect("GET", "/api/v1/health", tokens[0], NULL, 200, "\"who\":\"token:the-reader\"");
    expect("GET", "/api/v1/health", tokens[2], NULL, 200, "\"role\":\"operator\"");
    json_t *body = client_json(server, "/api/v1/health", 200);
    assert_string_equal(json_string_value(json_object_get(body, "who")), "token:admin");
    assert_string_equal(json_string_value(json_object_get(body, "role")), "admin");
    json_decref(body);
}

/* True if the server closes the connection, which brings a greeting and events about every 15 s. */
static bool ends(int fd)
{
    char text[4096];
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    for (int reads = 0; reads < READS && poll(&watched, 1, PATIENCE_MS) == 1; reads++) {
        if (recv(fd, text, sizeof(text), 0) <= 0) {
            return true;
        }
    }
    return false;
}

static void a_token_that_is_revoked_or_expires_ends_at_once(void **state)
{
    (void)state;
    sj_error error;
    char token[SJ_SECRET_TEXT_BYTES];
    char request[256];
    assert_int_equal(sj_api_token_add(database, "guest", SJ_ROLE_ADMIN, 0, token, &error), SJ_OK);
    expect("GET", "/api/v1/health", token, NULL, 200, "token:guest");
    const int stream = client_connect(server);
    const int size = snprintf(request, sizeof(request),
                              "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                              "Authorization: Bearer %s\r\n\r\n",
                              token);
    assert_int_equal(send(stream, request, (size_t)size, MSG_NOSIGNAL), size);
    assert_int_equal(sj_api_token_add(database, "guest", SJ_ROLE_READER, 0, request, &error),
                     SJ_EEXIST);
    assert_int_equal(sj_api_token_revoke(database, "guest", &error), SJ_OK);
    expect("GET", "/api/v1/health", token, NULL, 401, "Bearer TOKEN");
    expect("POST", "/api/v1/sessions", token, "{}", 401, "Bearer TOKEN");
    assert_true(ends(stream));
    close(stream);
    assert_int_equal(sj_api_token_revoke(database, "guest", &error), SJ_ENOTFOUND);
    assert_int_equal(
        sj_api_token_add(database, "guest", SJ_ROLE_READER, INT64_C(3600000000000), token, &error),
        SJ_OK);
    expect("GET", "/api/v1/health", token, NULL, 200, "\"role\":\"reader\"");
    fixture_run(database, "UPDATE api_tokens SET expires_realtime_ns = 1 WHERE name = 'guest'");
    expect("GET", "/api/v1/health", token, NULL, 401, "Bearer TOKEN");
    assert_int_equal(sj_api_token_add(database, "admin", SJ_ROLE_READER, 0, token, &error),
                     SJ_EINVAL);
    assert_int_equal(count("SELECT count(*) FROM api_tokens WHERE length(token_hash) <> 32"), 0);
}

static void the_audit_names_the_user_and_the_action(void **state)
{
    (void)state;
    static const char command[] = "{\"devices\": \"bench-07\", \"kind\": \"status\"}";
    fixture_run(database, "DELETE FROM audit");
    expect("POST", "/api/v1/commands", tokens[2], command, 202, "command");
    expect("POST", "/api/v1/commands", tokens[3], "{\"devices\": \"none\", \"kind\": \"status\"}",
           404, "none");
    expect("POST", "/api/v1/sessions", tokens[2], "{\"sessions\": [\"1\"], \"do\": \"pin\"}", 202,
           "before");
    expect("POST", "/api/v1/policies", tokens[2], "{\"policy\": {\"policy\": 1}}", 202, "mode");
    for (int i = 0; i < 3; i++) {
        expect("GET", "/api/v1/sql?sql=SELECT+8", tokens[1], NULL, 200, "[[8]]");
    }
    expect("GET", "/api/v1/sql?sql=DROP+TABLE+audit", tokens[1], NULL, 403, "refused");
    assert_int_equal(count("SELECT count(*) FROM audit"), 5);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE who = 'token:the-operator' AND peer ="
                           " '127.0.0.1' AND action = 'command' AND outcome = 'done' AND object ="
                           " '{\"devices\":\"bench-07\",\"kind\":\"status\"}' AND realtime_ns > 1"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE who = 'token:the-admin' AND outcome"
                           " LIKE '%none%'"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE action = 'sessions' AND object LIKE"
                           " '%pin%'"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE action = 'sql' AND who ="
                           " 'token:the-analyst' AND object = 'SELECT 8' AND outcome = 'done'"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE object LIKE 'DROP%' AND outcome <>"
                           " 'done'"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM commands WHERE requested_by ="
                           " 'token:the-operator'"),
                     1);
}

static void the_audit_has_what_was_refused(void **state)
{
    (void)state;
    static const char command[] = "{\"devices\": \"bench-07\", \"kind\": \"status\"}";
    char reader[SJ_SECRET_TEXT_BYTES];
    sj_error error;
    assert_int_equal(sj_api_token_add(database, "new", SJ_ROLE_READER, 0, reader, &error), SJ_OK);
    fixture_run(database, "DELETE FROM audit");
    for (int i = 0; i < 3; i++) { /* a repetition has no row of its own */
        expect("POST", "/api/v1/commands", reader, command, 403, "operator");
        expect("GET", "/api/v1/sql?sql=SELECT+10", reader, NULL, 403, "analyst");
    }
    expect("POST", "/api/v1/commands", tokens[2], "{", 400, "body");
    expect("POST", "/api/v1/sessions", tokens[2], "{\"sessions\": [\"1\"], \"do\": \"remove\"}",
           403, "admin");
    expect("POST", "/api/v1/commands", NULL, command, 401, "token"); /* a stranger has no name */
    assert_int_equal(count("SELECT count(*) FROM audit"), 4);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE who = 'token:new' AND peer ="
                           " '127.0.0.1' AND action = 'command' AND object = '/api/v1/commands' AND"
                           " outcome LIKE '%operator%'"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE who = 'token:new' AND action ="
                           " 'sql' AND object = 'SELECT 10' AND outcome LIKE '%analyst%'"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE who = 'token:the-operator' AND action"
                           " = 'command' AND outcome LIKE 'the body%'"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM audit WHERE who = 'token:the-operator' AND action"
                           " = 'sessions' AND object LIKE '%remove%' AND outcome LIKE '%admin%'"),
                     1);
    assert_int_equal(count("SELECT count(*) FROM commands WHERE requested_by <>"
                           " 'token:the-operator'"),
                     0);
}

static void the_audit_drops_old_rows_of_sql_and_keeps_actions(void **state)
{
    (void)state;
    fixture_run(
        database,
        "DELETE FROM audit; INSERT INTO audit VALUES (1, 1, 'a', '', 'command', '', 'done'),"
        " (2, 1, 'a', '', 'sql', '', 'done'), (100002, 1, 'a', '', 'sql', '', 'done')");
    expect("GET", "/api/v1/sql?sql=SELECT+9", tokens[1], NULL, 200, "[[9]]");
    assert_int_equal(count("SELECT count(*) FROM audit WHERE audit_id IN (1, 100002, 100003)"), 3);
    assert_int_equal(count("SELECT count(*) FROM audit"), 3);
}

int main(int argc, char **argv)
{
    sj_question_worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_needs_its_role),
        cmocka_unit_test(own_sql_needs_an_analyst_and_shipped_queries_do_not),
        cmocka_unit_test(health_names_the_token_and_its_role),
        cmocka_unit_test(a_token_that_is_revoked_or_expires_ends_at_once),
        cmocka_unit_test(the_audit_names_the_user_and_the_action),
        cmocka_unit_test(the_audit_has_what_was_refused),
        cmocka_unit_test(the_audit_drops_old_rows_of_sql_and_keeps_actions),
        cmocka_unit_test(only_an_admin_removes_sessions),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
