/* The other end may be any server. Each answer of an HTTP server becomes one status and a sentence,
 * and no failure counts as success. */
#include "collector-server/forward/clickhouse.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { ANSWERS = 32, REQUEST_BYTES = 4096 };

typedef struct fake_server {
    int listener;
    const char *answers[ANSWERS]; /* one for each connection; the first NULL ends the server */
    char requests[ANSWERS][REQUEST_BYTES];
    bool is_endless; /* sends headers for ever after the answer */
    pthread_t thread;
    char url[64];
} fake_server;

/* Sends the answer. An endless server then sends headers until the client closes the
 * connection. */
static void send_answer(const fake_server *server, int peer, const char *reply)
{
    static const char more[] = "X-ClickHouse-Progress: {}\r\n";
    const size_t size = strlen(reply);
    const struct timespec rest = {.tv_nsec = 10 * 1000000};
    bool is_sent = send(peer, reply, size, MSG_NOSIGNAL) == (ssize_t)size;
    while (server->is_endless && is_sent && nanosleep(&rest, NULL) == 0) {
        is_sent = send(peer, more, sizeof(more) - 1, MSG_NOSIGNAL) > 0;
    }
    if (is_sent) {
        shutdown(peer, SHUT_WR);
    }
    /* otherwise the kernel resets the connection */
}

/* Reads a request and its body, or as much as fits. Returns false if there is none. */
static bool read_request(int peer, char *request)
{
    size_t size = 0;
    size_t wanted = 1;
    ssize_t got = 1;
    while (got > 0 && size < wanted) {
        got = read(peer, request + size, REQUEST_BYTES - 1 - size);
        size += got > 0 ? (size_t)got : 0;
        const char *body = strstr(request, "\r\n\r\n");
        const char *length = strstr(request, "Content-Length: ");
        wanted = body == NULL ? REQUEST_BYTES - 1 : (size_t)(body + 4 - request);
        wanted += body != NULL && length != NULL ? strtoul(length + 16, NULL, 10) : 0;
        wanted = wanted < REQUEST_BYTES - 1 ? wanted : REQUEST_BYTES - 1;
    }
    return size != 0;
}

/* Answers each connection after its request, and closes it. */
static void *serve(void *held)
{
    fake_server *server = held;
    char rest[REQUEST_BYTES];
    for (size_t i = 0; i < ANSWERS && server->answers[i] != NULL; ++i) {
        const int peer = accept(server->listener, NULL, NULL);
        if (peer >= 0 && read_request(peer, server->requests[i])) {
            send_answer(server, peer, server->answers[i]);
            while (read(peer, rest, sizeof(rest)) > 0) {
            }
        }
        close(peer);
    }
    return NULL;
}

static void start(fake_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->listener, 1), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* Asks for the tables' version. `reply` is the whole response. */
static sj_status status_of(const char *reply, sj_error *error)
{
    fake_server server = {.answers = {reply}};
    sj_forward_target *target = NULL;
    start(&server);
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

static const struct {
    const char *reply;
    sj_status status;
    const char *says;
} answer_cases[] = {
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
    {FAILED END "Code: 75, e.displayText() = DB::Exception: Cannot write to file /x, errno: 28, "
                "strerror: No space left on device, e.what() = DB::Exception",
     SJ_EAGAIN, "No space left"},
    {FAILED END "Poco::Exception. Code: 1000, e.code() = 28, e.displayText() = File access error: "
                "no space left on device: /data/x, e.what() = File access error",
     SJ_EAGAIN, "refuses (500): File access error: no space left on device: /data/x"},
    {FAILED END "Poco::Exception. Code: 1000, e.code() = 0, e.displayText() = Cannot write file: "
                "/log/errors, e.what() = Cannot write file",
     SJ_EAGAIN,
     "refuses (500): Cannot write file: /log/errors: check the disk space of the server"},
    {FAILED END "Code: 252. DB::Exception: Too many parts (300). (TOO_MANY_PARTS)", SJ_EAGAIN,
     "Too many parts"},
    {FAILED END "Code: 252. DB::Exception: Too many partitions for single INSERT block (more "
                "than 100). The limit is controlled by 'max_partitions_per_insert_block'",
     SJ_ELIMIT, "Too many partitions"},
    {FAILED END "Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space: While "
                "executing WaitForAsyncInsert. (NOT_ENOUGH_SPACE) (version 24.8.4.13)",
     SJ_EAGAIN, "a disk of the server is full"},
    {FAILED END "Code: 1001. DB::Exception: std::__fs::filesystem::filesystem_error: in "
                "create_directories: No space left on device. (STD_EXCEPTION)",
     SJ_EAGAIN, "a disk of the server is full"},
    {FAILED END "Code: 497. DB::Exception: lab: Not enough privileges. To execute this query, "
                "it's necessary to have the grant INSERT ON sojourn.raw_sessions",
     SJ_EPERM, "does not allow this to the user default"},
    {FAILED END "Code: 164. DB::Exception: default: Cannot execute query in readonly mode. "
                "(READONLY)",
     SJ_EPERM, "readonly mode"},
    {FAILED END "Code: 279, e.displayText() = DB::NetException: All connection tries failed.",
     SJ_EINVAL, "a shard does not answer"},
    {"HTTP/1.1 503 Service Unavailable\r\n" END, SJ_EAGAIN, "refuses (503)"},
};

static void every_reply_has_a_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(answer_cases) / sizeof(answer_cases[0]); ++i) {
        sj_error error = {0};
        const sj_status status = status_of(answer_cases[i].reply, &error);
        if (status != answer_cases[i].status || strstr(error.text, answer_cases[i].says) == NULL) {
            fail_msg("%s: status %d, \"%s\"", answer_cases[i].reply, (int)status, error.text);
        }
    }
}

