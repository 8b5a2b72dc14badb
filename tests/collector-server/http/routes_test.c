/* Tests the response of each resource for the fixture's sessions. */
#include "collector-server/fleet/command_kinds.h"
#include "collector-server/http/assets.h"
#include "collector-server/http/route.h"
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char database_path[64];
static sqlite3 *database;
static sj_http *server;

static int start_server(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "http_routes_test.%d.db", (int)getpid());
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

static json_t *items_of(const json_t *body)
{
    return json_object_get(body, "items");
}

static json_int_t number_of(const json_t *row, const char *name)
{
    assert_true(json_is_integer(json_object_get(row, name)));
    return json_integer_value(json_object_get(row, name));
}

static const char *text_of(const json_t *row, const char *name)
{
    assert_true(json_is_string(json_object_get(row, name)));
    return json_string_value(json_object_get(row, name));
}

static void sessions_come_newest_first_with_ids_as_strings(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions", 200);
    assert_int_equal(json_array_size(items_of(body)), 3);
    assert_true(json_is_false(json_object_get(body, "truncated")));
    const json_t *first = json_array_get(items_of(body), 0);
    assert_string_equal(text_of(first, "id"), "3");
    assert_string_equal(text_of(first, "state"), "recording");
    assert_string_equal(text_of(first, "device_name"), "bench-07");
    assert_true(json_is_null(json_object_get(first, "ended_realtime_ns")));
    assert_int_equal(number_of(first, "duration_ns"), 2500000000);
    const json_t *crashed = json_array_get(items_of(body), 1);
    assert_int_equal(number_of(crashed, "lost_calls"), 934);
    assert_string_equal(text_of(crashed, "started_realtime_ns"), "1760007200000000000");
    json_decref(body);
}

static void a_cut_list_of_sessions_says_so_and_continues(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions?limit=2", 200);
    assert_int_equal(json_array_size(items_of(body)), 2);
    assert_true(json_is_true(json_object_get(body, "truncated")));
    json_decref(body);
    body = client_json(server, "/api/v1/sessions?limit=2&before=2", 200);
    assert_int_equal(json_array_size(items_of(body)), 1);
    assert_string_equal(text_of(json_array_get(items_of(body), 0), "id"), "1");
    assert_true(json_is_false(json_object_get(body, "truncated")));
    json_decref(body);
}

static void sessions_are_searched_and_counted_by_the_server(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions?limit=1", 200);
    const json_t *totals = json_object_get(body, "totals");
    assert_int_equal(json_array_size(items_of(body)), 1);
    assert_int_equal(number_of(totals, "sessions"), 3);
    assert_int_equal(number_of(totals, "matching"), 3);
    assert_int_equal(number_of(totals, "recording"), 1);
    assert_int_equal(number_of(totals, "devices"), 1);
    assert_int_equal(number_of(totals, "calls"), 63610 + 63610 + 5000);
    assert_int_equal(number_of(totals, "most_calls"), 63610);
    assert_int_equal(number_of(totals, "lost_calls"), 934);
    json_decref(body);
    body = client_json(server, "/api/v1/sessions?search=--CRASH&before=2", 200);
    totals = json_object_get(body, "totals");
    assert_int_equal(json_array_size(items_of(body)), 0);
    assert_int_equal(number_of(totals, "matching"), 1);
    assert_int_equal(number_of(totals, "sessions"), 3);
    json_decref(body);
    body = client_json(server, "/api/v1/sessions?search=%25", 200);
    assert_int_equal(json_array_size(items_of(body)), 0);
    assert_int_equal(number_of(json_object_get(body, "totals"), "calls"), 0);
    json_decref(body);
}

static void sessions_are_filtered_by_what_they_have_in_common(void **state)
{
    (void)state;
    static const char *const alike[][2] = {{"device=1", "3"},
                                           {"device=2", "0"},
                                           {"state=crashed", "1"},
                                           {"app=editor", "3"},
                                           {"app=edito", "0"},
                                           {"build=AABBCCDDEEFF00112233", "3"},
                                           {"build=aabb", "0"},
                                           {"tag=rack=7", "2"},
                                           {"tag=rack", "0"},
                                           {"mark=load", "1"},
                                           {"state=crashed&mark=load", "0"},
                                           {"since_ms=1760007200000&until_ms=1760007200001", "1"}};
    fixture_run(database, "UPDATE sessions SET tags = '{\"rack\":\"7\"}' WHERE session_id < 3;"
                          "INSERT INTO marks (session_id, number, name, is_end, at_ns)"
                          " VALUES (1, 900, 'load', 0, 5)");
    for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
        char target[160];
        snprintf(target, sizeof(target), "/api/v1/sessions?%s", alike[i][0]);
        json_t *body = client_json(server, target, 200);
        const json_int_t matching = number_of(json_object_get(body, "totals"), "matching");
        if (matching != atoi(alike[i][1]) || json_array_size(items_of(body)) != (size_t)matching) {
            fail_msg("%s gives %lld sessions", alike[i][0], (long long)matching);
        }
        json_decref(body);
    }
    json_decref(client_json(server, "/api/v1/sessions?device=x", 400));
}

