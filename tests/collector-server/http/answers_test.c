/* SQL over HTTP, and how answers are made: several at once, compressed, and stopped once the client
 * has gone. */
#include "collector-server/http/question_worker.h"
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include "collector-server/http/request_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define ENDLESS                                                                                    \
    "/api/v1/sql?ms=30000&sql=WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i%2B1+FROM+n)"     \
    "+SELECT+count(*)+FROM+n"

static char database_path[64];
static sqlite3 *database;
static sj_http *server;

static int start_server(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "http_answers_test.%d.db", (int)getpid());
    database = fixture_create(database_path, 2500);
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

static const json_t *cell(const json_t *body, size_t row, size_t column)
{
    return json_array_get(json_array_get(json_object_get(body, "rows"), row), column);
}

static void sql_gives_columns_rows_and_what_was_cut(void **state)
{
    (void)state;
    json_t *body = client_json(server,
                               "/api/v1/sql?rows=2&sql=SELECT+session_id,command,x%2762%27,NULL,"
                               "9007199254740993+AS+big+FROM+sessions+ORDER+BY+1",
                               200);
    assert_string_equal(json_string_value(json_array_get(json_object_get(body, "columns"), 4)),
                        "big");
    assert_int_equal(json_array_size(json_object_get(body, "rows")), 2);
    assert_int_equal(json_integer_value(cell(body, 0, 0)), 1);
    assert_string_equal(json_string_value(cell(body, 1, 1)), "editor --crash");
    assert_string_equal(json_string_value(cell(body, 0, 2)), "62");
    assert_true(json_is_null(cell(body, 0, 3)));
    assert_string_equal(json_string_value(cell(body, 0, 4)), "9007199254740993");
    assert_true(json_is_true(json_object_get(body, "truncated")));
    json_decref(body);
}

static void parameters_of_sql_are_bound_by_name(void **state)
{
    (void)state;
    json_t *body = client_json(server,
                               "/api/v1/sql?sql=SELECT+:session,typeof(:a),typeof(:b),:c"
                               "&p.a=12&p.b=1.5&p.c=it%27s",
                               200);
    assert_int_equal(json_integer_value(cell(body, 0, 0)), 3);
    assert_string_equal(json_string_value(cell(body, 0, 1)), "integer");
    assert_string_equal(json_string_value(cell(body, 0, 2)), "real");
    assert_string_equal(json_string_value(cell(body, 0, 3)), "it's");
    json_decref(body);
    body = client_json(server, "/api/v1/sql?sql=SELECT+:missing", 400);
    assert_non_null(strstr(json_string_value(json_object_get(body, "error")), ":missing"));
    json_decref(body);
}

static void shipped_questions_are_listed_and_run_with_their_defaults(void **state)
{
    (void)state;
    json_t *list = client_json(server, "/api/v1/queries", 200);
    const json_t *items = json_object_get(list, "items");
    size_t index;
    json_t *query;
    assert_true(json_array_size(items) > 15);
    json_array_foreach(items, index, query)
    {
        assert_true(json_is_string(json_object_get(query, "question")));
        assert_true(json_array_size(json_object_get(query, "columns")) > 0);
    }
    json_decref(list);
    json_t *body = client_json(server, "/api/v1/sql?query=hot_spots&p.session=1&p.limit=3", 200);
    assert_int_equal(json_array_size(json_object_get(body, "rows")), 3);
    assert_string_equal(json_string_value(cell(body, 0, 0)), "tokenize");
    json_decref(body);
}

