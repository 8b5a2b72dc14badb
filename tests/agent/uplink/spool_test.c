/* Tests that frames in the spool survive crashes, damage and full disks. */
#include "agent/uplink/spool.h"
#include "agent/uplink/spool_aside.h"
#include "agent/uplink/spool_quota.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    char directory[64];
    sj_spool *spool;
    sj_error error;
    uint16_t type; /* Type of the frames that are made. */
    uint64_t root_budget_bytes;
    uint8_t frame[70000];
} fixture;

static void open_spool(fixture *test, uint64_t budget_bytes)
{
    const sj_spool_options options = {.directory = test->directory,
                                      .budget_bytes = budget_bytes,
                                      .reserve_bytes = 1,
                                      .segment_bytes = 8192,
                                      .root_budget_bytes = test->root_budget_bytes};
    const sj_status status = sj_spool_open(&options, &test->spool, &test->error);
    if (status != SJ_OK) {
        print_error("%s\n", test->error.text);
    }
    assert_int_equal(status, SJ_OK);
}

static void reopen(fixture *test)
{
    sj_spool_close(test->spool);
    open_spool(test, 0);
}

static void clean(const fixture *test)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", test->directory);
    assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
    fixture *test = calloc(1, sizeof(*test));
    test->type = SJ_FRAME_BLOCK;
    snprintf(test->directory, sizeof(test->directory), "spool_test.%d", (int)getpid());
    clean(test);
    open_spool(test, 0);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    fixture *test = *state;
    sj_spool_close(test->spool);
    clean(test);
    free(test);
    return 0;
}

/* Makes a frame whose payload begins with `number`. */
static sj_slice make_frame(fixture *test, uint32_t number, size_t payload_bytes)
{
    static uint8_t payload[65536];
    size_t size = 0;
    memcpy(payload, &number, sizeof(number));
    assert_int_equal(sj_frame_write(test->type, (sj_slice){0},
                                    (sj_slice){.data = payload, .size = payload_bytes}, test->frame,
                                    sizeof(test->frame), &size),
                     SJ_OK);
    return (sj_slice){.data = test->frame, .size = size};
}

static sj_status append(fixture *test, uint32_t number, size_t payload_bytes)
{
    return sj_spool_append(test->spool, make_frame(test, number, payload_bytes), &test->error);
}

static sj_status next(fixture *test, uint32_t *number, uint64_t *position)
{
    sj_slice frame;
    sj_frame_view view;
    const sj_status status = sj_spool_next(test->spool, &frame, position);
    if (status == SJ_OK) {
        assert_int_equal(sj_frame_read(frame, &view), SJ_OK);
        memcpy(number, view.payload.data, sizeof(*number));
    }
    return status;
}

static uint64_t expect_next(fixture *test, uint32_t expected)
{
    uint32_t number = UINT32_MAX;
    uint64_t position = 0;
    assert_int_equal(next(test, &number, &position), SJ_OK);
    assert_int_equal(number, expected);
    return position;
}

static void expect_none(fixture *test)
{
    uint32_t number;
    uint64_t position;
    assert_int_equal(next(test, &number, &position), SJ_EAGAIN);
}

static void segment_path(const fixture *test, unsigned number, char path[128])
{
    snprintf(path, 128, "%s/%08u.frames", test->directory, number);
}

static void frames_come_back_in_order_and_once(void **state)
{
    fixture *test = *state;
    for (uint32_t i = 0; i < 100; ++i) {
        assert_int_equal(append(test, i, 1000), SJ_OK);
    }
    for (uint32_t i = 0; i < 100; ++i) {
        assert_int_equal(sj_spool_acknowledge(test->spool, expect_next(test, i)), SJ_OK);
    }
    expect_none(test);
    sj_spool_counters counters;
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.pending_frames, 0);
    assert_int_equal(counters.pending_bytes, 0);
    char path[128];
    segment_path(test, 1, path);
    assert_int_equal(access(path, F_OK), -1); /* Acknowledged segments are deleted. */
    assert_int_equal(append(test, 100, 10), SJ_OK);
    expect_next(test, 100);
}