static void facets_count_the_sessions_of_each_value(void **state)
{
    (void)state;
    static const char *const wanted[][4] = {
        {"app", "editor", "editor", "2"},         {"build", "aabbccddeeff00112233", "editor", "2"},
        {"device", "1", "bench-07", "2"},         {"mark", "load", "load", "1"},
        {"state", "completed", "completed", "1"}, {"state", "crashed", "crashed", "1"},
        {"tag", "rack=7", "rack=7", "2"}};
    json_t *body = client_json(server, "/api/v1/sessions/facets?tag=rack=7", 200);
    json_t *items = items_of(body);
    assert_int_equal(json_array_size(items), sizeof(wanted) / sizeof(wanted[0]));
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *row = json_array_get(items, i);
        assert_string_equal(text_of(row, "facet"), wanted[i][0]);
        assert_string_equal(text_of(row, "value"), wanted[i][1]);
        assert_string_equal(text_of(row, "label"), wanted[i][2]);
        assert_int_equal(number_of(row, "sessions"), atoi(wanted[i][3]));
    }
    json_decref(body);
    fixture_run(database, "UPDATE sessions SET tags = '{}';"
                          "DELETE FROM marks WHERE number = 900");
}

static void malformed_tags_of_one_session_do_no_harm_to_others(void **state)
{
    (void)state;
    static const char *const broken[] = {"{\"rack\":", "", "7", "[{\"a\":1},[2]]"};
    char sql[160];
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        fixture_run(database, "UPDATE sessions SET tags = '{\"rack\":\"7\"}' WHERE session_id = 1");
        snprintf(sql, sizeof(sql), "UPDATE sessions SET tags = '%s' WHERE session_id = 2",
                 broken[i]);
        fixture_run(database, sql);
        json_t *body = client_json(server, "/api/v1/sessions?tag=rack=7", 200);
        assert_int_equal(json_array_size(items_of(body)), 1);
        json_decref(body);
        json_decref(client_json(server, "/api/v1/sessions/facets", 200));
        json_decref(client_json(server, "/api/v1/sessions/2", 200));
    }
    fixture_run(database, "UPDATE sessions SET tags = '{}'");
}

static void losses_that_overflow_a_sum_do_not_stop_the_list(void **state)
{
    (void)state;
    fixture_run(database, "UPDATE sessions SET device_lost_calls = 9223372036854775807"
                          " WHERE session_id IN (1, 2)");
    json_t *body = client_json(server, "/api/v1/sessions", 200);
    assert_int_equal(number_of(json_object_get(body, "totals"), "lost_calls"), INT64_MAX);
    json_decref(body);
    fixture_run(database, "UPDATE sessions SET device_lost_calls = NULL");
}

static void the_overview_names_device_threads_modules_and_loss(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions/2", 200);
    assert_string_equal(text_of(body, "command"), "editor --crash");
    assert_string_equal(text_of(body, "device_model"), "Pixel 9");
    json_t *threads = items_of(json_object_get(body, "threads"));
    assert_int_equal(json_array_size(threads), 2);
    assert_string_equal(text_of(json_array_get(threads, 0), "name"), "editor");
    assert_true(json_is_true(json_object_get(json_array_get(threads, 0), "is_main")));
    assert_int_equal(json_array_size(items_of(json_object_get(body, "modules"))), 2);
    assert_int_equal(json_array_size(items_of(json_object_get(body, "processes"))), 1);
    json_t *loss = items_of(json_object_get(body, "loss"));
    assert_string_equal(text_of(json_array_get(loss, 0), "reason"), "ring_full");
    assert_int_equal(number_of(json_array_get(loss, 0), "calls"), 900);
    assert_int_equal(number_of(json_object_get(body, "counts"), "unhooked"), 2);
    assert_int_equal(number_of(json_object_get(body, "counts"), "untrusted_calls"), 12);
    json_decref(body);
}

static double field_of(const json_t *row, const char *field)
{
    const json_t *value = json_object_get(row, field);
    return json_is_null(value) ? -1.0 : json_number_value(value);
}

