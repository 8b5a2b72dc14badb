/* Tests a spool that runs out of memory at any allocation. Appended frames are still returned until
 * they are acknowledged, also after the spool was opened again. */
#include "agent/uplink/spool.h"
#include "tests/support/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FRAMES = 8, PAYLOAD_BYTES = 3000 };

typedef enum fate { NOT_APPENDED, APPENDED, UNKNOWN, SETTLED } fate;

static char directory[64];

static void clean(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

static sj_status open_spool(sj_spool **spool, sj_error *error)
{
    const sj_spool_options options = {
        .directory = directory, .reserve_bytes = 1, .segment_bytes = 8192};
    *spool = NULL;
    error->text[0] = '\0';
    return sj_spool_open(&options, spool, error);
}

static sj_status append(sj_spool *spool, uint8_t number)
{
    static uint8_t payload[PAYLOAD_BYTES];
    static uint8_t frame[PAYLOAD_BYTES + 64];
    size_t size = 0;
    sj_error error;
    memset(payload, number, sizeof(payload));
    assert_int_equal(sj_frame_write(SJ_FRAME_BLOCK, (sj_slice){0},
                                    (sj_slice){.data = payload, .size = sizeof(payload)}, frame,
                                    sizeof(frame), &size),
                     SJ_OK);
    return sj_spool_append(spool, (sj_slice){.data = frame, .size = size}, &error);
}

static uint8_t number_of(sj_slice frame)
{
    sj_frame_view view;
    assert_int_equal(sj_frame_read(frame, &view), SJ_OK);
    assert_int_equal(view.payload.size, PAYLOAD_BYTES);
    return view.payload.data[0];
}

/* Rejects every third frame that the spool returns, and acknowledges the other even frames. */
static void settle(sj_spool *spool, fate *fates)
{
    sj_slice frame;
    uint64_t position;
    sj_status status;
    while ((status = sj_spool_next(spool, &frame, &position)) == SJ_OK) {
        const uint8_t number = number_of(frame);
        if (number % 3 == 0) {
            status = sj_spool_reject(spool, position, "for the test");
        } else if (number % 2 == 0) {
            status = sj_spool_acknowledge(spool, position);
        } else {
            continue;
        }
        fates[number] = status == SJ_OK ? SETTLED : UNKNOWN;
    }
    assert_true(status == SJ_EAGAIN || status == SJ_ENOMEM);
}

/* Checks that all frames that were appended and not settled are returned in order. */
static void check_rest(sj_spool *spool, const fate *fates)
{
    sj_slice frame;
    uint64_t position;
    uint8_t next = 0;
    sj_spool_rewind(spool);
    while (sj_spool_next(spool, &frame, &position) == SJ_OK) {
        const uint8_t number = number_of(frame);
        for (; next < number; ++next) {
            assert_int_not_equal(fates[next], APPENDED);
        }
        assert_true(number < FRAMES && number == next++);
        assert_int_not_equal(fates[number], NOT_APPENDED);
    }
    for (; next < FRAMES; ++next) {
        assert_int_not_equal(fates[next], APPENDED);
    }
}

static bool run(uint64_t n)
{
    fate fates[FRAMES] = {NOT_APPENDED};
    sj_spool *spool;
    sj_error error;
    clean();
    fail_alloc_at(n);
    sj_status status = open_spool(&spool, &error);
    for (uint8_t i = 0; status == SJ_OK && i < FRAMES; ++i) {
        const sj_status appended = append(spool, i);
        assert_true(appended == SJ_OK || appended == SJ_ENOMEM);
        fates[i] = appended == SJ_OK ? APPENDED : NOT_APPENDED;
    }
    if (status == SJ_OK) {
        settle(spool, fates);
    }
    const bool failed = fail_alloc_stop();
    if (status != SJ_OK) {
        assert_int_equal(status, SJ_ENOMEM);
        assert_string_not_equal(error.text, "");
    } else {
        check_rest(spool, fates);
        sj_spool_close(spool);
    }
    assert_int_equal(open_spool(&spool, &error), SJ_OK);
    check_rest(spool, fates);
    sj_spool_close(spool);
    return failed;
}

/* Opens and uses an existing spool, as after a restart, while allocation `n` fails. Returns true if
 * an allocation failed. */
static bool run_reopening(uint64_t n)
{
    fate fates[FRAMES];
    sj_spool *spool;
    sj_error error;
    clean();
    assert_int_equal(open_spool(&spool, &error), SJ_OK);
    for (uint8_t i = 0; i < FRAMES; ++i) {
        assert_int_equal(append(spool, i), SJ_OK);
        fates[i] = APPENDED;
    }
    sj_spool_close(spool);
    fail_alloc_at(n);
    const sj_status status = open_spool(&spool, &error);
    if (status == SJ_OK) {
        settle(spool, fates);
        sj_spool_close(spool);
    } else {
        assert_int_equal(status, SJ_ENOMEM);
        assert_string_not_equal(error.text, "");
    }
    const bool failed = fail_alloc_stop();
    assert_int_equal(open_spool(&spool, &error), SJ_OK);
    check_rest(spool, fates);
    sj_spool_close(spool);
    return failed;
}

static void a_lack_of_memory_loses_no_frame(void **state)
{
    uint64_t n = 0;
    (void)state;
    snprintf(directory, sizeof(directory), "spool_memory_test.%d", (int)getpid());
    while (run(n)) {
        n++;
    }
    assert_true(n > 10);
    n = 0;
    while (run_reopening(n)) {
        n++;
    }
    assert_true(n > 10);
    clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lack_of_memory_loses_no_frame)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