static void unacknowledged_frames_are_repeated_after_rewind_and_restart(void **state)
{
    fixture *test = *state;
    uint64_t positions[30];
    for (uint32_t i = 0; i < 30; ++i) {
        assert_int_equal(append(test, i, 1000), SJ_OK);
    }
    for (uint32_t i = 0; i < 20; ++i) {
        positions[i] = expect_next(test, i);
    }
    for (uint32_t i = 0; i < 10; ++i) {
        assert_int_equal(sj_spool_acknowledge(test->spool, positions[i]), SJ_OK);
    }
    assert_int_equal(sj_spool_acknowledge(test->spool, positions[12]), SJ_OK);
    sj_spool_rewind(test->spool);
    expect_next(test, 10);
    expect_next(test, 11);
    expect_next(test, 13); /* Frame 12 is acknowledged. */
    reopen(test);
    expect_next(test, 10);
    sj_spool_counters counters;
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.pending_frames, 20);
}

static void a_torn_tail_is_cut_and_the_rest_is_kept(void **state)
{
    fixture *test = *state;
    sj_spool_aside aside;
    for (size_t torn = 1; torn < 1020; torn += 101) {
        assert_int_equal(append(test, 1, 1000), SJ_OK);
        sj_spool_close(test->spool);
        char path[128];
        segment_path(test, 1, path);
        const int file = open(path, O_WRONLY | O_APPEND);
        const sj_slice frame = make_frame(test, 2, 1000);
        assert_int_equal(write(file, frame.data, torn), (ssize_t)torn);
        close(file);
        open_spool(test, 0);
        assert_false(sj_spool_aside_read(test->directory, &aside)); /* No frame was refused. */
        assert_int_equal(aside.bytes, torn);
        assert_int_equal(append(test, 3, 100), SJ_OK);
        expect_next(test, 1);
        expect_next(test, 3);
        expect_none(test);
        sj_spool_close(test->spool);
        clean(test);
        open_spool(test, 0);
    }
}

static void a_damaged_frame_is_skipped_counted_and_kept_aside(void **state)
{
    fixture *test = *state;
    for (uint32_t i = 0; i < 5; ++i) {
        assert_int_equal(append(test, i, 500), SJ_OK);
    }
    char path[128];
    segment_path(test, 1, path);
    const int file = open(path, O_WRONLY);
    assert_int_equal(pwrite(file, "\xff\xee", 2, 2 * 520 + 60), 2);
    close(file);
    uint32_t number;
    uint64_t position;
    expect_next(test, 0);
    expect_next(test, 1);
    assert_int_equal(next(test, &number, &position), SJ_ECORRUPT);
    expect_next(test, 3);
    expect_next(test, 4);
    expect_none(test);
    sj_spool_counters counters;
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.corrupt_frames, 1);
    struct stat aside;
    snprintf(path, sizeof(path), "%s/aside/00000001-00000410.damaged", test->directory);
    assert_int_equal(stat(path, &aside), 0);
    assert_int_equal(aside.st_size, 520);
}

/* If the disk has less free space than the reserve, the spool accepts few unacknowledged bytes.
 * Frames pass as long as they are acknowledged. */
static void a_disk_below_the_reserve_still_lets_frames_through(void **state)
{
    fixture *test = *state;
    const sj_spool_options options = {.directory = test->directory,
                                      .reserve_bytes = UINT64_MAX / 2};
    uint32_t held = 0;
    sj_spool_close(test->spool);
    assert_int_equal(sj_spool_open(&options, &test->spool, &test->error), SJ_OK);
    for (uint32_t i = 0; i < 500; ++i) {
        assert_int_equal(append(test, i, 60000), SJ_OK);
        assert_int_equal(sj_spool_acknowledge(test->spool, expect_next(test, i)), SJ_OK);
    }
    while (append(test, held, 60000) == SJ_OK) {
        assert_true(++held < 100);
    }
    assert_true(held >= 60);
    assert_non_null(strstr(test->error.text, "is full"));
}

static void a_file_shorter_than_the_ledger_says_is_not_appended_to(void **state)
{
    fixture *test = *state;
    for (uint32_t i = 0; i < 4; ++i) {
        assert_int_equal(append(test, i, 500), SJ_OK);
        assert_int_equal(sj_spool_acknowledge(test->spool, expect_next(test, i)), SJ_OK);
    }
    sj_spool_close(test->spool);
    char path[128];
    segment_path(test, 1, path);
    assert_int_equal(truncate(path, 520), 0);
    open_spool(test, 0);
    assert_int_equal(append(test, 7, 500), SJ_OK);
    expect_next(test, 7);
    reopen(test);
    expect_next(test, 7);
}