static void functions_sort_by_every_column_both_ways(void **state)
{
    (void)state;
    static const char *const keys[][2] = {
        {"self", "self_ns"}, {"total", "total_ns"}, {"calls", "calls"}, {"mean", "mean_ns"},
        {"min", "min_ns"},   {"max", "max_ns"},     {"p50", "p50_ns"},  {"p90", "p90_ns"},
        {"p95", "p95_ns"},   {"p99", "p99_ns"}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        for (int ascending = 0; ascending < 2; ascending++) {
            char target[128];
            snprintf(target, sizeof(target),
                     "/api/v1/sessions/1/functions?sort=%s&order=%s&limit=1000", keys[i][0],
                     ascending ? "asc" : "desc");
            json_t *body = client_json(server, target, 200);
            assert_int_equal(json_array_size(items_of(body)), 1000);
            for (size_t row = 1; row < 1000; row++) {
                const double before = field_of(json_array_get(items_of(body), row - 1), keys[i][1]);
                const double after = field_of(json_array_get(items_of(body), row), keys[i][1]);
                assert_true(ascending ? before <= after : before >= after);
            }
            json_decref(body);
        }
    }
}

static void quantiles_are_nanoseconds_between_minimum_and_maximum(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions/1/functions?search=tokenize", 200);
    const json_t *row = json_array_get(items_of(body), 0);
    assert_int_equal(json_array_size(items_of(body)), 1);
    /* The session has 50,000 calls. Nine of ten took 20 us (40,000 ticks of half a ns), the tenth
     * 200 us. */
    assert_true(llabs(number_of(row, "p50_ns") - 20000) <= 20000 / 30);
    assert_true(llabs(number_of(row, "p95_ns") - 200000) <= 200000 / 30);
    assert_true(number_of(row, "p99_ns") <= number_of(row, "max_ns"));
    assert_true(number_of(row, "p50_ns") >= number_of(row, "min_ns"));
    assert_int_equal(number_of(row, "mean_ns"), 20000);
    json_decref(body);
}

static void the_mean_counts_every_recursive_activation(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions/1/functions?search=walk", 200);
    const json_t *row = json_array_get(items_of(body), 0);
    assert_int_equal(number_of(row, "total_ns"), 50000000);
    assert_int_equal(number_of(row, "mean_ns"), (50000000 + 40000000) / 10);
    json_decref(body);
}

static void searching_matches_percent_and_underscore_literally(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions/1/functions?search=%25_", 200);
    assert_int_equal(json_array_size(items_of(body)), 1);
    assert_string_equal(text_of(json_array_get(items_of(body), 0), "name"), "100%_done");
    json_decref(body);
    body = client_json(server, "/api/v1/sessions/1/functions?search=LEAF_05", 200);
    assert_int_equal(json_array_size(items_of(body)), 10);
    json_decref(body);
    body = client_json(server, "/api/v1/sessions/1/functions?search=%27%20OR%201--", 200);
    assert_int_equal(json_array_size(items_of(body)), 0);
    json_decref(body);
}

static void pages_of_functions_join_without_overlap_or_hole(void **state)
{
    (void)state;
    json_t *seen = json_object();
    json_int_t offset = 0;
    bool truncated = true;
    while (truncated) {
        char target[128];
        snprintf(target, sizeof(target), "/api/v1/sessions/1/functions?limit=700&offset=%lld",
                 (long long)offset);
        json_t *body = client_json(server, target, 200);
        size_t index;
        json_t *row;
        json_array_foreach(items_of(body), index, row)
        {
            assert_null(json_object_get(seen, text_of(row, "id")));
            json_object_set_new(seen, text_of(row, "id"), json_true());
        }
        offset += (json_int_t)json_array_size(items_of(body));
        truncated = json_is_true(json_object_get(body, "truncated"));
        json_decref(body);
    }
    assert_int_equal(json_object_size(seen), 2570);
    json_decref(seen);
}

static void a_name_that_is_not_utf8_is_shown_with_a_replacement(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions/1/functions?search=utf8", 200);
    assert_string_equal(text_of(json_array_get(items_of(body), 0), "name"), "bad\xef\xbf\xbd"
                                                                            "utf8");
    json_decref(body);
}

