/* Hostile or faulty peers harm only themselves. */
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include "collector-server/http/connection_watch.h"
#include "collector-server/http/route.h"

#include <errno.h>
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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char database_path[64];
static sqlite3 *database;
static sj_http *server;

static int start_server(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "http_hostile_test.%d.db", (int)getpid());
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

static void assert_still_well(void)
{
    json_decref(client_json(server, "/api/v1/health", 200));
}

static int status_of(const char *request)
{
    client_response response = client_exchange(server, request, strlen(request));
    const int status = response.status;
    client_free(&response);
    return status;
}

static int status_with_host(const char *host)
{
    char request[512];
    snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    return status_of(request);
}

static void paths_lead_nowhere_outside_of_the_table(void **state)
{
    (void)state;
    static const char *const targets[] = {"/../../../../etc/passwd",
                                          "/assets/../../../etc/passwd",
                                          "/..%2f..%2fetc/passwd",
                                          "/%2e%2e/%2e%2e/etc/passwd",
                                          "/assets/",
                                          "/assets",
                                          "//",
                                          "/index.html",
                                          "/etc/passwd",
                                          "/sessions/",
                                          "/sessions/0",
                                          "/sessions/01",
                                          "/sessions/1/",
                                          "/sessions/-1",
                                          "/sessions/9999999999999999999",
                                          "/sessions/{id}",
                                          "/api/v1/sessions/1/functions/",
                                          "/api/v1/sessions/1%00/functions",
                                          "/api/v1/sessions/1/../2",
                                          "/api/v1/",
                                          "/api/v2/health",
                                          "/API/v1/health",
                                          "/assets/app..js",
                                          "/%00",
                                          "/%ff%fe",
                                          "/./"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        client_response response = client_get(server, targets[i], NULL);
        if (response.status != 404 && response.status != 400) {
            fail_msg("%s gave %d", targets[i], response.status);
        }
        assert_null(strstr(response.text, "root:"));
        client_free(&response);
    }
    assert_still_well();
}

static void a_host_that_is_not_the_loopback_is_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = {"evil.example",       "127.0.0.1.evil.example",
                                        "localhost.evil",     "127.0.0.1:1",
                                        "localhost:",         "[::1",
                                        "127.0.0.1:99999999", "0.0.0.0",
                                        "127.0.0.1 evil"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        const int status = status_with_host(hosts[i]);
        if (status != 403 && status != 400) {
            fail_msg("Host: %s gave %d", hosts[i], status);
        }
    }
    assert_int_not_equal(status_of("GET / HTTP/1.1\r\n\r\n"), 200);
    assert_int_not_equal(status_of("GET / HTTP/1.0\r\n\r\n"), 200);
    char ours[64];
    snprintf(ours, sizeof(ours), "localhost:%u", client_port(server));
    assert_int_equal(status_with_host(ours), 200);
    assert_int_equal(status_with_host("localhost"), 200);
}

static void requests_of_other_sites_are_refused(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://127.0.0.1.evil.example\r\n",
        "Origin: http://127.0.0.1:1\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"};
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        client_response response = client_get(server, "/api/v1/sessions", headers[i]);
        assert_int_equal(response.status, 403);
        assert_null(strstr(response.text, "editor"));
        client_free(&response);
    }
}

/* A link opens a whole page, whatever the browser has cached of it and wherever the link is.
 * Another site gets nothing else. */
static void links_of_other_sites_open_pages_only(void **state)
{
    (void)state;
    static const char link[] = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    char headers[256];
    client_response own = client_get(server, "/sql", "Sec-Fetch-Site: none\r\n");
    assert_null(strstr(own.text, "Server-Timing"));
    const char *tag = strstr(own.text, "ETag: ");
    assert_non_null(tag);
    snprintf(headers, sizeof(headers), "%sSec-Fetch-Dest: document\r\nIf-None-Match: %.*s\r\n",
             link, (int)strcspn(tag + 6, "\r"), tag + 6);
    client_response opened = client_get(server, "/sql", headers);
    assert_int_equal(opened.status, 200);
    assert_non_null(strstr(opened.text, "Server-Timing: foreign\r\n"));
    assert_non_null(strstr(opened.text, "Cache-Control: no-store\r\n"));
    client_free(&opened);
    client_free(&own);
    static const char *const rest[] = {"Sec-Fetch-Dest: iframe\r\n", "Sec-Fetch-Dest: object\r\n",
                                       "Sec-Fetch-Dest: embed\r\n", ""};
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
        snprintf(headers, sizeof(headers), "%s%s", link, rest[i]);
        client_response framed = client_get(server, "/sql", headers);
        assert_int_equal(framed.status, 403);
        client_free(&framed);
    }
}

