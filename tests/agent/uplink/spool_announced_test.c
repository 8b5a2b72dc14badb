/* Tests that announcements are given again if a collector has lost them, also after their segments
 * were deleted, and after a crash. */
#include "agent/uplink/spool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    char directory[64];
    sj_spool *spool;
    sj_error error;
    uint8_t frame[70000];
} fixture;

static void open_spool_within(fixture *test, uint64_t quota_bytes, uint64_t reserve_bytes)
{
    const sj_spool_options options = {.directory = test->directory,
                                      .reserve_bytes = reserve_bytes,
                                      .segment_bytes = 8192,
                                      .root_budget_bytes = quota_bytes};
    assert_int_equal(sj_spool_open(&options, &test->spool, &test->error), SJ_OK);
}

static void open_spool(fixture *test)
{
    open_spool_within(test, 0, 1);
}

static void reopen(fixture *test)
{
    sj_spool_close(test->spool);
    open_spool(test);
}

static int set_up(void **state)
{
    fixture *test = calloc(1, sizeof(*test));
    snprintf(test->directory, sizeof(test->directory), "spool_announced_test.%d", (int)getpid());
    open_spool(test);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    fixture *test = *state;
    char command[128];
    sj_spool_close(test->spool);
    snprintf(command, sizeof(command), "rm -rf %s", test->directory);
    free(test);
    return system(command);
}

static void segment_path(const fixture *test, unsigned number, char path[128])
{
    snprintf(path, 128, "%s/%08u.frames", test->directory, number);
}

/* Appends a frame of a session whose id is filled with `tag`. Its payload is `number` and
 * `payload_bytes`. */
static void append_of(fixture *test, uint16_t type, uint8_t tag, uint32_t number,
                      size_t payload_bytes)
{
    static uint8_t payload[65536];
    uint8_t header[2 + SJ_SESSION_ID_BYTES] = {0x0a, SJ_SESSION_ID_BYTES};
    size_t size = 0;
    memset(header + 2, tag, SJ_SESSION_ID_BYTES);
    memcpy(payload, &number, sizeof(number));
    assert_int_equal(sj_frame_write(type, (sj_slice){.data = header, .size = sizeof(header)},
                                    (sj_slice){.data = payload, .size = payload_bytes}, test->frame,
                                    sizeof(test->frame), &size),
                     SJ_OK);
    assert_int_equal(
        sj_spool_append(test->spool, (sj_slice){.data = test->frame, .size = size}, &test->error),
        SJ_OK);
}

/* Reads all frames as a sender does, and acknowledges them if wanted. */
static void send_all(fixture *test, bool is_acknowledged)
{
    sj_slice frame;
    uint64_t position = 0;
    while (sj_spool_next(test->spool, &frame, &position) == SJ_OK) {
        if (is_acknowledged) {
            assert_int_equal(sj_spool_acknowledge(test->spool, position), SJ_OK);
        }
    }
}

/* Reads the announcements again and writes their numbers, each with a space after it. */
static void recall(fixture *test, bool is_brief, char text[256])
{
    sj_slice frame;
    sj_spool_recall walk = {.is_brief = is_brief};
    text[0] = '\0';
    while (sj_spool_recall_next(test->spool, &walk, &frame) == SJ_OK) {
        sj_frame_view view;
        uint32_t number = 0;
        assert_int_equal(sj_frame_read(frame, &view), SJ_OK);
        memcpy(&number, view.payload.data, sizeof(number));
        snprintf(text + strlen(text), 256 - strlen(text), "%u ", number);
    }
}

static unsigned count_segments(const fixture *test)
{
    char path[128];
    unsigned count = 0;
    for (unsigned number = 1; number < 100; ++number) {
        segment_path(test, number, path);
        count += access(path, F_OK) == 0;
    }
    return count;
}

static void announcements_outlive_their_segments(void **state)
{
    fixture *test = *state;
    char text[256];
    append_of(test, SJ_FRAME_SESSION, 7, 1, 100);
    append_of(test, SJ_FRAME_MODULE, 7, 2, 5000);
    append_of(test, SJ_FRAME_SESSION, 9, 3, 100); /* A child session. */
    for (uint32_t i = 0; i < 20; ++i) {
        append_of(test, SJ_FRAME_BLOCK, 7, 100 + i, 3000);
        append_of(test, SJ_FRAME_MARK, 7, 200 + i, 100);
    }
    append_of(test, SJ_FRAME_THREAD, 7, 4, 100);
    recall(test, false, text);
    assert_string_equal(text, ""); /* The sender has none yet. */
    send_all(test, true);
    assert_int_equal(count_segments(test), 1);
    append_of(test, SJ_FRAME_PROCESS, 7, 5, 100);
    send_all(test, false);
    append_of(test, SJ_FRAME_PROCESS, 7, 6, 100);
    for (int round = 0; round < 2; ++round) {
        const char *last = round == 0 ? "5 " : ""; /* It was sent but not acknowledged. */
        char expected[64];
        snprintf(expected, sizeof(expected), "1 2 3 4 %s", last);
        recall(test, false, text);
        assert_string_equal(text, expected);
        snprintf(expected, sizeof(expected), "1 3 4 %s", last);
        recall(test, true, text);
        assert_string_equal(text, expected);
        reopen(test);
    }
    send_all(test, true);
    assert_int_equal(sj_spool_remove(test->spool, &test->error), SJ_OK);
    /* The file of announcements is deleted, too. */
    assert_int_not_equal(access(test->directory, F_OK), 0);
    open_spool(test);
}