static void wrong_parameters_are_refused_with_their_name(void **state)
{
    (void)state;
    static const char *const targets[][2] = {
        {"/api/v1/sessions/1/functions?sort=evil;drop", "sort"},
        {"/api/v1/sessions/1/functions?order=up", "order"},
        {"/api/v1/sessions/1/functions?limit=0", "limit"},
        {"/api/v1/sessions/1/functions?limit=1001", "limit"},
        {"/api/v1/sessions/1/functions?limit=99999999999999999999999", "limit"},
        {"/api/v1/sessions/1/functions?offset=-1", "offset"},
        {"/api/v1/sessions/1/call-tree?parent=x", "parent"},
        {"/api/v1/sessions/1/call-tree?parent=4294967297&focus=4294967297", "parent"},
        {"/api/v1/sessions?limit=1e3", "limit"},
        {"/api/v1/events?session=evil", "session"}};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        json_t *body = client_json(server, targets[i][0], 400);
        assert_non_null(strstr(text_of(body, "error"), targets[i][1]));
        json_decref(body);
    }
}

static void the_tree_is_given_level_by_level(void **state)
{
    (void)state;
    json_t *roots = client_json(server, "/api/v1/sessions/1/call-tree", 200);
    assert_int_equal(json_array_size(items_of(roots)), 1);
    const json_t *main_node = json_array_get(items_of(roots), 0);
    assert_string_equal(text_of(main_node, "name"), "main");
    assert_int_equal(number_of(main_node, "child_count"), 3);
    assert_int_equal(number_of(roots, "session_ns"), 2500000000);
    char target[128];
    snprintf(target, sizeof(target), "/api/v1/sessions/1/call-tree?parent=%s",
             text_of(main_node, "id"));
    json_t *children = client_json(server, target, 200);
    static const char *const names[] = {"parse_document", "render", "many_children"};
    assert_int_equal(json_array_size(items_of(children)), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(text_of(json_array_get(items_of(children), i), "name"), names[i]);
    }
    json_decref(children);
    json_decref(roots);
}

static void rows_cut_from_a_level_are_summed_in_rest(void **state)
{
    (void)state;
    json_t *body =
        client_json(server, "/api/v1/sessions/1/call-tree?parent=4294967302&limit=12", 200);
    json_int_t shown = 0;
    size_t index;
    json_t *row;
    json_array_foreach(items_of(body), index, row)
    {
        shown += number_of(row, "known_ns");
    }
    const json_t *rest = json_object_get(body, "rest");
    json_int_t all = 0;
    for (int i = 0; i < 60; i++) {
        all += 16000000 - i * 250000;
    }
    assert_int_equal(number_of(rest, "paths"), 48);
    assert_int_equal(number_of(rest, "calls"), 4800);
    assert_int_equal(shown + number_of(rest, "known_ns"), all);
    json_decref(body);
}

static void a_running_main_shows_the_time_of_its_callees(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions/3/call-tree", 200);
    const json_t *main_node = json_array_get(items_of(body), 0);
    assert_int_equal(number_of(main_node, "calls"), 0);
    assert_int_equal(number_of(main_node, "total_ns"), 0);
    assert_int_equal(number_of(main_node, "known_ns"), 2400000000);
    json_decref(body);
}

static void focus_gives_the_path_from_the_root(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/sessions/1/call-tree?function=3", 200);
    json_t *way = json_object_get(body, "focus");
    static const char *const names[] = {"main", "parse_document", "tokenize"};
    assert_int_equal(json_array_size(way), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(text_of(json_array_get(way, i), "name"), names[i]);
    }
    json_decref(body);
}

static void paths_and_sessions_that_are_not_there_give_404(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "/api/v1/sessions/77",
        "/api/v1/sessions/77/functions",
        "/api/v1/sessions/77/gaps",
        "/api/v1/sessions/77/unhooked",
        "/api/v1/sessions/77/call-tree",
        "/api/v1/sessions/77/timeline",
        "/api/v1/sessions/1/call-tree?parent=5",
        "/api/v1/sessions/2/call-tree?parent=4294967297",
        "/api/v1/sessions/1/call-tree?function=8",
    };
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        json_decref(client_json(server, targets[i], 404));
    }
}