static void sql_that_writes_or_is_wrong_is_refused(void **state)
{
    (void)state;
    json_decref(client_json(server, "/api/v1/sql?sql=DELETE+FROM+sessions", 403));
    json_decref(client_json(server, "/api/v1/sql?sql=ATTACH+%27x%27+AS+y", 403));
    json_decref(client_json(server, "/api/v1/sql?sql=PRAGMA+journal_mode%3Ddelete", 403));
    json_decref(client_json(server, "/api/v1/sql?sql=SELECT+1;SELECT+2", 400));
    json_decref(client_json(server, "/api/v1/sql?sql=SELEC", 400));
    json_decref(client_json(server, "/api/v1/sql", 400));
    json_decref(client_json(server, "/api/v1/sql?sql=SELECT+1&query=loss", 400));
    json_decref(client_json(server, "/api/v1/sql?query=no_such_question", 404));
    json_decref(client_json(server, "/api/v1/sql?sql=SELECT+:session&p.session=x", 400));
    json_decref(
        client_json(server, "/api/v1/sql?sql=SELECT+printf(%27%25.*c%27,9999999,%27x%27)", 400));
    json_t *body = client_json(
        server,
        "/api/v1/sql?ms=20&sql=WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i+FROM+n)"
        "+SELECT+count(*)+FROM+n",
        503);
    assert_non_null(strstr(json_string_value(json_object_get(body, "error")), "20 ms"));
    json_decref(body);
    json_decref(client_json(server, "/api/v1/health", 200));
}

static void a_long_answer_is_cut_and_says_so(void **state)
{
    (void)state;
    json_t *body = client_json(server,
                               "/api/v1/sql?ms=30000&rows=1000&sql=WITH+RECURSIVE+n(i)+AS+(SELECT+1"
                               "+UNION+ALL+SELECT+i%2B1+FROM+n)+SELECT+zeroblob(500000)+FROM+n",
                               200);
    assert_true(json_array_size(json_object_get(body, "rows")) < 20);
    assert_true(json_is_true(json_object_get(body, "is_full")));
    assert_true(json_is_true(json_object_get(body, "truncated")));
    json_decref(body);
}

static void long_answers_are_compressed_for_those_who_take_it(void **state)
{
    (void)state;
    static const char target[] = "/api/v1/sessions/1/functions?limit=1000&sort=name&order=asc";
    client_response plain = client_get(server, target, NULL);
    client_response packed = client_get(server, target, "Accept-Encoding: gzip\r\n");
    assert_null(strstr(plain.text, "Content-Encoding"));
    assert_non_null(strstr(packed.text, "Content-Encoding: gzip"));
    assert_true(packed.body_size * 4 < plain.body_size);
    char *text = malloc(plain.body_size);
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed.body,
                       .avail_in = (uInt)packed.body_size,
                       .next_out = (Bytef *)text,
                       .avail_out = (uInt)plain.body_size};
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    assert_int_equal(stream.total_out, plain.body_size);
    assert_memory_equal(text, plain.body, plain.body_size);
    free(text);
    client_free(&plain);
    client_free(&packed);
    client_response small = client_get(server, "/api/v1/health", "Accept-Encoding: gzip\r\n");
    assert_null(strstr(small.text, "Content-Encoding"));
    client_free(&small);
}

static int ask(const char *target)
{
    char request[512];
    const int fd = client_connect(server);
    const int size =
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n",
                 target, client_port(server), client_login(server));
    assert_int_equal(send(fd, request, (size_t)size, MSG_NOSIGNAL), size);
    return fd;
}

static void sixty_requests_at_once_are_all_answered(void **state)
{
    (void)state;
    enum { CROWD = 60 };
    int asked[CROWD];
    for (int i = 0; i < CROWD; i++) {
        asked[i] = ask(i % 3 != 0 ? "/api/v1/sessions/1/timeline" : "/api/v1/sessions/1/call-tree");
    }
    for (int i = 0; i < CROWD; i++) {
        char reply[16] = "";
        assert_true(recv(asked[i], reply, sizeof(reply) - 1, MSG_WAITALL) > 0);
        assert_memory_equal(reply, "HTTP/1.1 200", 12);
        close(asked[i]);
    }
}

/* Returns the value of a line of /metrics; `start` is a line's end and the name. */
static long long read_metric(const char *start)
{
    client_response metrics = client_get(server, "/metrics", NULL);
    const char *line = strstr(metrics.text, start);
    assert_non_null(line);
    const long long value = atoll(strchr(line + 1, ' '));
    client_free(&metrics);
    return value;
}

