/* Profiles with more call paths than a session keeps: the rarest are folded. Every sum by function
 * and by edge equals that of a store that keeps all paths. */
#include "proto/callgraph/profile.h"
#include "tests/collector-server/store/lab_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PROFILES = 6, EVENTS = 3000, BUDGET = 40 };

static const char sums_sql[] =
    "SELECT 0, function_id, calls, total_ns, self_ns, min_ns, max_ns, hex(histogram)"
    " FROM function_stats UNION ALL SELECT caller_function_id, callee_function_id, calls,"
    " total_ns, self_ns, 0, 0, '' FROM call_edges ORDER BY 1, 2";

/* Sums the maker's next block as a recorder in profile mode does. */
static sj_slice make_profile(frame_maker *maker, uint64_t number)
{
    sj_block_decoder *decoder;
    sj_callgraph *graph;
    sj_frame_view view;
    sj_block block;
    sj_block_summary summary;
    uint8_t *raw = NULL;
    size_t raw_bytes = 0;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    assert_int_equal(sj_frame_read(frame_maker_block(maker, EVENTS, 0), &view), SJ_OK);
    assert_int_equal(sj_block_decode(decoder, view.payload, SJ_WANT_ALL, &block), SJ_OK);
    assert_int_equal(sj_callgraph_apply(graph, &block, NULL, NULL, &summary), SJ_OK);
    assert_int_equal(sj_profile_encode(graph, NULL, 0, &raw, &raw_bytes), SJ_OK);
    const sj_slice frame = frame_maker_profile(maker, number, &block.header,
                                               (sj_slice){.data = raw, .size = raw_bytes});
    free(raw);
    sj_callgraph_free(graph);
    sj_block_decoder_free(decoder);
    return frame;
}

static char *ask_sums(uint32_t path_budget)
{
    lab_file *lab = NULL;
    lab_file_set_up((void **)&lab);
    lab_file_put_metadata(lab);
    const sj_store_options options = {.path = lab->path, .path_budget = path_budget};
    sj_store_close(lab->store);
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_OK);
    for (uint64_t i = 1; i <= PROFILES; ++i) {
        lab_file_begin(lab);
        lab_file_put(lab, make_profile(&lab->maker, i));
        lab_file_commit(lab);
    }
    lab_file_expect(lab,
                    "SELECT (SELECT sum(calls) FROM call_paths)"
                    " = (SELECT sum(calls) FROM function_stats) FROM sessions",
                    "1|\n");
    lab_file_expect(lab, "SELECT folded_paths > 0, folded_calls > 0 FROM sessions",
                    path_budget != 0 ? "1|1|\n" : "0|0|\n");
    char *sums = lab_file_ask(lab, sums_sql);
    lab_file_tear_down((void **)&lab);
    return sums;
}

static void rare_paths_of_profiles_are_folded_and_sums_stay_exact(void **state)
{
    (void)state;
    char *whole = ask_sums(0);
    char *folded = ask_sums(BUDGET);
    assert_true(strlen(whole) > 1000);
    assert_string_equal(folded, whole);
    sqlite3_free(folded);
    sqlite3_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rare_paths_of_profiles_are_folded_and_sums_stay_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