static void the_timeline_has_steps_as_fine_as_the_width_needs(void **state)
{
    (void)state;
    json_t *coarse = client_json(server, "/api/v1/sessions/1/timeline?width=1", 200);
    assert_int_equal(json_array_size(items_of(coarse)), 1);
    const json_t *step = json_array_get(items_of(coarse), 0);
    assert_int_equal(number_of(step, "level"), 22);
    assert_int_equal(number_of(step, "calls"), 30000);
    assert_string_equal(text_of(step, "path_id"), "4294967297");
    assert_string_equal(text_of(step, "thread_name"), "editor");
    json_decref(coarse);
    json_t *fine = client_json(server, "/api/v1/sessions/1/timeline?width=4000", 200);
    assert_int_equal(json_array_size(items_of(fine)), 4);
    /* has the paths of its steps, up to the outermost calls, once each */
    const json_t *paths = json_object_get(fine, "paths");
    assert_int_equal(json_array_size(paths), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *path = json_array_get(paths, i);
        const bool is_inner = number_of(path, "depth") == 1;
        assert_string_equal(text_of(path, "path_id"), is_inner ? "4294967298" : "4294967297");
        if (is_inner) {
            assert_string_equal(text_of(path, "parent_path_id"), "4294967297");
        } else {
            assert_true(json_is_null(json_object_get(path, "parent_path_id")));
        }
        assert_string_not_equal(text_of(path, "function"), "");
    }
    json_decref(fine);
    json_t *part =
        client_json(server, "/api/v1/sessions/1/timeline?from_ns=2500&to_ns=2600&width=4", 200);
    assert_int_equal(json_array_size(items_of(part)), 1);
    assert_int_equal(number_of(json_array_get(items_of(part), 0), "level"), 14);
    json_decref(part);
    json_decref(client_json(server, "/api/v1/sessions/1/timeline?width=0", 400));
}

static void a_long_timeline_has_one_row_a_pixel_and_loses_no_call(void **state)
{
    (void)state;
    enum { STEPS = 5000, WIDTH = 100 };
    fixture_run(database, "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n"
                          " WHERE i < 4999) INSERT INTO timeline SELECT 3, 14, i,"
                          " i * 1000000000000, i * 1000000000000 + 999, 3, i % 40,"
                          " iif(i % 50 = 0, 12884901889, NULL) FROM n");
    json_t *body = client_json(server, "/api/v1/sessions/3/timeline?width=100", 200);
    assert_int_equal(json_array_size(items_of(body)), WIDTH);
    json_int_t calls = 0;
    json_int_t end_ns = -1;
    size_t index;
    json_t *row;
    json_array_foreach(items_of(body), index, row)
    {
        calls += number_of(row, "calls");
        assert_true(number_of(row, "start_ns") > end_ns);
        end_ns = number_of(row, "end_ns");
        assert_int_equal(number_of(row, "steps"), STEPS / WIDTH);
        assert_int_equal(number_of(row, "max_depth"), 39);
        assert_string_equal(text_of(row, "path_id"), "12884901889"); /* path of the first step */
    }
    assert_int_equal(calls, STEPS * 3);
    json_decref(body);
    body = client_json(server,
                       "/api/v1/sessions/3/timeline?width=10&from_ns=1000000000000000"
                       "&to_ns=1019000000000999",
                       200);
    assert_int_equal(json_array_size(items_of(body)), 10);
    assert_int_equal(number_of(json_array_get(items_of(body), 0), "steps"), 2);
    json_decref(body);
    fixture_run(database, "DELETE FROM timeline WHERE stream_id = 3");
}

static void a_gap_of_a_stream_names_the_thread_of_the_stream(void **state)
{
    (void)state;
    fixture_run(database, "INSERT INTO gaps (session_id, stream_id, number, reason, calls, events,"
                          " start_ns, end_ns) VALUES (3, 3, 9, 'ring_full', 4, 8, 10, 20)");
    json_t *body = client_json(server, "/api/v1/sessions/3/gaps", 200);
    const json_t *gap = json_array_get(items_of(body), 0);
    assert_int_equal(number_of(gap, "thread_number"), 1);
    assert_string_equal(text_of(gap, "thread_name"), "editor");
    json_decref(body);
    fixture_run(database, "DELETE FROM gaps WHERE session_id = 3");
}

static void a_wait_for_the_recorder_is_no_loss(void **state)
{
    (void)state;
    fixture_run(database, "INSERT INTO gaps (session_id, stream_id, number, reason, calls, events,"
                          " start_ns, end_ns) VALUES (3, 3, 8, 'waited', 0, 0, 1, 31),"
                          " (3, 3, 9, 'ring_full', 4, 8, 10, 20)");
    json_t *body = client_json(server, "/api/v1/sessions/3/gaps", 200);
    assert_string_equal(text_of(json_array_get(items_of(body), 0), "reason"), "ring_full");
    assert_true(json_is_false(json_object_get(json_array_get(items_of(body), 0), "is_wait")));
    assert_true(json_is_true(json_object_get(json_array_get(items_of(body), 1), "is_wait")));
    json_decref(body);
    body = client_json(server, "/api/v1/sessions/3", 200);
    const json_t *counts = json_object_get(body, "counts");
    assert_int_equal(number_of(counts, "gaps"), 1);
    assert_int_equal(number_of(counts, "waits"), 1);
    assert_int_equal(number_of(counts, "waits_ns"), 30);
    const json_t *loss = items_of(json_object_get(body, "loss"));
    assert_int_equal(json_array_size(loss), 1);
    assert_string_equal(text_of(json_array_get(loss, 0), "reason"), "ring_full");
    json_decref(body);
    fixture_run(database, "DELETE FROM gaps WHERE session_id = 3");
}

