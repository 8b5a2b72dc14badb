/* Tests profiles as bytes: they are read as they were written, and other bytes are refused. */
#include "proto/callgraph/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPEN_CALLS = 3 };

static const sj_profile_open_call open_calls[OPEN_CALLS] = {
    {.stream = 1, .depth = 0, .function = 7, .start_ticks = INT64_MAX},
    {.stream = 1, .depth = 1, .function = 8, .flags = 5, .call_index = UINT64_C(1) << 37},
    {.stream = UINT32_MAX, .depth = UINT32_MAX, .function = UINT32_MAX, .start_ticks = 9},
};

/* Makes a graph of one path. The caller frees it. */
static sj_callgraph *make_graph(void)
{
    const sj_path_node node = {.calls = 2,
                               .total_ticks = 30,
                               .self_ticks = 20,
                               .min_ticks = 10,
                               .max_ticks = 20,
                               .function = 7};
    sj_callgraph *graph = NULL;
    assert_int_equal(sj_callgraph_new(&graph), SJ_OK);
    assert_int_equal(sj_callgraph_merge(graph, &node, 1), SJ_OK);
    return graph;
}

static sj_slice encode(size_t open_count)
{
    sj_callgraph *graph = make_graph();
    uint8_t *bytes = NULL;
    size_t size = 0;
    assert_int_equal(sj_profile_encode(graph, open_calls, open_count, &bytes, &size), SJ_OK);
    sj_callgraph_free(graph);
    return (sj_slice){.data = bytes, .size = size};
}

static void open_calls_are_read_as_they_were_written(void **state)
{
    (void)state;
    for (size_t count = 0; count <= OPEN_CALLS; count += OPEN_CALLS) {
        const sj_slice bytes = encode(count);
        sj_profile profile;
        /* Older collectors can read a profile without open calls. */
        assert_int_equal(bytes.data[0], count == 0 ? 1 : 2);
        assert_int_equal(sj_profile_decode(bytes, &profile), SJ_OK);
        assert_int_equal(profile.count, 1);
        assert_int_equal(profile.nodes[0].calls, 2);
        assert_int_equal(profile.open_count, count);
        for (size_t i = 0; i < count; i++) {
            assert_memory_equal(&profile.open_calls[i], &open_calls[i], sizeof(open_calls[i]));
        }
        sj_profile_deinit(&profile);
        free((void *)(uintptr_t)bytes.data);
    }
}

static void cut_longer_and_newer_profiles_are_refused(void **state)
{
    (void)state;
    const sj_slice bytes = encode(OPEN_CALLS);
    sj_profile profile;
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_equal(sj_profile_decode((sj_slice){.data = bytes.data, .size = size}, &profile),
                         SJ_ECORRUPT);
    }
    uint8_t *later = malloc(bytes.size + 1);
    assert_non_null(later);
    memcpy(later, bytes.data, bytes.size);
    later[bytes.size] = 0;
    assert_int_equal(sj_profile_decode((sj_slice){.data = later, .size = bytes.size + 1}, &profile),
                     SJ_ECORRUPT);
    later[0] = 3;
    assert_int_equal(sj_profile_decode((sj_slice){.data = later, .size = bytes.size}, &profile),
                     SJ_EVERSION);
    free(later);
    free((void *)(uintptr_t)bytes.data);
}

static void open_calls_out_of_the_ranges_of_blocks_are_refused(void **state)
{
    (void)state;
    static const sj_profile_open_call bad[] = {
        {.stream = 0, .function = 7},
        {.stream = 1, .function = 7, .call_index = UINT64_C(1) << SJ_CALL_INDEX_BITS},
        {.stream = 1, .function = 7, .start_ticks = (uint64_t)INT64_MAX + 1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sj_callgraph *graph = make_graph();
        uint8_t *bytes = NULL;
        size_t size = 0;
        sj_profile profile;
        assert_int_equal(sj_profile_encode(graph, &bad[i], 1, &bytes, &size), SJ_OK);
        assert_int_equal(sj_profile_decode((sj_slice){.data = bytes, .size = size}, &profile),
                         SJ_ECORRUPT);
        free(bytes);
        sj_callgraph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_calls_are_read_as_they_were_written),
        cmocka_unit_test(open_calls_out_of_the_ranges_of_blocks_are_refused),
        cmocka_unit_test(cut_longer_and_newer_profiles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