static sj_forward_target *open_at(const fake_server *server, int64_t limit_ms)
{
    sj_forward_target *target = NULL;
    sj_error error = {0};
    const sj_forward_options options = {.url = server->url, .limit_ms = limit_ms};
    assert_int_equal(sj_forward_clickhouse.open(&options, &target, &error), SJ_OK);
    return target;
}

static void end(fake_server *server, sj_forward_target *target)
{
    sj_forward_clickhouse.close(target);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

static sj_status write_nothing(sj_forward_target *target, sj_error *error)
{
    const sj_native_rows none = {0};
    return sj_forward_clickhouse.write(target, &sj_forward_tables[0], &none, error);
}

/* An asynchronous insert is answered before it is stored, and dropped if the server ends then. */
static void rows_are_stored_when_the_server_answers(void **state)
{
    static const struct {
        const char *schema;
        bool is_pinned, is_distributed;
    } cases[] = {{OK END "6\t\t18.16.1\n", false, false},
                 {OK END "6\t\t21.10.6.2\n", false, false},
                 {OK END "6\t\t21.11.1.1\n", true, false},
                 {OK END "6\tlabs\t24.8.4.13\n", true, true},
                 {OK END "6\tlabs\t18.16.1\n", false, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        sj_error error = {0};
        fake_server server = {.answers = {cases[i].schema, OK END ""}};
        start(&server);
        sj_forward_target *target = open_at(&server, 0);
        assert_int_equal(sj_forward_clickhouse.check(target, &error), SJ_OK);
        assert_int_equal(write_nothing(target, &error), SJ_OK);
        end(&server, target);
        const char *insert = server.requests[1];
        assert_non_null(strstr(insert, "INSERT"));
        assert_int_equal(strstr(insert, "&async_insert=0&wait_for_async_insert=1") != NULL,
                         cases[i].is_pinned);
        assert_int_equal(strstr(insert, "&insert_distributed_sync=1") != NULL,
                         cases[i].is_distributed);
        assert_int_equal(strstr(insert, "&insert_distributed_timeout=90") != NULL,
                         cases[i].is_distributed);
    }
}

static void a_read_only_user_is_asked_without_settings(void **state)
{
    char *reply = NULL;
    size_t size = 0;
    sj_error error = {0};
    fake_server server = {
        .answers = {FAILED END "Code: 164. DB::Exception: Cannot modify 'readonly' setting in "
                               "readonly mode. (READONLY)",
                    OK END "7\n", OK END "8\n"}};
    (void)state;
    start(&server);
    sj_forward_target *target = open_at(&server, 0);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(
            sj_clickhouse_ask(target, "SELECT 7", SJ_CLICKHOUSE_PARTIAL, 0, &reply, &size, &error),
            SJ_OK);
        assert_string_equal(reply, i == 0 ? "7\n" : "8\n");
        free(reply);
    }
    end(&server, target);
    assert_non_null(strstr(server.requests[0], "readonly=1&skip_unavailable_shards=1"));
    for (int i = 1; i < 3; ++i) {
        assert_null(strstr(server.requests[i], "readonly"));
        assert_null(strstr(server.requests[i], "skip_unavailable_shards"));
        assert_non_null(strstr(server.requests[i], "database=sojourn"));
    }
}

/* A session is seen only through its row in `sessions`, which has to go first. The mark of a
 * removal has to stay, or the removed session would be seen again. */
static void a_session_disappears_as_a_whole(void **state)
{
    fake_server server = {0};
    sj_error error = {0};
    size_t seen = 0;
    (void)state;
    const size_t tables = sj_forward_table_count + 2;
    assert_true(tables <= ANSWERS);
    for (size_t i = 0; i < tables; ++i) {
        server.answers[i] = OK END "";
    }
    start(&server);
    sj_forward_target *target = open_at(&server, 0);
    assert_int_equal(sj_clickhouse_retain(target, 400, &error), SJ_OK);
    end(&server, target);
    for (size_t i = 0; i < tables; ++i) {
        const char *sql = strstr(server.requests[i], "ALTER TABLE sojourn.raw_");
        assert_non_null(sql);
        const bool has_removals =
            strstr(sql, "raw_sessions ") != NULL || strstr(sql, "raw_commands ") != NULL;
        seen += has_removals;
        assert_non_null(strstr(sql, has_removals ? "MODIFY TTL day + toIntervalDay(400) DELETE "
                                                   "WHERE removed = 0"
                                                 : "MODIFY TTL day + toIntervalDay(407)"));
        assert_int_equal(strstr(sql, "DELETE") != NULL, has_removals);
    }
    assert_int_equal(seen, 2);
}

/* A node that waits for a dead replica may send its progress for ever. */
static void a_write_that_does_not_end_is_given_up(void **state)
{
    sj_error error = {0};
    fake_server server = {.answers = {OK}, .is_endless = true};
    (void)state;
    start(&server);
    sj_forward_target *target = open_at(&server, 200);
    assert_int_equal(write_nothing(target, &error), SJ_EAGAIN);
    assert_non_null(strstr(error.text, "timed out"));
    end(&server, target);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_reply_has_a_status),
                                       cmocka_unit_test(rows_are_stored_when_the_server_answers),
                                       cmocka_unit_test(a_read_only_user_is_asked_without_settings),
                                       cmocka_unit_test(a_write_that_does_not_end_is_given_up),
                                       cmocka_unit_test(a_session_disappears_as_a_whole),
                                       cmocka_unit_test(options_are_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