static void healthz_reports_ok_and_no_stored_data(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/healthz", 200);
    assert_string_equal(text_of(body, "status"), "ok");
    assert_int_equal(json_object_size(body), 1);
    json_decref(body);
}

static void gaps_and_unhooked_functions_give_their_reasons(void **state)
{
    (void)state;
    json_t *gaps = client_json(server, "/api/v1/sessions/2/gaps", 200);
    assert_int_equal(json_array_size(items_of(gaps)), 2);
    assert_string_equal(text_of(json_array_get(items_of(gaps), 1), "thread_name"), "worker");
    json_decref(gaps);
    json_t *unhooked = client_json(server, "/api/v1/sessions/2/unhooked?limit=1", 200);
    assert_string_equal(text_of(json_array_get(items_of(unhooked), 0), "reason"),
                        "the head is 2 bytes short");
    assert_true(json_is_true(json_object_get(unhooked, "truncated")));
    json_decref(unhooked);
}

static void a_session_is_exported_as_a_file(void **state)
{
    (void)state;
    client_response response = client_get(server, "/api/v1/sessions/1/export?format=folded", NULL);
    assert_int_equal(response.status, 200);
    assert_non_null(strstr(response.text, "filename=\"session-1.folded\""));
    assert_non_null(strstr(response.body, "main;"));
    client_free(&response);
    response = client_get(server, "/api/v1/sessions/1/export?format=parquet", NULL);
    assert_int_equal(response.status, 200);
    assert_memory_equal(response.body, "PAR1", 4);
    assert_memory_equal(response.body + response.body_size - 4, "PAR1", 4);
    client_free(&response);
    json_decref(client_json(server, "/api/v1/sessions/1/export?format=exe", 400));
    json_decref(client_json(server, "/api/v1/sessions/1/export", 400));
    json_decref(client_json(server, "/api/v1/sessions/77/export?format=folded", 404));
    fixture_run(database, "UPDATE sessions SET stored_calls = 20000001 WHERE session_id = 1");
    json_decref(client_json(server, "/api/v1/sessions/1/export?format=folded", 400));
    fixture_run(database, "UPDATE sessions SET stored_calls = 63610 WHERE session_id = 1");
}

static void the_description_and_the_table_of_routes_agree(void **state)
{
    (void)state;
    json_t *described = client_json(server, "/api/v1/openapi.json", 200);
    json_t *paths = json_object_get(described, "paths");
    size_t count = 0;
    for (; sj_routes[count] != NULL; count++) {
        json_t *path = json_object_get(paths, sj_routes[count]->pattern);
        assert_non_null(path);
        const bool has_post = sj_routes[count]->post != NULL;
        assert_non_null(json_object_get(path, "get"));
        assert_true((json_object_get(path, "post") != NULL) == has_post);
        assert_int_equal(json_object_size(path), has_post ? 2 : 1);
        assert_true((sj_routes[count]->run == NULL) != (sj_routes[count]->respond == NULL));
    }
    assert_int_equal(json_object_size(paths), count);
    json_decref(described);
}

static void every_field_of_a_session_and_function_is_described(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"/api/v1/sessions", "Session"},
                                           {"/api/v1/sessions/1/functions", "Function"},
                                           {"/api/v1/sessions/1/call-tree", "PathNode"},
                                           {"/api/v1/devices", "Device"},
                                           {"/api/v1/policies", "PolicyRule"},
                                           {"/api/v1/commands", "Command"}};
    json_t *described = client_json(server, "/api/v1/openapi.json", 200);
    json_t *schemas = json_object_get(json_object_get(described, "components"), "schemas");
    fixture_run(database, "INSERT OR REPLACE INTO commands (command_id, device_id, kind,"
                          " timeout_ms, created_realtime_ns) VALUES (1, 1, 'status', 1000, 1);"
                          "INSERT OR REPLACE INTO policy_rules (rule_id, scope, document,"
                          " set_realtime_ns) VALUES (1, 'all', '{\"policy\": 1}', 1)");
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        json_t *body = client_json(server, pairs[i][0], 200);
        json_t *properties = json_object_get(json_object_get(schemas, pairs[i][1]), "properties");
        json_t *row = json_array_get(items_of(body), 0);
        const char *name;
        json_t *value;
        json_object_foreach(row, name, value)
        {
            assert_non_null(json_object_get(properties, name));
        }
        assert_int_equal(json_object_size(row), json_object_size(properties));
        json_decref(body);
    }
    json_decref(described);
}

