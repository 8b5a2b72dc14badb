/* Every answer carries the headers that keep pages of other sites from embedding or framing it: of
 * each route, of each file of the dashboard, and of each error. No other site gets the answer of a
 * route. */
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include "collector-server/http/assets.h"
#include "collector-server/http/question_worker.h"
#include "collector-server/http/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { HEAD_BYTES = 8192, PATH_BYTES = 256, REQUEST_BYTES = 4096 };

static char database_path[64];
static sqlite3 *database;
static sj_http *server;

static int start_server(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "http_headers_test.%d.db", (int)getpid());
    database = fixture_create(database_path, 0);
    const sj_http_options options = {.database_path = database_path};
    return sj_http_start(&options, &server, &error) == SJ_OK ? 0 : -1;
}

static int stop_server(void **state)
{
    (void)state;
    sj_http_stop(server);
    sqlite3_close(database);
    return unlink(database_path);
}

/* Sends a request. Reads the answer up to its body, because a stream of events does not end.
 * Returns the status. */
static int ask(const char *request, char head[HEAD_BYTES])
{
    size_t size = 0;
    ssize_t got = 1;
    const int fd = client_connect(server);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    head[0] = '\0';
    while (got > 0 && size < HEAD_BYTES - 1 && strstr(head, "\r\n\r\n") == NULL) {
        got = recv(fd, head + size, HEAD_BYTES - 1 - size, 0);
        size += got > 0 ? (size_t)got : 0;
        head[size] = '\0';
    }
    close(fd);
    char *end = strstr(head, "\r\n\r\n");
    assert_non_null(end);
    end[2] = '\0';
    int status = 0;
    assert_int_equal(sscanf(head, "HTTP/1.1 %d", &status), 1);
    return status;
}

/* Fails if a header is missing or sent twice: browsers combine two policies. */
static void expect_once(const char *request, const char *head, const char *line)
{
    const char *found = strstr(head, line);
    if (found == NULL || strstr(found + 1, line) != NULL) {
        fail_msg("not once \"%s\" in the answer to %.*s:\n%s", line, (int)strcspn(request, "\r"),
                 request, head);
    }
}

static int ask_checked(const char *request)
{
    char head[HEAD_BYTES];
    const int status = ask(request, head);
    expect_once(request, head, "\r\nCross-Origin-Resource-Policy: same-origin\r\n");
    expect_once(request, head, "\r\nCross-Origin-Opener-Policy: same-origin\r\n");
    expect_once(request, head, "\r\nContent-Security-Policy: ");
    expect_once(request, head, "frame-ancestors 'none'");
    expect_once(request, head, "\r\nX-Frame-Options: DENY\r\n");
    expect_once(request, head, "\r\nX-Content-Type-Options: nosniff\r\n");
    assert_null(strcasestr(head, "Access-Control-Allow"));
    return status;
}

static int get(const char *method, const char *path, const char *headers)
{
    char request[REQUEST_BYTES];
    snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", method, path,
             headers);
    return ask_checked(request);
}

/* Writes the path of a route, with 1 in place of an id. */
static void write_path(const sj_route *route, char path[PATH_BYTES])
{
    const char *id = strstr(route->pattern, "{id}");
    const size_t before = id != NULL ? (size_t)(id - route->pattern) : strlen(route->pattern);
    snprintf(path, PATH_BYTES, "%.*s%s%s", (int)before, route->pattern, id != NULL ? "1" : "",
             id != NULL ? id + 4 : "");
}

static void every_route_sends_them(void **state)
{
    (void)state;
    size_t answered = 0;
    for (const sj_route *const *route = sj_routes; *route != NULL; route++) {
        char path[PATH_BYTES];
        write_path(*route, path);
        answered += get("GET", path, client_login(server)) == 200;
        get("HEAD", path, client_login(server));
        get("POST", path, client_login(server));
        get("GET", path, "");
    }
    assert_true(answered > 5); /* Others need parameters and answer with an error. */
}

/* A browser says with Sec-Fetch-Site which page made the request. */
static void another_site_gets_no_route(void **state)
{
    (void)state;
    static const char *const sites[] = {"cross-site", "same-site"};
    static const char *const modes[] = {"", "Sec-Fetch-Mode: cors\r\n",
                                        "Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: script\r\n",
                                        "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
                                        "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"};
    for (const sj_route *const *route = sj_routes; *route != NULL; route++) {
        char path[PATH_BYTES];
        write_path(*route, path);
        for (size_t i = 0; i < 2 * sizeof(modes) / sizeof(modes[0]); i++) {
            char headers[REQUEST_BYTES / 4];
            snprintf(headers, sizeof(headers), "%sSec-Fetch-Site: %s\r\n%s", client_login(server),
                     sites[i % 2], modes[i / 2]);
            const int status = get("GET", path, headers);
            if (status != 403) {
                fail_msg("%s gave %d to another site:\n%s", path, status, headers);
            }
        }
    }
}

static void every_file_of_the_dashboard_sends_them(void **state)
{
    (void)state;
    assert_true(sj_asset_count > 2);
    for (size_t i = 0; i < sj_asset_count; i++) {
        static const char *const more[] = {"", "Accept-Encoding: gzip\r\n",
                                           "If-None-Match: ", "Sec-Fetch-Site: cross-site\r\n"};
        static const int statuses[] = {200, 200, 304, 403};
        for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
            char headers[REQUEST_BYTES / 4];
            const bool is_known = statuses[k] == 304;
            snprintf(headers, sizeof(headers), "%s%s%s%s", client_login(server), more[k],
                     is_known ? sj_assets[i].etag : "", is_known ? "\r\n" : "");
            assert_int_equal(get("GET", sj_assets[i].path, headers), statuses[k]);
            assert_int_equal(get("HEAD", sj_assets[i].path, headers), statuses[k]);
        }
    }
}

static void every_error_sends_them(void **state)
{
    (void)state;
    char more[REQUEST_BYTES / 4];
    const char *login = client_login(server);
    assert_int_equal(get("GET", "/api/v1/nothing", login), 404);
    assert_int_equal(get("GET", "/assets/nothing.js", login), 404);
    assert_int_equal(get("GET", "/api/v1/sessions/999999", login), 404);
    assert_int_equal(get("GET", "/api/v1/sql?sql=DROP%20TABLE%20sessions", login), 403);
    assert_int_equal(get("GET", "/api/v1/sql?sql=SELEC", login), 400);
    assert_int_equal(get("BREW", "/api/v1/health", login), 405);
    snprintf(more, sizeof(more), "%sContent-Length: 99999999999\r\n", login);
    assert_int_equal(get("GET", "/api/v1/health", more), 413);
    snprintf(more, sizeof(more), "%sOrigin: https://evil.example\r\n", login);
    assert_int_equal(get("GET", "/api/v1/health", more), 403);
    assert_int_equal(ask_checked("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403);
    assert_int_equal(ask_checked("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: a\r\n\r\n"), 400);
}

int main(int argc, char **argv)
{
    sj_question_worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_sends_them),
        cmocka_unit_test(another_site_gets_no_route),
        cmocka_unit_test(every_file_of_the_dashboard_sends_them),
        cmocka_unit_test(every_error_sends_them),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