static long long cancelled_answers(void)
{
    return read_metric("\nsojourn_http_answers_cancelled_total ");
}

/* A device with false figures must not hide the reports of others or remove the metric. */
static void a_device_with_false_figures_spoils_no_metric(void **state)
{
    (void)state;
    assert_int_equal(
        sqlite3_exec(database,
                     "PRAGMA foreign_keys = OFF; INSERT INTO device_status VALUES"
                     " (101, 0, '{\"refused\": 3, \"undelivered\": 9223372036854775807}'),"
                     " (102, 0, '{\"refused\": -5, \"undelivered\": 9223372036854775807}'),"
                     " (103, 0, '{\"refused\": [7], \"undelivered\": \"many\"}'), (104, 0, '}{')",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(read_metric("\nsojourn_refused_sessions "), 3);
    assert_true(read_metric("\nsojourn_undelivered_sessions ") == INT64_MAX);
    assert_int_equal(sqlite3_exec(database, "DELETE FROM device_status; PRAGMA foreign_keys = ON",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
}

static void small_answers_pass_slow_ones_which_end_with_their_clients(void **state)
{
    (void)state;
    enum { SLOW = SJ_REQUEST_THREADS + 2 };
    int asked[SLOW];
    for (int i = 0; i < SLOW; i++) {
        asked[i] = ask(ENDLESS);
    }
    for (int i = 0; i < 20; i++) {
        json_decref(client_json(server, "/healthz", 200));
        json_decref(client_json(server, "/api/v1/sessions", 200));
    }
    const long long before = cancelled_answers();
    for (int i = 0; i < SLOW; i++) {
        close(asked[i]);
    }
    while (cancelled_answers() < before + SLOW) {
        usleep(20000);
    }
    json_t *body = client_json(server, "/api/v1/sql?sql=SELECT+7", 200);
    assert_int_equal(json_integer_value(cell(body, 0, 0)), 7);
    json_decref(body);
}

static void a_client_that_closes_its_sending_side_gets_a_quick_answer(void **state)
{
    (void)state;
    const int fd = ask("/api/v1/sessions");
    char reply[16] = "";
    shutdown(fd, SHUT_WR);
    assert_true(recv(fd, reply, sizeof(reply) - 1, MSG_WAITALL) > 0);
    assert_memory_equal(reply, "HTTP/1.1 200", 12);
    close(fd);
}

static void a_server_that_stops_ends_its_running_queries(void **state)
{
    (void)state;
    sj_error error;
    sj_http *other = server;
    const sj_http_options options = {.database_path = database_path};
    assert_int_equal(sj_http_start(&options, &server, &error), SJ_OK);
    int asked[SJ_REQUEST_THREADS];
    for (int i = 0; i < SJ_REQUEST_THREADS; i++) {
        asked[i] = ask(ENDLESS);
    }
    json_decref(client_json(server, "/healthz", 200));
    sj_http_stop(server); /* waits for running queries, which would take thirty seconds each */
    for (int i = 0; i < SJ_REQUEST_THREADS; i++) {
        close(asked[i]);
    }
    server = other;
}

int main(int argc, char **argv)
{
    sj_question_worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sql_gives_columns_rows_and_what_was_cut),
        cmocka_unit_test(parameters_of_sql_are_bound_by_name),
        cmocka_unit_test(shipped_questions_are_listed_and_run_with_their_defaults),
        cmocka_unit_test(sql_that_writes_or_is_wrong_is_refused),
        cmocka_unit_test(a_long_answer_is_cut_and_says_so),
        cmocka_unit_test(long_answers_are_compressed_for_those_who_take_it),
        cmocka_unit_test(a_device_with_false_figures_spoils_no_metric),
        cmocka_unit_test(sixty_requests_at_once_are_all_answered),
        cmocka_unit_test(small_answers_pass_slow_ones_which_end_with_their_clients),
        cmocka_unit_test(a_client_that_closes_its_sending_side_gets_a_quick_answer),
        cmocka_unit_test(a_server_that_stops_ends_its_running_queries),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
