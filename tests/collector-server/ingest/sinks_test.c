/* Several sinks of one ingest: each gets every frame, and a frame is acknowledged only when all
 * sinks have it. */
#include "collector-server/ingest/sinks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* A sink in memory, which counts, and fails on demand. */
struct sj_sink {
    sj_status begin, apply, commit, check; /* what these return */
    unsigned in_batch, stored, rollbacks;
    bool has_all; /* the sink has every frame: the next is a duplicate */
    bool has_more;
};

static sj_sink *opened[SJ_MOST_SINKS];
static unsigned opened_count;

static sj_status open_sink(const sj_sink_options *options, sj_sink **sink, sj_error *error)
{
    (void)error;
    assert_string_equal(options->path, "anywhere");
    *sink = calloc(1, sizeof(**sink));
    opened[opened_count++] = *sink;
    return SJ_OK;
}

static void close_sink(sj_sink *sink)
{
    opened_count--;
    free(sink);
}

static sj_status begin_batch(sj_sink *sink, sj_error *error)
{
    (void)error;
    sink->in_batch = 0;
    return sink->begin;
}

static sj_status apply_frame(sj_sink *sink, const sj_frame_view *frame, const sj_sender *sender,
                             bool *duplicate, sj_error *error)
{
    (void)frame;
    (void)sender;
    (void)error;
    *duplicate = sink->has_all;
    sink->in_batch += sink->apply == SJ_OK;
    return sink->apply;
}

static void roll_back(sj_sink *sink)
{
    sink->in_batch = 0;
    sink->rollbacks++;
}

static sj_status check_sink(sj_sink *sink, sj_error *error)
{
    (void)error;
    return sink->check;
}

static sj_status commit_batch(sj_sink *sink, sj_error *error)
{
    (void)error;
    if (sink->commit == SJ_OK) {
        sink->stored += sink->in_batch;
        sink->has_all = true;
    }
    sink->in_batch = 0;
    return sink->commit;
}

static bool maintain(sj_sink *sink)
{
    const bool has_more = sink->has_more;
    sink->has_more = false;
    return has_more;
}

static const sj_sink_kind in_memory = {.name = "memory",
                                       .open = open_sink,
                                       .close = close_sink,
                                       .begin = begin_batch,
                                       .apply = apply_frame,
                                       .commit = commit_batch,
                                       .rollback = roll_back,
                                       .check = check_sink,
                                       .maintain = maintain};

static sj_sinks sinks;
static sj_error failure;

static int set_up(void **state)
{
    (void)state;
    const sj_sink_options options = {.path = "anywhere"};
    sinks = (sj_sinks){0};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(sj_sinks_open(&sinks, &in_memory, &options, &failure), SJ_OK);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sj_sinks_close(&sinks);
    assert_int_equal(opened_count, 0);
    return 0;
}

/* Sends one frame. Returns the status that the sender gets. */
static sj_status send_one(bool *duplicate)
{
    const sj_frame_view frame = {0};
    sj_status status = sj_sinks_begin(&sinks, &failure);
    if (status != SJ_OK) {
        return status;
    }
    status = sj_sinks_apply(&sinks, &frame, NULL, duplicate, &failure);
    if (sj_sink_ends_batch(status)) {
        sj_sinks_rollback(&sinks);
        return status;
    }
    const sj_status committed = sj_sinks_commit(&sinks, &failure);
    return committed != SJ_OK ? committed : status;
}

static void all_get_every_frame(void **state)
{
    (void)state;
    bool duplicate = true;
    assert_int_equal(send_one(&duplicate), SJ_OK);
    assert_false(duplicate);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(opened[i]->stored, 1);
    }
}

static void a_commit_that_fails_is_made_up_by_sending_again(void **state)
{
    (void)state;
    bool duplicate = false;
    opened[1]->commit = SJ_EAGAIN;
    assert_int_equal(send_one(&duplicate), SJ_EAGAIN);
    assert_int_equal(opened[0]->stored, 1);
    assert_int_equal(opened[2]->stored, 0);
    assert_int_equal(opened[2]->rollbacks, 1);
    opened[1]->commit = SJ_OK;
    assert_int_equal(send_one(&duplicate), SJ_OK);
    assert_true(duplicate); /* the sink of record says so */
    assert_int_equal(opened[1]->stored, 1);
    assert_int_equal(opened[2]->stored, 1);
    opened[0]->commit = SJ_ECORRUPT; /* a failed commit never counts as the frames' fault */
    assert_int_equal(send_one(&duplicate), SJ_EIO);
}

static void the_sink_of_record_decides_what_is_good(void **state)
{
    (void)state;
    bool duplicate;
    opened[1]->apply = SJ_ECORRUPT;
    assert_int_equal(send_one(&duplicate), SJ_OK);
    opened[1]->apply = SJ_OK;
    opened[0]->apply = SJ_ECORRUPT;
    assert_int_equal(send_one(&duplicate), SJ_ECORRUPT);
    assert_int_equal(opened[2]->stored, 1);
}

static void a_full_sink_refuses_the_batch(void **state)
{
    (void)state;
    bool duplicate;
    opened[2]->apply = SJ_EFULL;
    assert_int_equal(send_one(&duplicate), SJ_EFULL);
    opened[2]->begin = SJ_EIO;
    assert_int_equal(send_one(&duplicate), SJ_EIO);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(opened[i]->stored, 0);
        assert_int_equal(opened[i]->rollbacks, 2);
    }
}

static void maintenance_goes_on_while_one_has_more(void **state)
{
    (void)state;
    opened[2]->has_more = true;
    assert_true(sj_sinks_maintain(&sinks));
    assert_false(sj_sinks_maintain(&sinks));
}

static void one_that_would_refuse_is_enough(void **state)
{
    (void)state;
    assert_int_equal(sj_sinks_check(&sinks, &failure), SJ_OK);
    opened[2]->check = SJ_EFULL;
    assert_int_equal(sj_sinks_check(&sinks, &failure), SJ_EFULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_get_every_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_commit_that_fails_is_made_up_by_sending_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_sink_of_record_decides_what_is_good, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_sink_refuses_the_batch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_would_refuse_is_enough, set_up, tear_down),
        cmocka_unit_test_setup_teardown(maintenance_goes_on_while_one_has_more, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
