/* Tests that a recording is delivered once the collector has all frames: no frame waits to be sent,
 * and no frame was put aside. */
#include "agent/recording/pipeline.h"
#include "agent/recording/pipeline_state.h"
#include "agent/uplink/spool_aside.h"

#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_session_with_frames_set_aside_is_not_delivered(void **state)
{
    (void)state;
    char directory[] = "delivery_test.XXXXXX";
    char command[64];
    sj_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    assert_non_null(pipeline);
    assert_non_null(mkdtemp(directory));
    snprintf(pipeline->spool_directory, sizeof(pipeline->spool_directory), "%s", directory);
    assert_string_equal(sj_pipeline_set_delivered(pipeline, true), "");
    assert_true(pipeline->summary.delivered);
    assert_string_equal(sj_pipeline_set_delivered(pipeline, false), "");
    assert_false(pipeline->summary.delivered || pipeline->summary.answered);
    sj_spool_aside aside = {0};
    const sj_slice frame = {.data = (const uint8_t *)"frame", .size = 5};
    assert_true(sj_spool_aside_add(directory, &aside, 0, frame, "a block is corrupt"));
    const char *said = sj_pipeline_set_delivered(pipeline, true);
    assert_non_null(strstr(said, "1 frame refused by the collector for good (5 bytes, kept in"));
    assert_non_null(strstr(said, "a block is corrupt"));
    assert_false(pipeline->summary.delivered);
    assert_true(pipeline->summary.answered);
    free(pipeline);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_with_frames_set_aside_is_not_delivered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