/* Tests every route, so that none is forgotten. */
static void without_the_token_nothing_is_read(void **state)
{
    (void)state;
    static const char *const shown[] = {"", "Authorization: Bearer guess\r\n",
                                        "Authorization: Bearer \r\n"};
    for (const sj_route *const *route = sj_routes; *route != NULL; route++) {
        char path[128];
        char request[512];
        const char *pattern = (*route)->pattern;
        const char *id = strstr(pattern, "{id}");
        snprintf(path, sizeof(path), "%.*s%s%s",
                 id != NULL ? (int)(id - pattern) : (int)strlen(pattern), pattern,
                 id != NULL ? "1" : "", id != NULL ? id + 4 : "");
        for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
            snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", path,
                     shown[i]);
            const int status = status_of(request);
            if (status != (strcmp(pattern, "/healthz") == 0 ? 200 : 401)) {
                fail_msg("%s gave %d", path, status);
            }
        }
    }
}

static void methods_that_write_are_refused(void **state)
{
    (void)state;
    static const char *const methods[] = {"POST",    "PUT",   "DELETE",  "PATCH",
                                          "OPTIONS", "TRACE", "CONNECT", "BREW"};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        char request[256];
        snprintf(request, sizeof(request),
                 "%s /api/v1/devices HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", methods[i],
                 client_login(server));
        client_response response = client_exchange(server, request, strlen(request));
        assert_int_equal(response.status, 405);
        assert_non_null(strstr(response.text, "Allow: GET, HEAD"));
        client_free(&response);
    }
}

static void a_body_is_refused_before_it_is_read(void **state)
{
    (void)state;
    static const char *const bodies[] = {"Content-Length: 99999999999\r\n\r\n",
                                         "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n"};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        char request[512];
        snprintf(request, sizeof(request), "GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s",
                 client_login(server), bodies[i]);
        assert_int_equal(status_of(request), 413);
    }
    assert_still_well();
}

/* A proxy in front of the server may choose the other reading. */
static void requests_that_can_be_read_in_two_ways_are_refused(void **state)
{
    (void)state;
    static const char *const twice[] = {
        "Host: evil.example\r\n",
        "Host: 127.0.0.1\r\n",
        "Content-Length: 0\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Origin: http://127.0.0.1\r\nOrigin: https://evil.example\r\n",
        "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n",
        "Authorization: Bearer guess\r\n"};
    for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
        client_response response = client_get(server, "/api/v1/health", twice[i]);
        if (response.status != 400) {
            fail_msg("%s gave %d", twice[i], response.status);
        }
        client_free(&response);
    }
    assert_still_well();
}