/* If a process is killed after it has recorded an acknowledgement and before it deletes the
 * segment, the whole segment is left. */
static void announcements_of_a_segment_that_a_crash_left_are_kept(void **state)
{
    fixture *test = *state;
    char left[128];
    char kept[128];
    char text[256];
    char command[512];
    append_of(test, SJ_FRAME_SESSION, 7, 1, 9000);
    append_of(test, SJ_FRAME_THREAD, 7, 2, 100);
    segment_path(test, 1, left);
    snprintf(kept, sizeof(kept), "%s/announced", test->directory);
    snprintf(command, sizeof(command), "cp %s %s.copy", left, left);
    assert_int_equal(system(command), 0);
    send_all(test, true);
    snprintf(command, sizeof(command), "mv %s.copy %s && printf SJF1 > %s", left, left, kept);
    /* The state after a kill during the copy of the first frame. */
    assert_int_equal(system(command), 0);
    reopen(test);
    assert_int_not_equal(access(left, F_OK), 0);
    recall(test, false, text);
    assert_string_equal(text, "1 2 ");
}

static void announcements_that_cannot_be_written_are_counted(void **state)
{
    fixture *test = *state;
    char path[128];
    char text[256];
    sj_spool_counters counters;
    snprintf(path, sizeof(path), "%s/announced", test->directory);
    assert_int_equal(mkdir(path, 0700), 0); /* A folder takes the place of the file. */
    append_of(test, SJ_FRAME_SESSION, 7, 1, 9000);
    append_of(test, SJ_FRAME_THREAD, 7, 2, 100);
    send_all(test, true);
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.unkept_frames, 1);
    recall(test, false, text);
    assert_string_equal(text, "2 ");
    assert_int_equal(rmdir(path), 0);
}

/* A crash has left a segment that cannot be opened. */
static void a_segment_that_cannot_be_read_is_removed_and_counted(void **state)
{
    fixture *test = *state;
    char left[128];
    sj_spool_counters counters;
    append_of(test, SJ_FRAME_SESSION, 7, 1, 9000);
    append_of(test, SJ_FRAME_THREAD, 7, 2, 100);
    send_all(test, true);
    segment_path(test, 1, left);
    assert_int_equal(symlink("nowhere", left), 0);
    reopen(test);
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.unkept_frames, 1);
    assert_int_equal(sj_spool_remove(test->spool, &test->error), SJ_OK);
    assert_int_not_equal(access(test->directory, F_OK), 0);
    open_spool(test);
}

/* Announcements stay until the session is over, so they must not take the space of calls. */
static void announcements_take_a_share_of_the_quota(void **state)
{
    fixture *test = *state;
    char text[256];
    sj_spool_counters counters;
    sj_spool_close(test->spool);
    open_spool_within(test, UINT64_C(8) * 10000, 1);
    append_of(test, SJ_FRAME_SESSION, 7, 1, 5000);
    append_of(test, SJ_FRAME_MODULE, 7, 2, 6000); /* Together they exceed an eighth. */
    append_of(test, SJ_FRAME_PROCESS, 7, 3, 3000);
    append_of(test, SJ_FRAME_THREAD, 7, 4, 8000);
    append_of(test, SJ_FRAME_BLOCK, 7, 100, 100);
    send_all(test, true);
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.unkept_frames, 2);
    recall(test, false, text);
    assert_string_equal(text, "1 3 ");
    append_of(test, SJ_FRAME_BLOCK, 7, 101, 60000); /* The quota still has space for calls. */
}

static void announcements_leave_the_reserve_of_the_disk(void **state)
{
    fixture *test = *state;
    char text[256];
    sj_spool_counters counters;
    sj_spool_close(test->spool);
    open_spool_within(test, 0, UINT64_MAX / 2);
    append_of(test, SJ_FRAME_SESSION, 7, 1, 9000);
    append_of(test, SJ_FRAME_THREAD, 7, 2, 100);
    send_all(test, true);
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.unkept_frames, 1);
    recall(test, false, text);
    assert_string_equal(text, "2 ");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(announcements_outlive_their_segments),
        CASE(announcements_of_a_segment_that_a_crash_left_are_kept),
        CASE(announcements_that_cannot_be_written_are_counted),
        CASE(a_segment_that_cannot_be_read_is_removed_and_counted),
        CASE(announcements_take_a_share_of_the_quota),
        CASE(announcements_leave_the_reserve_of_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
