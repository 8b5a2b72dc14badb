/* The other end may be any server. Each answer of an HTTP server becomes one status and a sentence,
 * and no failure counts as success. */
#include "collector-server/forward/clickhouse.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fake_server {
    int listener;
    const char *answer;
    pthread_t thread;
    char url[64];
} fake_server;

/* Answers one connection once its request has begun, and closes it. */
static void *serve(void *held)
{
    fake_server *server = held;
    char request[4096];
    const int peer = accept(server->listener, NULL, NULL);
    if (peer >= 0 && read(peer, request, sizeof(request)) > 0) {
        const size_t size = strlen(server->answer);
        if (write(peer, server->answer, size) == (ssize_t)size) {
            shutdown(peer, SHUT_WR);
        }
        /* otherwise the kernel resets the connection */
        while (read(peer, request, sizeof(request)) > 0) {
        }
    }
    close(peer);
    return NULL;
}

static void start(fake_server *server, const char *answer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    server->answer = answer;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->listener, 1), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* Asks for the tables' version. `answer` is the whole response. */
static sj_status status_of(const char *answer, sj_error *error)
{
    fake_server server;
    sj_forward_target *target = NULL;
    start(&server, answer);
    const sj_forward_options options = {.url = server.url};
    assert_int_equal(sj_forward_clickhouse.open(&options, &target, error), SJ_OK);
    const sj_status status = sj_forward_clickhouse.check(target, error);
    sj_forward_clickhouse.close(target); /* ends the connection, too */
    pthread_join(server.thread, NULL);
    close(server.listener);
    return status;
}

#define OK "HTTP/1.1 200 OK\r\n"
#define FAILED "HTTP/1.1 500 Internal Server Error\r\n"
#define END "Connection: close\r\n\r\n"

static void every_answer_has_a_status(void **state)
{
    static const struct {
        const char *answer;
        sj_status status;
        const char *says;
    } cases[] = {
        {OK END "6\t\n", SJ_OK, ""},
        {OK END "6\tlabs\n", SJ_OK, ""},
        {OK END "6", SJ_OK, ""},
        {OK END "", SJ_EVERSION, "version 0"},
        {OK END "7\t\n", SJ_EVERSION, "version 7"},
        {OK END "1\t\n", SJ_EVERSION, "forward init"},
        {OK END "5\t\n", SJ_EVERSION, "forward init"},
        {OK END "99999999999999999999999999\t\n", SJ_EVERSION, "version"},
        {OK END "<html>not a database</html>", SJ_EVERSION, "version"},
        {OK END "6\tlabs) UNION ALL SELECT\n", SJ_EVERSION, "changed by hand"},
        {OK "Content-Length: 40\r\n" END "6\t\n", SJ_EAGAIN, "not reached"},
        {OK "Transfer-Encoding: chunked\r\n" END "zz\r\n1\t\n", SJ_EAGAIN, "not reached"},
        {"", SJ_EAGAIN, "not reached"},
        {"SSH-2.0-OpenSSH_9.2\r\n", SJ_EAGAIN, "not reached"},
        {FAILED END "", SJ_EINVAL, "refuses (500)"},
        {FAILED END "Code: 60, e.displayText() = DB::Exception: Table x doesn't exist., e.what()",
         SJ_ENOTFOUND, "forward init"},
        {FAILED END "Code: 81. DB::Exception: Database sojourn doesn't exist. (UNKNOWN_DATABASE)",
         SJ_ENOTFOUND, "forward init"},
        {FAILED END "Code: 193, e.displayText() = DB::Exception: Wrong password, e.what() = x",
         SJ_EPERM, "does not let default in: Wrong password"},
        {FAILED END "Code: 516. DB::Exception: default: Authentication failed", SJ_EPERM,
         "does not let default in"},
        {"HTTP/1.1 401 Unauthorized\r\n" END, SJ_EPERM, "does not let default in"},
        {"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n" END, SJ_EINVAL, "refuses (302)"},
        {FAILED END "Code: 243, e.displayText() = DB::Exception: Cannot reserve 1.00 MiB, not "
                    "enough space, e.what() = DB::Exception",
         SJ_EAGAIN, "not enough space"},
        {FAILED END
         "Code: 75, e.displayText() = DB::Exception: Cannot write to file /x, errno: 28, "
         "strerror: No space left on device, e.what() = DB::Exception",
         SJ_EAGAIN, "No space left"},
        {FAILED END
         "Poco::Exception. Code: 1000, e.code() = 28, e.displayText() = File access error: "
         "no space left on device: /data/x, e.what() = File access error",
         SJ_EAGAIN, "refuses (500): File access error: no space left on device: /data/x"},
        {FAILED END
         "Poco::Exception. Code: 1000, e.code() = 0, e.displayText() = Cannot write file: "
         "/log/errors, e.what() = Cannot write file",
         SJ_EAGAIN,
         "refuses (500): Cannot write file: /log/errors: check the disk space of the server"},
        {FAILED END "Code: 252. DB::Exception: Too many parts (300). (TOO_MANY_PARTS)", SJ_EAGAIN,
         "Too many parts"},
        {FAILED END "Code: 279, e.displayText() = DB::NetException: All connection tries failed.",
         SJ_EINVAL, "a shard does not answer"},
        {"HTTP/1.1 503 Service Unavailable\r\n" END, SJ_EAGAIN, "refuses (503)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        sj_error error = {0};
        const sj_status status = status_of(cases[i].answer, &error);
        if (status != cases[i].status || strstr(error.text, cases[i].says) == NULL) {
            fail_msg("%s: status %d, \"%s\"", cases[i].answer, (int)status, error.text);
        }
    }
}

static void options_are_checked(void **state)
{
    static const sj_forward_options wrong[] = {
        {.url = "clickhouse.example"},
        {.url = "file:///etc/passwd"},
        {.url = "http://127.0.0.1:1", .database = "a; DROP DATABASE b"},
        {.url = "http://127.0.0.1:1", .database = ""},
        {.url = "http://127.0.0.1:1", .password_file = "nowhere/at/all"},
        {.url = "http://127.0.0.1:1",
         .database = "a234567890123456789012345678901234567890123456789012345678901234"}};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        sj_forward_target *target = NULL;
        sj_error error = {0};
        assert_int_not_equal(sj_forward_clickhouse.open(&wrong[i], &target, &error), SJ_OK);
        assert_true(error.text[0] != '\0');
        assert_null(target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_answer_has_a_status),
                                       cmocka_unit_test(options_are_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