/* The enumeration of kinds and the list of arguments are written twice. This test compares them. */
static void every_command_and_argument_is_described(void **state)
{
    (void)state;
    json_t *described = client_json(server, "/api/v1/openapi.json", 200);
    json_t *schema = described;
    static const char *const way[] = {"paths",   "/api/v1/commands", "post",   "requestBody",
                                      "content", "application/json", "schema", "properties"};
    for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
        schema = json_object_get(schema, way[i]);
        assert_non_null(schema);
    }
    json_t *kinds = json_object_get(json_object_get(schema, "kind"), "enum");
    json_t *properties = json_object_get(json_object_get(schema, "arguments"), "properties");
    json_t *used = json_object();
    size_t count = 0;
    for (const sj_command_kind *kind = sj_command_kinds; kind->name != NULL; kind++) {
        if (kind->place == SJ_COMMAND_INTERNAL) {
            continue;
        }
        assert_string_equal(json_string_value(json_array_get(kinds, count++)), kind->name);
        for (size_t i = 0; i < SJ_COMMAND_FIELDS && kind->fields[i].name != NULL; i++) {
            if (json_object_get(properties, kind->fields[i].name) == NULL) {
                fail_msg("%s: %s is not described", kind->name, kind->fields[i].name);
            }
            json_object_set_new(used, kind->fields[i].name, json_true());
        }
    }
    assert_int_equal(json_array_size(kinds), count);
    assert_int_equal(json_object_size(properties), json_object_size(used));
    json_decref(used);
    json_decref(described);
}

static const sj_asset *script_asset(void)
{
    for (size_t i = 0; i < sj_asset_count; i++) {
        if (strncmp(sj_assets[i].path, "/assets/app.", 12) == 0) {
            return &sj_assets[i];
        }
    }
    fail_msg("no script is embedded");
    return NULL;
}

static void assets_are_immutable_gzipped_and_known_by_etag(void **state)
{
    (void)state;
    const sj_asset *asset = script_asset();
    client_response plain = client_get(server, asset->path, NULL);
    assert_int_equal(plain.status, 200);
    assert_int_equal(plain.body_size, asset->size);
    assert_memory_equal(plain.body, asset->data, asset->size);
    assert_non_null(strstr(plain.text, "immutable"));
    client_free(&plain);
    client_response gzip = client_get(server, asset->path, "Accept-Encoding: br, gzip\r\n");
    assert_int_equal(gzip.body_size, asset->gzip_size);
    assert_non_null(strstr(gzip.text, "Content-Encoding: gzip"));
    assert_true(asset->gzip_size < asset->size / 2);
    client_free(&gzip);
    char header[128];
    snprintf(header, sizeof(header), "If-None-Match: %s\r\n", asset->etag);
    client_response known = client_get(server, asset->path, header);
    assert_int_equal(known.status, 304);
    assert_int_equal(known.body_size, 0);
    client_free(&known);
}

static void pages_of_the_dashboard_are_one_document(void **state)
{
    (void)state;
    client_response page = client_get(server, "/sessions/2?view=tree", NULL);
    assert_int_equal(page.status, 200);
    assert_non_null(strstr(page.body, "<title>Sojourn</title>"));
    assert_non_null(strstr(page.text, "Content-Security-Policy: default-src 'self'; "));
    assert_non_null(strstr(page.text, "frame-ancestors 'none'"));
    assert_non_null(strstr(page.text, "X-Content-Type-Options: nosniff"));
    assert_non_null(strstr(page.text, "Referrer-Policy: no-referrer"));
    assert_null(strcasestr(page.text, "Access-Control-Allow"));
    client_free(&page);
}

static const char add_finding[] =
    "PRAGMA foreign_keys = OFF;"
    "INSERT INTO zombies VALUES (7, 'f', 'double_free', 'drop', 'drop', 'make', 2, 1, 2, 'open',"
    " NULL, 'seen', 'Duck', 'quack');"
    "INSERT INTO zombie_reports VALUES (1, 7, 1, 1, 'main', 5, NULL, 64, 0),"
    " (2, 7, 2, 2, 'main', 5, NULL, 64, 0);"
    "INSERT INTO zombie_frames VALUES (1, 'use', 0, 5, 'old', '/a', 1, 1),"
    " (2, 'allocation', 0, 5, 'make', '/a', 1, 1), (2, 'use', 1, 5, 'main', '/a', 3, 1),"
    " (2, 'use', 0, 5, 'drop', '/a', 2, 1), (2, 'free', 0, 6, 'drop', '/a', 2, 1);"
    "INSERT INTO zombie_accounts (report_id, session_id, process_number, not_watched, one_in,"
    " guarded, released, evicted, refused_size, refused_full, refused_memory, uses, suppressed,"
    " kept) VALUES (1, 1, 1, '', 1, 30, 0, 0, 0, 10, 0, 2, 0, 4),"
    " (2, 2, 1, '', 1, 5, 0, 0, 0, 0, 0, 0, 0, 0);";

