/* Tests the quotas of devices: what a device may have stored in a day. */
#include "proto/base/ids.h"
#include "proto/wire/sojourn.pb-c.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NOON_S = 43200, DAY_S = 86400, EVENTS = 500 };

/* Time of the store: the noon of a day, so that no midnight passes during a test. */
static time_t now_s;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) {
        now->tv_sec = now_s;
    }
    return result;
}

static void open_with(lab_file *lab, sj_quota quota)
{
    const sj_store_options options = {.path = lab->path, .create = true, .quota = quota};
    sj_store_close(lab->store);
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_OK);
}

static int set_up(void **state)
{
    now_s = 20000 * (time_t)DAY_S + NOON_S;
    return lab_file_set_up(state);
}

static sj_status apply(lab_file *lab, const frame_maker *from, sj_slice frame)
{
    bool duplicate;
    sj_frame_view view;
    const sj_sender sender = {
        .is_peer = true, .has_token = true, .device = {0xd0, from->session_tag}};
    assert_int_equal(sj_frame_read(frame, &view), SJ_OK);
    return sj_store_apply(lab->store, &view, &sender, &duplicate, &lab->error);
}

/* The sentence of the latest frame's refusal. */
static char said[sizeof(((sj_error *)0)->text)];

/* Applies one frame in a batch of its own. */
static sj_status apply_alone(lab_file *lab, sj_slice frame)
{
    lab_file_begin(lab);
    const sj_status status = apply(lab, &lab->maker, frame);
    snprintf(said, sizeof(said), "%s", lab->error.text);
    lab_file_commit(lab);
    return status;
}

static void expect(lab_file *lab, sj_slice frame, sj_status status)
{
    assert_int_equal(apply_alone(lab, frame), status);
}

static void put_session(lab_file *lab)
{
    expect(lab, frame_maker_hello(&lab->maker), SJ_OK);
    expect(lab, frame_maker_session(&lab->maker), SJ_OK);
    expect(lab, frame_maker_module(&lab->maker), SJ_OK);
    expect(lab, frame_maker_thread(&lab->maker), SJ_OK);
}

/* A frame that the next calls may send again. */
static sj_slice keep(sj_slice frame)
{
    uint8_t *copy = malloc(frame.size);
    memcpy(copy, frame.data, frame.size);
    return (sj_slice){.data = copy, .size = frame.size};
}

static void bytes_are_refused_until_the_next_day(void **state)
{
    lab_file *lab = *state;
    char used[64];
    open_with(lab, (sj_quota){.bytes = 100000});
    put_session(lab);
    uint64_t stored = 0;
    sj_slice frame = keep(frame_maker_block(&lab->maker, EVENTS, 0));
    sj_status status = SJ_OK;
    for (int blocks = 0; status == SJ_OK; ++blocks) {
        assert_true(blocks < 1000);
        status = apply_alone(lab, frame);
        if (status == SJ_OK) {
            stored += frame.size;
            free((void *)(uintptr_t)frame.data);
            frame = keep(frame_maker_block(&lab->maker, EVENTS, 0));
        }
    }
    assert_int_equal(status, SJ_EQUOTA);
    assert_non_null(strstr(said, "quota of 100000 bytes a day is used up"));
    assert_non_null(strstr(said, "until 2024-10-05 00:00 UTC"));
    char *bytes = lab_file_ask(lab, "SELECT bytes, refusals FROM device_usage");
    const uint64_t counted = strtoull(bytes, NULL, 10);
    sqlite3_free(bytes);
    assert_true(counted >= 100000 && counted >= stored && counted - stored < 100000);
    snprintf(used, sizeof(used), "%llu|1|20000|\n", (unsigned long long)counted);
    lab_file_expect(lab, "SELECT bytes, refusals, day FROM device_usage", used);

    open_with(lab, (sj_quota){.bytes = 100000}); /* a restart forgets nothing */
    expect(lab, frame, SJ_EQUOTA);
    expect(lab, frame_maker_hello(&lab->maker), SJ_OK);
    now_s += NOON_S - 1; /* the last second of the day */
    expect(lab, frame, SJ_EQUOTA);
    now_s += 1;
    expect(lab, frame, SJ_OK);
    free((void *)(uintptr_t)frame.data);
    lab_file_expect(lab, "SELECT day, refusals, sessions FROM device_usage", "20001|0|0|\n");
    lab_file_expect(lab,
                    "SELECT count(*) FROM (SELECT first_event, lag(first_event + event_count)"
                    " OVER (ORDER BY first_event) AS end FROM blocks) WHERE first_event <> end",
                    "0|\n");
}

