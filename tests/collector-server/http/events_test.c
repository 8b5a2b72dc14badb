/* Server-sent events while the database changes. */
#include "collector-server/http/event_hub.h"
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include <poll.h>
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

enum { PATIENCE_MS = 60000 };

static char database_path[64];
static sqlite3 *database;
static sj_http *server;

static int start_server(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "http_events_test.%d.db", (int)getpid());
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

static int open_stream_at(const char *target)
{
    char request[256];
    const int length =
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", target,
                 client_login(server));
    const int fd = client_connect(server);
    assert_int_equal(send(fd, request, (size_t)length, MSG_NOSIGNAL), length);
    return fd;
}

static int open_stream(void)
{
    return open_stream_at("/api/v1/events");
}

/* Reads until `wanted` has come or nothing comes for `patience_ms`. */
static bool read_until(int fd, const char *wanted, int patience_ms, char *text, size_t capacity)
{
    size_t size = 0;
    text[0] = '\0';
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    while (strstr(text, wanted) == NULL && size + 1 < capacity &&
           poll(&watched, 1, patience_ms) == 1) {
        const ssize_t got = recv(fd, text + size, capacity - size - 1, 0);
        if (got <= 0) {
            break;
        }
        size += (size_t)got;
        text[size] = '\0';
    }
    return strstr(text, wanted) != NULL;
}

static void a_stream_reports_only_changed_sessions(void **state)
{
    (void)state;
    char text[16384];
    const int fd = open_stream();
    assert_true(read_until(fd, "event: hello", PATIENCE_MS, text, sizeof(text)));
    assert_non_null(strstr(text, "text/event-stream"));
    fixture_run(database, "UPDATE sessions SET stored_calls = 424242 WHERE session_id = 3");
    assert_true(read_until(fd, "424242", PATIENCE_MS, text, sizeof(text)));
    assert_non_null(strstr(text, "event: sessions"));
    assert_non_null(strstr(text, "editor --live"));
    assert_null(strstr(text, "editor --crash"));
    close(fd);
}

static void a_stream_about_one_session_leaves_out_the_others(void **state)
{
    (void)state;
    char text[16384];
    const int fd = open_stream_at("/api/v1/events?session=2");
    const int all = open_stream();
    assert_true(read_until(fd, "event: hello", PATIENCE_MS, text, sizeof(text)));
    assert_true(read_until(all, "event: hello", PATIENCE_MS, text, sizeof(text)));
    fixture_run(database, "UPDATE sessions SET stored_calls = 31313 WHERE session_id = 3");
    assert_true(read_until(all, "31313", PATIENCE_MS, text, sizeof(text)));
    fixture_run(database, "UPDATE sessions SET stored_calls = stored_calls + 1");
    /* The first event belongs to the second change, and to session 2 alone. */
    assert_true(read_until(fd, "\n\n", PATIENCE_MS, text, sizeof(text)));
    assert_non_null(strstr(text, "editor --crash"));
    assert_null(strstr(text, "editor --live"));
    assert_null(strstr(text, "31313"));
    close(fd);
    close(all);
}

static void an_old_session_that_is_recorded_is_watched_to_its_end(void **state)
{
    (void)state;
    char text[16384];
    fixture_run(database,
                "INSERT INTO sessions (session_id, uuid, device_id, command, state,"
                " started_realtime_ns, ended_realtime_ns, started_ticks, tick_ns_numerator,"
                " tick_ns_denominator) WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM"
                " n WHERE i < 299) SELECT 1000 + i, randomblob(16), 1, 'crowd', 'completed', 1, 2,"
                " 0, 1, 2 FROM n");
    const int fd = open_stream_at("/api/v1/events?session=3");
    assert_true(read_until(fd, "event: hello", PATIENCE_MS, text, sizeof(text)));
    fixture_run(database, "UPDATE sessions SET stored_calls = 515151 WHERE session_id = 3");
    assert_true(read_until(fd, "515151", PATIENCE_MS, text, sizeof(text)));
    fixture_run(database, "UPDATE sessions SET state = 'killed', cause = 'at last',"
                          " ended_realtime_ns = 5 WHERE session_id = 3");
    assert_true(read_until(fd, "at last", PATIENCE_MS, text, sizeof(text)));
    close(fd);
    fixture_run(database, "DELETE FROM sessions WHERE session_id >= 1000");
}

static void a_new_session_reaches_every_stream(void **state)
{
    (void)state;
    enum { STREAMS = 5 };
    int streams[STREAMS];
    char text[16384];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = open_stream();
        assert_true(read_until(streams[i], "event: hello", PATIENCE_MS, text, sizeof(text)));
    }
    fixture_add_session(database, "brand --new", 5);
    for (int i = 0; i < STREAMS; i++) {
        assert_true(read_until(streams[i], "brand --new", PATIENCE_MS, text, sizeof(text)));
        close(streams[i]);
    }
}

static void a_write_that_changes_no_session_says_nothing(void **state)
{
    (void)state;
    char text[16384];
    const int fd = open_stream();
    assert_true(read_until(fd, "event: hello", PATIENCE_MS, text, sizeof(text)));
    fixture_run(database, "UPDATE functions SET size_bytes = 65 WHERE function_id = 1");
    assert_false(read_until(fd, "event: sessions", 1500, text, sizeof(text)));
    close(fd);
}

/* Opens a stream. A slot is freed a little after its stream was closed. */
static int open_when_there_is_a_place(void)
{
    char text[8192];
    for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += SJ_EVENT_POLL_MS) {
        const int fd = open_stream();
        /* An answer arrives at once, and so does a refusal. */
        if (read_until(fd, "\r\n\r\n", PATIENCE_MS, text, sizeof(text)) &&
            strstr(text, " 503 ") == NULL) {
            return fd;
        }
        close(fd);
        usleep(SJ_EVENT_POLL_MS * 1000);
    }
    fail_msg("no place for a stream: %s", text);
    return -1;
}

static void streams_are_bounded_and_closed_ones_free_their_slots(void **state)
{
    (void)state;
    int streams[SJ_EVENT_STREAMS_MAX];
    for (int i = 0; i < SJ_EVENT_STREAMS_MAX; i++) {
        streams[i] = open_when_there_is_a_place();
    }
    json_decref(client_json(server, "/api/v1/events", 503));
    json_decref(client_json(server, "/api/v1/health", 200));
    for (int i = 0; i < SJ_EVENT_STREAMS_MAX; i++) {
        close(streams[i]);
    }
    /* Nothing is written to the database: the server itself notices that the clients are gone. */
    close(open_when_there_is_a_place());
}

static void stopping_ends_streams_that_are_open(void **state)
{
    char text[8192];
    const int fd = open_stream();
    assert_true(read_until(fd, "event: hello", PATIENCE_MS, text, sizeof(text)));
    sj_http_stop(server);
    char byte;
    while (recv(fd, &byte, 1, 0) > 0) {
    }
    close(fd);
    sqlite3_close(database);
    unlink(database_path);
    assert_int_equal(start_server(state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_reports_only_changed_sessions),
        cmocka_unit_test(a_stream_about_one_session_leaves_out_the_others),
        cmocka_unit_test(a_new_session_reaches_every_stream),
        cmocka_unit_test(a_write_that_changes_no_session_says_nothing),
        cmocka_unit_test(streams_are_bounded_and_closed_ones_free_their_slots),
        cmocka_unit_test(an_old_session_that_is_recorded_is_watched_to_its_end),
        cmocka_unit_test(stopping_ends_streams_that_are_open),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