static void findings_of_freed_memory_have_the_stacks_of_the_last_report(void **state)
{
    static const char *const stacks[] = {"use", "use", "free", "allocation"};
    static const char *const functions[] = {"drop", "main", "drop", "make"};
    (void)state;
    json_t *body = client_json(server, "/api/v1/zombies", 200);
    assert_int_equal(json_array_size(items_of(body)), 0);
    json_decref(body);
    assert_int_equal(sqlite3_exec(database, add_finding, NULL, NULL, NULL), SQLITE_OK);
    body = client_json(server, "/api/v1/zombies", 200);
    assert_int_equal(json_array_size(items_of(body)), 1);
    const json_t *finding = json_array_get(items_of(body), 0);
    assert_string_equal(text_of(finding, "id"), "7");
    assert_string_equal(text_of(finding, "kind"), "double_free");
    assert_int_equal(number_of(finding, "sessions"), 2);
    assert_int_equal(number_of(finding, "devices"), 1);
    assert_int_equal(number_of(json_object_get(body, "coverage"), "allocations"), 45);
    json_decref(body);
    body = client_json(server, "/api/v1/zombies/7/frames", 200);
    assert_int_equal(json_array_size(items_of(body)), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *frame = json_array_get(items_of(body), i);
        assert_string_equal(text_of(frame, "stack"), stacks[i]);
        assert_string_equal(text_of(frame, "function"), functions[i]);
    }
    json_decref(body);
    json_decref(client_json(server, "/api/v1/zombies/8/frames", 404));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_come_newest_first_with_ids_as_strings),
        cmocka_unit_test(a_cut_list_of_sessions_says_so_and_continues),
        cmocka_unit_test(sessions_are_searched_and_counted_by_the_server),
        cmocka_unit_test(sessions_are_filtered_by_what_they_have_in_common),
        cmocka_unit_test(facets_count_the_sessions_of_each_value),
        cmocka_unit_test(malformed_tags_of_one_session_do_no_harm_to_others),
        cmocka_unit_test(losses_that_overflow_a_sum_do_not_stop_the_list),
        cmocka_unit_test(the_overview_names_device_threads_modules_and_loss),
        cmocka_unit_test(functions_sort_by_every_column_both_ways),
        cmocka_unit_test(quantiles_are_nanoseconds_between_minimum_and_maximum),
        cmocka_unit_test(the_mean_counts_every_recursive_activation),
        cmocka_unit_test(searching_matches_percent_and_underscore_literally),
        cmocka_unit_test(pages_of_functions_join_without_overlap_or_hole),
        cmocka_unit_test(a_name_that_is_not_utf8_is_shown_with_a_replacement),
        cmocka_unit_test(wrong_parameters_are_refused_with_their_name),
        cmocka_unit_test(the_tree_is_given_level_by_level),
        cmocka_unit_test(rows_cut_from_a_level_are_summed_in_rest),
        cmocka_unit_test(a_running_main_shows_the_time_of_its_callees),
        cmocka_unit_test(focus_gives_the_path_from_the_root),
        cmocka_unit_test(paths_and_sessions_that_are_not_there_give_404),
        cmocka_unit_test(a_long_timeline_has_one_row_a_pixel_and_loses_no_call),
        cmocka_unit_test(a_gap_of_a_stream_names_the_thread_of_the_stream),
        cmocka_unit_test(healthz_reports_ok_and_no_stored_data),
        cmocka_unit_test(gaps_and_unhooked_functions_give_their_reasons),
        cmocka_unit_test(a_wait_for_the_recorder_is_no_loss),
        cmocka_unit_test(the_timeline_has_steps_as_fine_as_the_width_needs),
        cmocka_unit_test(a_session_is_exported_as_a_file),
        cmocka_unit_test(the_description_and_the_table_of_routes_agree),
        cmocka_unit_test(every_field_of_a_session_and_function_is_described),
        cmocka_unit_test(every_command_and_argument_is_described),
        cmocka_unit_test(assets_are_immutable_gzipped_and_known_by_etag),
        cmocka_unit_test(pages_of_the_dashboard_are_one_document),
        cmocka_unit_test(findings_of_freed_memory_have_the_stacks_of_the_last_report),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