/* Returns the session of `second`, as the device of the lab's maker announces it. */
static sj_slice session_of_the_device(lab_file *lab, frame_maker *second)
{
    uint8_t header[256];
    uint8_t id[SJ_SESSION_ID_BYTES];
    uint8_t device[SJ_DEVICE_ID_BYTES] = {0xd0, lab->maker.session_tag};
    Sojourn__Session session = SOJOURN__SESSION__INIT;
    memset(id, second->session_tag, sizeof(id));
    session.session_id = (ProtobufCBinaryData){.data = id, .len = sizeof(id)};
    session.device_id = (ProtobufCBinaryData){.data = device, .len = sizeof(device)};
    session.started_ticks = FRAME_MAKER_STARTED_TICKS;
    session.tick_ns_numerator = session.tick_ns_denominator = 1;
    const sj_slice packed = {.data = header, .size = sojourn__session__pack(&session, header)};
    return frame_maker_wrap(second, SJ_FRAME_SESSION, packed, (sj_slice){0});
}

static void a_session_beyond_the_quota_waits_as_a_whole(void **state)
{
    lab_file *lab = *state;
    frame_maker second;
    frame_maker_init(&second, 2);
    open_with(lab, (sj_quota){.sessions = 1});
    put_session(lab);
    expect(lab, session_of_the_device(lab, &second), SJ_EQUOTA);
    assert_non_null(strstr(said, "quota of 1 session a day is used up"));
    expect(lab, frame_maker_module(&second), SJ_EQUOTA); /* not "was not announced" */
    expect(lab, frame_maker_block(&second, EVENTS, 0), SJ_EQUOTA);
    lab_file_expect(lab, "SELECT count(*) FROM sessions", "1|\n");
    lab_file_expect(lab, "SELECT sessions, refusals FROM device_usage", "1|3|\n");

    expect(lab, frame_maker_session(&lab->maker), SJ_OK); /* announced again: not a new one */
    expect(lab, frame_maker_block(&lab->maker, EVENTS, 0), SJ_OK);
    now_s += DAY_S;
    expect(lab, frame_maker_module(&second), SJ_ENOTFOUND);
    expect(lab, session_of_the_device(lab, &second), SJ_OK);
    expect(lab, frame_maker_module(&second), SJ_OK);
    lab_file_expect(lab, "SELECT sessions, refusals, day FROM device_usage", "1|0|20001|\n");
    frame_maker_deinit(&second);
}

static void a_devices_own_quota_comes_before_the_default(void **state)
{
    lab_file *lab = *state;
    frame_maker second;
    frame_maker_init(&second, 2);
    open_with(lab, (sj_quota){.sessions = 1});
    put_session(lab);
    expect(lab, session_of_the_device(lab, &second), SJ_EQUOTA);
    lab_file_run(lab, "INSERT INTO device_quotas VALUES (1, NULL, 0, 'test', 0)");
    expect(lab, session_of_the_device(lab, &second), SJ_OK); /* 0: no limit */
    lab_file_run(lab, "UPDATE device_quotas SET bytes = 1, sessions = NULL");
    expect(lab, frame_maker_mark(&lab->maker, 1), SJ_EQUOTA); /* bytes were counted before */
    frame_maker_deinit(&second);
}

static void other_devices_of_a_batch_are_stored(void **state)
{
    lab_file *lab = *state;
    frame_maker other;
    frame_maker_init(&other, 9);
    put_session(lab);
    lab_file_run(lab, "INSERT INTO device_quotas VALUES (1, 1, NULL, 'test', 0)");
    expect(lab, frame_maker_block(&lab->maker, EVENTS, 0), SJ_OK);
    lab_file_begin(lab);
    assert_int_equal(apply(lab, &lab->maker, frame_maker_mark(&lab->maker, 1)), SJ_EQUOTA);
    assert_int_equal(apply(lab, &other, frame_maker_hello(&other)), SJ_OK);
    assert_int_equal(apply(lab, &other, frame_maker_session(&other)), SJ_OK);
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT count(*) FROM sessions", "2|\n");
    lab_file_expect(lab, "SELECT count(*) FROM device_usage", "1|\n");
    frame_maker_deinit(&other);
}

static void a_rollback_counts_nothing(void **state)
{
    lab_file *lab = *state;
    open_with(lab, (sj_quota){.sessions = 1});
    expect(lab, frame_maker_hello(&lab->maker), SJ_OK);
    lab_file_begin(lab);
    assert_int_equal(apply(lab, &lab->maker, frame_maker_session(&lab->maker)), SJ_OK);
    sj_store_rollback(lab->store);
    put_session(lab);
    lab_file_expect(lab, "SELECT sessions, refusals FROM device_usage", "1|0|\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_refused_until_the_next_day, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_session_beyond_the_quota_waits_as_a_whole, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_devices_own_quota_comes_before_the_default, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(other_devices_of_a_batch_are_stored, set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_rollback_counts_nothing, set_up, lab_file_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