static void a_lost_ledger_means_everything_is_sent_again(void **state)
{
    fixture *test = *state;
    for (uint32_t i = 0; i < 3; ++i) {
        assert_int_equal(append(test, i, 500), SJ_OK);
    }
    assert_int_equal(sj_spool_acknowledge(test->spool, expect_next(test, 0)), SJ_OK);
    sj_spool_close(test->spool);
    char path[128];
    snprintf(path, sizeof(path), "%s/acked", test->directory);
    assert_int_equal(truncate(path, 0), 0);
    open_spool(test, 0);
    expect_next(test, 0);
    expect_next(test, 1);
}

static void the_budget_is_kept_and_freed_by_acknowledgement(void **state)
{
    fixture *test = *state;
    sj_spool_close(test->spool);
    open_spool(test, 10000);
    uint32_t stored = 0;
    while (append(test, stored, 1000) == SJ_OK) {
        stored++;
    }
    assert_int_equal(stored, 9);
    assert_int_equal(append(test, stored, 1000), SJ_EFULL);
    assert_int_equal(sj_spool_acknowledge(test->spool, expect_next(test, 0)), SJ_OK);
    assert_int_equal(append(test, stored, 1000), SJ_OK);
    sj_spool_counters counters;
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.refused_frames, 2);
}

/* A session without its end would look as if it were still being recorded. */
static void frames_that_describe_calls_pass_the_budget(void **state)
{
    fixture *test = *state;
    sj_spool_close(test->spool);
    open_spool(test, 10000);
    uint32_t stored = 0;
    while (append(test, stored, 1000) == SJ_OK) {
        stored++;
    }
    test->type = SJ_FRAME_PROFILE;
    assert_int_equal(append(test, stored, 1000), SJ_EFULL);
    test->type = SJ_FRAME_REPORT;
    assert_int_equal(append(test, stored, 1000), SJ_EFULL);
    test->type = SJ_FRAME_SESSION_END;
    assert_int_equal(append(test, stored, 1000), SJ_OK);
    test->type = SJ_FRAME_BLOCK;
    assert_int_equal(append(test, stored, 10), SJ_EFULL);
}

static void spools_of_one_root_share_its_budget(void **state)
{
    enum { ROOT_BYTES = 100000, SEGMENT_BYTES = 8192 };
    fixture *test = *state;
    char root[64];
    fixture *second = calloc(1, sizeof(*second));
    snprintf(root, sizeof(root), "spool_root_test.%d", (int)getpid());
    assert_int_equal(mkdir(root, 0700), 0);
    sj_spool_close(test->spool);
    clean(test);
    snprintf(test->directory, sizeof(test->directory), "%.40s/one", root);
    snprintf(second->directory, sizeof(second->directory), "%.40s/two", root);
    test->root_budget_bytes = second->root_budget_bytes = ROOT_BYTES;
    second->type = SJ_FRAME_BLOCK;
    open_spool(test, 0);
    open_spool(second, 0);
    uint64_t bytes = 0;
    bool is_full = false;
    for (uint32_t i = 0; !is_full && i < 1000; i++) {
        const bool first = append(test, i, 1000) == SJ_OK;
        const bool other = append(second, i, 1000) == SJ_OK;
        bytes += 1000 * ((uint64_t)first + other);
        is_full = !first && !other;
    }
    assert_true(is_full);
    assert_true(bytes > ROOT_BYTES / 2 && bytes < ROOT_BYTES + 2 * SEGMENT_BYTES);
    assert_non_null(strstr(test->error.text, "100000"));
    sj_spool_close(second->spool);
    clean(second);
    free(second);
    /* The spool sums the other spools again after at most a second. */
    assert_int_equal(append(test, 0, 1000), SJ_EFULL);
    sj_status status = SJ_EFULL;
    for (int tries = 0; tries < 12000 && status == SJ_EFULL; tries++) {
        usleep(10000);
        status = append(test, 0, 1000);
    }
    assert_int_equal(status, SJ_OK);
    sj_spool_close(test->spool);
    clean(test);
    assert_int_equal(rmdir(root), 0);
    snprintf(test->directory, sizeof(test->directory), "spool_test.%d", (int)getpid());
    open_spool(test, 0);
}

