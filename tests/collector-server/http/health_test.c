/* /healthz while frames are stored, and while they are refused. */
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include "collector-server/http/database_pool.h"
#include "tests/support/fault_vfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_pool_broken;

sj_status __real_sj_database_pool_borrow(sj_database_pool *pool, unsigned deadline_ms,
                                         bool (*is_wanted)(void *context), void *context,
                                         sqlite3 **database, sj_error *error);
sj_status __wrap_sj_database_pool_borrow(sj_database_pool *pool, unsigned deadline_ms,
                                         bool (*is_wanted)(void *context), void *context,
                                         sqlite3 **database, sj_error *error);
sj_status __wrap_sj_database_pool_borrow(sj_database_pool *pool, unsigned deadline_ms,
                                         bool (*is_wanted)(void *context), void *context,
                                         sqlite3 **database, sj_error *error)
{
    return is_pool_broken ? sj_fail(error, SJ_EIO, "cannot open the database")
                          : __real_sj_database_pool_borrow(pool, deadline_ms, is_wanted, context,
                                                           database, error);
}

static sj_status frames_status; /* SJ_OK, or why frames are refused */

static sj_status check_frames(void *context, sj_error *error)
{
    (void)context;
    return frames_status != SJ_OK ? sj_fail(error, frames_status, "the store is full") : SJ_OK;
}

/* Strangers read the same by status, but never the reason, which may name a file. */
static void check_what_strangers_read(const sj_http *server)
{
    char request[128];
    const bool frames_are_refused = frames_status != SJ_OK;
    const int size =
        snprintf(request, sizeof(request), "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                 client_port(server));
    client_response reply = client_exchange(server, request, (size_t)size);
    assert_int_equal(reply.status, frames_are_refused ? 503 : 200);
    assert_non_null(strstr(reply.body, frames_are_refused ? "its log has the reason" : "ok"));
    assert_null(strstr(reply.body, "the store is full"));
    client_free(&reply);
}

static void health_fails_with_the_reason_while_frames_are_refused(void **state)
{
    (void)state;
    char path[64];
    sj_http *server = NULL;
    sj_error error;
    snprintf(path, sizeof(path), "http_health_test.%d.db", (int)getpid());
    sqlite3 *database = fixture_create(path, 1);
    const sj_http_options options = {.database_path = path, .check = check_frames};
    static const sj_status statuses[] = {SJ_OK,       SJ_EAGAIN, SJ_OK, SJ_EIO,
                                         SJ_ECORRUPT, SJ_EFULL,  SJ_OK};
    assert_int_equal(sj_http_start(&options, &server, &error), SJ_OK);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); ++i) {
        frames_status = statuses[i];
        const bool frames_are_refused = frames_status != SJ_OK;
        json_t *body = client_json(server, "/healthz", frames_are_refused ? 503 : 200);
        char *text = json_dumps(body, 0);
        assert_non_null(strstr(text, frames_are_refused ? "the store is full" : "ok"));
        free(text);
        json_decref(body);
        check_what_strangers_read(server);
    }
    sj_http_stop(server);
    sqlite3_close(database);
    unlink(path);
}

static void expect_health(const sj_http *server, int status, const char *said)
{
    json_t *body = client_json(server, "/healthz", status);
    char *text = json_dumps(body, 0);
    if (strstr(text, said) == NULL) {
        fail_msg("%s", text);
    }
    free(text);
    json_decref(body);
}

static void health_fails_with_the_reason_while_the_database_cannot_be_read(void **state)
{
    (void)state;
    char path[64];
    sj_http *server = NULL;
    sj_error error;
    fault_vfs_install();
    snprintf(path, sizeof(path), "http_health_faults_test.%d.db", (int)getpid());
    sqlite3 *database = fixture_create(path, 1);
    const sj_http_options options = {.database_path = path};
    assert_int_equal(sj_http_start(&options, &server, &error), SJ_OK);
    expect_health(server, 200, "ok");
    fault_vfs_at(0, FAULT_IO, true);
    expect_health(server, 503, "disk I/O error");
    assert_true(fault_vfs_stop());
    expect_health(server, 200, "ok");
    is_pool_broken = true;
    expect_health(server, 503, "cannot open the database");
    is_pool_broken = false;
    expect_health(server, 200, "ok");
    sj_http_stop(server);
    sqlite3_close(database);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(health_fails_with_the_reason_while_frames_are_refused),
        cmocka_unit_test(health_fails_with_the_reason_while_the_database_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