static void oversized_requests_are_refused(void **state)
{
    (void)state;
    const size_t size = 1 << 20;
    char *request = malloc(size);
    memset(request, 'a', size);
    static const char *const starts[] = {
        "GET /", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", "GET /api/v1/sessions?limit="};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        memset(request, 'a', size);
        memcpy(request, starts[i], strlen(starts[i]));
        memcpy(request + size - 4, "\r\n\r\n", 4);
        client_response response = client_exchange(server, request, size);
        assert_true(response.status == 0 || (response.status >= 400 && response.status < 500));
        client_free(&response);
    }
    static const char head[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    memcpy(request, head, sizeof(head) - 1);
    for (size_t i = sizeof(head) - 1; i + 8 <= size; i += 8) {
        memcpy(request + i, "X: abc\r\n", 8);
    }
    client_response response = client_exchange(server, request, size);
    assert_true(response.status == 0 || response.status == 431);
    client_free(&response);
    free(request);
    assert_still_well();
}

static void bytes_that_are_no_http_end_the_connection(void **state)
{
    (void)state;
    static const char *const garbage[] = {"\r\n\r\n\r\n\r\n", "\x16\x03\x01\x02", "GET\r\n\r\n",
                                          "GET / HTTP/9.9\r\n\r\n", "\xff\xfe\xfd\r\n\r\n"};
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        const int fd = client_connect(server);
        send(fd, garbage[i], strlen(garbage[i]), MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        char reply[512];
        const ssize_t got = recv(fd, reply, sizeof(reply), 0);
        assert_true(got <= 0 || strncmp(reply, "HTTP/1.1 200", 12) != 0);
        close(fd);
    }
    assert_still_well();
}

static void two_requests_share_a_connection(void **state)
{
    (void)state;
    static const char twice[] = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                                "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                "Connection: close\r\n\r\n";
    const int fd = client_connect(server);
    char text[8192];
    size_t size = 0;
    ssize_t got;
    send(fd, twice, sizeof(twice) - 1, MSG_NOSIGNAL);
    while (size < sizeof(text) - 1 &&
           (got = recv(fd, text + size, sizeof(text) - 1 - size, 0)) > 0) {
        size += (size_t)got;
    }
    text[size] = '\0';
    char *second = strstr(text + 1, "HTTP/1.1 200");
    assert_non_null(second);
    close(fd);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Sends one byte a second until the server closes. Returns the time that this took. */
static uint64_t trickle_until_closed(int fd)
{
    const uint64_t start_ms = now_ms();
    while (now_ms() - start_ms < 40000) {
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        char byte;
        if (send(fd, "a", 1, MSG_NOSIGNAL) != 1 ||
            (poll(&watched, 1, 1000) == 1 && recv(fd, &byte, 1, 0) <= 0)) {
            break;
        }
    }
    return now_ms() - start_ms;
}

static void slow_peers_are_ended_and_delay_no_other(void **state)
{
    (void)state;
    enum { SLOW = 60 };
    int slow[SLOW];
    for (int i = 0; i < SLOW; i++) {
        slow[i] = client_connect(server);
        send(slow[i], "GET /", 5, MSG_NOSIGNAL);
    }
    for (int i = 0; i < 20; i++) {
        assert_still_well();
    }
    /* The library ends silent connections. A connection with one byte a second must end, too. */
    const uint64_t lasted_ms = trickle_until_closed(slow[0]);
    assert_true(lasted_ms >= 3000);
    assert_true(lasted_ms < 30000);
    for (int i = 1; i < SLOW; i++) {
        char byte;
        const ssize_t got = recv(slow[i], &byte, 1, 0);
        /* the server closed, not a timeout of the test */
        assert_true(got == 0 || (got < 0 && errno == ECONNRESET));
    }
    for (int i = 0; i < SLOW; i++) {
        close(slow[i]);
    }
    assert_still_well();
}

/* There are more slow connections than slots, and the server still answers health requests. */
static void health_requests_are_answered_despite_slow_connections(void **state)
{
    (void)state;
    enum { CROWD = 450 };
    static int slow[CROWD];
    for (int i = 0; i < CROWD; i++) {
        slow[i] = client_connect(server);
        send(slow[i], "GET /", 5, MSG_NOSIGNAL);
    }
    for (int i = 0; i < 5; i++) {
        client_response reply = client_get(server, "/healthz", NULL);
        assert_int_equal(reply.status, 200);
        client_free(&reply);
    }
    for (int i = 0; i < CROWD; i++) {
        close(slow[i]);
    }
}

static void starting_fails_with_a_sentence(void **state)
{
    (void)state;
    sj_http *none = NULL;
    sj_error error;
    sj_http_options options = {.database_path = "there_is_no_such_file.db"};
    assert_int_equal(sj_http_start(&options, &none, &error), SJ_ENOTFOUND);
    assert_non_null(strstr(error.text, "there_is_no_such_file.db"));
    options.database_path = "CMakeCache.txt";
    assert_int_equal(sj_http_start(&options, &none, &error), SJ_ECORRUPT);
    assert_non_null(strstr(error.text, "not a Sojourn database"));
    options.database_path = ".";
    assert_int_equal(sj_http_start(&options, &none, &error), SJ_ECORRUPT);
    options.database_path = database_path;
    options.port = (uint16_t)client_port(server);
    assert_int_equal(sj_http_start(&options, &none, &error), SJ_EIO);
    assert_non_null(strstr(error.text, "port"));
    options.port = 0;
    static const char *const addresses[] = {"0.0.0.0", "::", "192.168.1.1", "example.org", ""};
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        options.address = addresses[i];
        assert_int_equal(sj_http_start(&options, &none, &error), SJ_EPERM);
        assert_non_null(strstr(error.text, "loopback"));
    }
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_nowhere_outside_of_the_table),
        cmocka_unit_test(a_host_that_is_not_the_loopback_is_refused),
        cmocka_unit_test(requests_of_other_sites_are_refused),
        cmocka_unit_test(links_of_other_sites_open_pages_only),
        cmocka_unit_test(without_the_token_nothing_is_read),
        cmocka_unit_test(methods_that_write_are_refused),
        cmocka_unit_test(a_body_is_refused_before_it_is_read),
        cmocka_unit_test(requests_that_can_be_read_in_two_ways_are_refused),
        cmocka_unit_test(oversized_requests_are_refused),
        cmocka_unit_test(bytes_that_are_no_http_end_the_connection),
        cmocka_unit_test(two_requests_share_a_connection),
        cmocka_unit_test(health_requests_are_answered_despite_slow_connections),
        cmocka_unit_test(slow_peers_are_ended_and_delay_no_other),
        cmocka_unit_test(starting_fails_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