static void a_spool_is_opened_once_only(void **state)
{
    fixture *test = *state;
    sj_spool *second = NULL;
    const sj_spool_options options = {.directory = test->directory};
    assert_int_equal(sj_spool_open(&options, &second, &test->error), SJ_EEXIST);
}

static void a_rejected_frame_is_put_aside_and_not_given_again(void **state)
{
    fixture *test = *state;
    assert_int_equal(append(test, 0, 100), SJ_OK);
    assert_int_equal(append(test, 1, 100), SJ_OK);
    assert_int_equal(sj_spool_reject(test->spool, expect_next(test, 0), "line\nlast"), SJ_OK);
    reopen(test);
    expect_next(test, 1);
    char path[128];
    snprintf(path, sizeof(path), "%s/aside/00000001-00000000.rejected", test->directory);
    assert_int_equal(access(path, F_OK), 0);
}

static void count_aside(void *context, const char *session, const char *directory,
                        const sj_spool_aside *aside)
{
    (void)session;
    (void)directory;
    *(uint64_t *)context += aside->refused_frames;
}

/* The account of refused frames is kept when the spool is opened again and removed.
 * sj_spool_aside_each finds it. */
static void refused_frames_are_counted_and_named_until_removed(void **state)
{
    fixture *test = *state;
    sj_spool_aside aside;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(append(test, i, 100), SJ_OK);
    }
    assert_false(sj_spool_aside_read(test->directory, &aside));
    assert_int_equal(sj_spool_reject(test->spool, expect_next(test, 0), "first"), SJ_OK);
    reopen(test);
    assert_int_equal(sj_spool_reject(test->spool, expect_next(test, 1), "a function\nis unknown"),
                     SJ_OK);
    assert_int_equal(sj_spool_acknowledge(test->spool, expect_next(test, 2)), SJ_OK);
    assert_int_equal(sj_spool_remove(test->spool, &test->error), SJ_OK);
    assert_true(sj_spool_aside_read(test->directory, &aside));
    assert_int_equal(aside.refused_frames, 2);
    assert_int_equal(aside.damaged_frames + aside.unkept_frames, 0);
    assert_int_equal(sj_spool_directory_bytes(test->directory), 0);
    assert_string_equal(aside.why, "a function is unknown");
    char text[SJ_ASIDE_TEXT_BYTES];
    assert_non_null(strstr(sj_spool_aside_text(&aside, test->directory, text),
                           "2 frames refused by the collector for good"));
    uint64_t found = 0;
    char root[128];
    char named[256];
    snprintf(root, sizeof(root), "%s.root", test->directory);
    snprintf(named, sizeof(named), "%s/0123456789abcdef0123456789abcdef", root);
    assert_int_equal(mkdir(root, 0700), 0);
    assert_int_equal(rename(test->directory, named), 0);
    sj_spool_aside_each(root, count_aside, &found);
    assert_int_equal(found, 2);
    assert_int_equal(rename(named, test->directory), 0);
    assert_int_equal(rmdir(root), 0);
    open_spool(test, 0);
}

/* Limits files to `bytes`, as if the disk were full then. 0: removes the limit. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes != 0 ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static bool has_aside(const fixture *test, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/aside/%s", test->directory, name);
    return access(path, F_OK) == 0;
}

/* If the disk has no space for the account, the frame stays undelivered. */
static void a_frame_without_an_account_is_not_acknowledged(void **state)
{
    fixture *test = *state;
    sj_spool_aside aside;
    sj_spool_counters counters;
    assert_int_equal(append(test, 0, 100), SJ_OK);
    assert_int_equal(append(test, 1, 3000), SJ_OK);
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t position = expect_next(test, i);
        limit_files(200);
        const sj_status status = sj_spool_reject(test->spool, position, "no");
        limit_files(0);
        assert_int_equal(status, SJ_EFULL);
    }
    assert_false(sj_spool_aside_read(test->directory, &aside));
    assert_false(has_aside(test, "account"));
    /* A file without an account would not be counted anywhere. */
    assert_false(has_aside(test, "00000001-00000000.rejected"));
    sj_spool_get_counters(test->spool, &counters);
    assert_int_equal(counters.pending_frames, 2);
    assert_int_equal(counters.rejected_frames, 0);
    sj_spool_rewind(test->spool);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(sj_spool_reject(test->spool, expect_next(test, i), "no"), SJ_OK);
    }
    assert_true(sj_spool_aside_read(test->directory, &aside));
    assert_int_equal(aside.refused_frames, 2);
    assert_int_equal(aside.unkept_frames, 0);
    assert_int_equal(aside.bytes, 3140);
}

/* A crash of the machine left an account that is shorter than usual. */
static void a_full_disk_leaves_a_short_account_as_it_is(void **state)
{
    static const char text[] = "7 1 0 8\nearlier\n";
    fixture *test = *state;
    sj_spool_aside aside;
    char path[128];
    assert_int_equal(append(test, 0, 100), SJ_OK);
    assert_int_equal(sj_spool_reject(test->spool, expect_next(test, 0), "no"), SJ_OK);
    assert_int_equal(append(test, 1, 100), SJ_OK);
    const uint64_t position = expect_next(test, 1);
    snprintf(path, sizeof(path), "%s/aside/account", test->directory);
    const int file = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(file, text, sizeof(text) - 1), sizeof(text) - 1);
    close(file);
    limit_files(200);
    const sj_status status = sj_spool_reject(test->spool, position, "no");
    limit_files(0);
    assert_int_equal(status, SJ_EFULL);
    assert_true(sj_spool_aside_read(test->directory, &aside));
    assert_int_equal(aside.refused_frames, 7);
    assert_string_equal(aside.why, "earlier");
}

/* A damaged frame is not skipped before its account is written. */
static void damage_without_an_account_is_not_stepped_over(void **state)
{
    fixture *test = *state;
    char path[128];
    uint32_t number;
    uint64_t position;
    assert_int_equal(append(test, 0, 500), SJ_OK);
    segment_path(test, 1, path);
    const int file = open(path, O_WRONLY);
    assert_int_equal(pwrite(file, "\xff\xee", 2, 60), 2);
    close(file);
    limit_files(200);
    const sj_status status = next(test, &number, &position);
    limit_files(0);
    assert_int_equal(status, SJ_EFULL);
    assert_int_equal(next(test, &number, &position), SJ_ECORRUPT);
    sj_spool_aside aside;
    assert_true(sj_spool_aside_read(test->directory, &aside));
    assert_int_equal(aside.damaged_frames, 1);
}

/* Bytes of frames that did not fit do not count against later frames, and leave no part of a
 * file. */
static void frames_that_were_not_kept_use_no_budget(void **state)
{
    fixture *test = *state;
    sj_spool_aside aside;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(append(test, i, 2000), SJ_OK);
    }
    const uint64_t unkept = expect_next(test, 0);
    limit_files(1000); /* The account fits. */
    const sj_status status = sj_spool_reject(test->spool, unkept, "no");
    limit_files(0);
    assert_int_equal(status, SJ_OK);
    assert_true(sj_spool_aside_read(test->directory, &aside));
    assert_int_equal(aside.unkept_frames, 1);
    assert_int_equal(aside.bytes, 0);
    assert_false(has_aside(test, "00000001-00000000.rejected"));
    assert_int_equal(sj_spool_reject(test->spool, expect_next(test, 1), "no"), SJ_OK);
    assert_true(sj_spool_aside_read(test->directory, &aside));
    assert_int_equal(aside.unkept_frames, 1);
    assert_int_equal(aside.bytes, 2020);
    char text[SJ_ASIDE_TEXT_BYTES];
    assert_non_null(
        strstr(sj_spool_aside_text(&aside, test->directory, text), "without the bytes of 1 frame"));
}

/* Frames set aside count against the budget, in their own spool and in the spools beside it. */
static void frames_set_aside_use_the_budget(void **state)
{
    fixture *test = *state;
    char root[64];
    snprintf(root, sizeof(root), "spool_root_test.%d", (int)getpid());
    assert_int_equal(mkdir(root, 0700), 0);
    sj_spool_close(test->spool);
    clean(test);
    snprintf(test->directory, sizeof(test->directory), "%.40s/one", root);
    test->root_budget_bytes = 100000;
    open_spool(test, 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(append(test, i, 25000), SJ_OK);
        assert_int_equal(sj_spool_reject(test->spool, expect_next(test, i), "no"), SJ_OK);
    }
    assert_int_equal(append(test, 2, 30000), SJ_EFULL);
    assert_int_equal(sj_spool_remove(test->spool, &test->error), SJ_OK);
    snprintf(test->directory, sizeof(test->directory), "%.40s/two", root);
    open_spool(test, 0);
    assert_int_equal(append(test, 0, 60000), SJ_EFULL);
    assert_int_equal(append(test, 0, 5000), SJ_OK);
    sj_spool_close(test->spool);
    snprintf(test->directory, sizeof(test->directory), "%.40s", root);
    clean(test);
    snprintf(test->directory, sizeof(test->directory), "spool_test.%d", (int)getpid());
    open_spool(test, 0);
}

static void only_an_acknowledged_spool_is_removed(void **state)
{
    fixture *test = *state;
    assert_int_equal(append(test, 0, 100), SJ_OK);
    assert_int_equal(sj_spool_remove(test->spool, &test->error), SJ_EAGAIN);
    assert_int_equal(sj_spool_acknowledge(test->spool, expect_next(test, 0)), SJ_OK);
    assert_int_equal(sj_spool_remove(test->spool, &test->error), SJ_OK);
    assert_int_equal(access(test->directory, F_OK), -1);
    open_spool(test, 0);
}

/* A write fails at every byte of a frame in turn. The frame is stored whole or not at all. */
static void a_write_that_fails_leaves_whole_frames(void **state)
{
    fixture *test = *state;
    struct rlimit old;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    for (rlim_t space = 64; space < 3 * 120; space += 7) { /* The ledger needs 64. */
        sj_spool_close(test->spool);
        clean(test);
        open_spool(test, 0);
        const struct rlimit tight = {.rlim_cur = space, .rlim_max = old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &tight);
        uint32_t stored = 0;
        sj_status status;
        while ((status = append(test, stored, 100)) == SJ_OK) {
            stored++;
        }
        setrlimit(RLIMIT_FSIZE, &old);
        assert_int_equal(status, SJ_EFULL);
        assert_int_equal(stored, space / 120);
        assert_int_equal(append(test, stored, 100), SJ_OK);
        reopen(test);
        for (uint32_t i = 0; i <= stored; ++i) {
            expect_next(test, i);
        }
        expect_none(test);
    }
}

static void malformed_frames_are_not_appended(void **state)
{
    fixture *test = *state;
    const sj_slice frame = make_frame(test, 1, 100);
    const sj_slice cut = {.data = frame.data, .size = frame.size - 1};
    const sj_slice tiny = {.data = frame.data, .size = 7};
    assert_int_equal(sj_spool_append(test->spool, cut, &test->error), SJ_EINVAL);
    assert_int_equal(sj_spool_append(test->spool, tiny, &test->error), SJ_EINVAL);
    assert_int_equal(sj_spool_acknowledge(test->spool, UINT64_C(1) << 33), SJ_EINVAL);
    expect_none(test);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(frames_come_back_in_order_and_once),
        CASE(a_disk_below_the_reserve_still_lets_frames_through),
        CASE(unacknowledged_frames_are_repeated_after_rewind_and_restart),
        CASE(a_torn_tail_is_cut_and_the_rest_is_kept),
        CASE(a_damaged_frame_is_skipped_counted_and_kept_aside),
        CASE(a_file_shorter_than_the_ledger_says_is_not_appended_to),
        CASE(a_lost_ledger_means_everything_is_sent_again),
        CASE(the_budget_is_kept_and_freed_by_acknowledgement),
        CASE(frames_that_describe_calls_pass_the_budget),
        CASE(spools_of_one_root_share_its_budget),
        CASE(a_spool_is_opened_once_only),
        CASE(a_rejected_frame_is_put_aside_and_not_given_again),
        CASE(refused_frames_are_counted_and_named_until_removed),
        CASE(a_frame_without_an_account_is_not_acknowledged),
        CASE(damage_without_an_account_is_not_stepped_over),
        CASE(frames_that_were_not_kept_use_no_budget),
        CASE(a_full_disk_leaves_a_short_account_as_it_is),
        CASE(frames_set_aside_use_the_budget),
        CASE(only_an_acknowledged_spool_is_removed),
        CASE(a_write_that_fails_leaves_whole_frames),
        CASE(malformed_frames_are_not_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
