/* Disks that fail at any step below the whole ingest: edge, writer, deferred aggregates,
 * checkpoints and retention, each on its own thread, while several devices send. After the
 * collector was opened again, acknowledged frames are stored, and the others can be sent again. If
 * a disk lied about its syncs, missing calls are counted as lost. Some steps; SJ_LONG=1: 300
 * faults, and 300 power losses. */
#include "agent/uplink/sp_channel.h"
#include "collector-server/ingest/ingest.h"
#include "collector-server/sojournd/retainer.h"
#include "collector-server/store/verify.h"
#include "proto/wire/sojourn.pb-c.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/power_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    DEVICES = 4, /* the first one's sessions are removed by retention */
    BLOCKS = 8,
    EVENTS = 150,
    INTRODUCTIONS = 3, /* session, module, thread: one after the other */
    FRAMES = INTRODUCTIONS + BLOCKS + 1,
    LOST_CALLS = 5,
    WINDOW = 4,
    GREETING = -1,
    QUICK_ROUNDS = 8,
    LONG_ROUNDS = 300,
    PATIENCE_S = 300,
    ENOUGH_FAILURES = 3
};

typedef struct sent_frame {
    uint8_t *bytes;
    size_t size;
    bool is_acknowledged;
    bool is_in_flight;
    uint64_t log_at; /* entries of the power log at the acknowledgement */
} sent_frame;

typedef struct device {
    uint8_t *hello;
    size_t hello_bytes;
    sent_frame frames[FRAMES];
    sj_channel *channel;
    bool is_connected;
    bool is_greeted;
    bool is_busy[WINDOW];
    int slots[WINDOW]; /* the frame that each busy slot sends, or GREETING */
    bool is_removed; /* retention removes its session, so that later frames are refused for good */
} device;

/* A disk that fails: see fault_vfs.h. */
typedef struct fault_plan {
    uint64_t step;
    fault_kind kind;
    bool lasts;
} fault_plan;

static lab_file lab;
static sj_ingest *ingest;
static sj_retainer *retainer;
static char url[64];
static device devices[DEVICES];

static bool is_long(void)
{
    return getenv("SJ_LONG") != NULL;
}

static uint8_t *copy(sj_slice bytes, size_t *size)
{
    uint8_t *made = malloc(bytes.size);
    assert_non_null(made);
    memcpy(made, bytes.data, bytes.size);
    *size = bytes.size;
    return made;
}

static void keep_frame(device *sender, int number, sj_slice made)
{
    sender->frames[number].bytes = copy(made, &sender->frames[number].size);
}

static void make_device(device *sender, uint32_t number)
{
    frame_maker maker;
    int next = 0;
    frame_maker_init(&maker, (uint8_t)(1 + number));
    sender->is_removed = number == 0;
    maker.name_end = sender->is_removed ? " removed" : NULL;
    sender->hello = copy(frame_maker_hello(&maker), &sender->hello_bytes);
    keep_frame(sender, next++, frame_maker_session(&maker));
    keep_frame(sender, next++, frame_maker_module(&maker));
    keep_frame(sender, next++, frame_maker_thread(&maker));
    for (int i = 0; i < BLOCKS; ++i) {
        maker.lost_calls = i == 3 ? LOST_CALLS : 0;
        keep_frame(sender, next++,
                   frame_maker_block(&maker, EVENTS, i == BLOCKS - 1 ? SJ_BLOCK_LAST : 0));
    }
    keep_frame(sender, next++, frame_maker_end(&maker));
    assert_int_equal(next, FRAMES);
    frame_maker_deinit(&maker);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(lab.path, sizeof(lab.path), "ingest_faults_test.%d.db", (int)getpid());
    snprintf(url, sizeof(url), "ipc://./ingest_faults_test.%d.ipc", (int)getpid());
    for (uint32_t i = 0; i < DEVICES; ++i) {
        make_device(&devices[i], i);
    }
    fault_vfs_install();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lab_file_remove(lab.path);
    for (int i = 0; i < DEVICES; ++i) {
        free(devices[i].hello);
        for (int k = 0; k < FRAMES; ++k) {
            free(devices[i].frames[k].bytes);
        }
    }
    return 0;
}

static void stop_collector(void)
{
    sj_retainer_stop(retainer);
    retainer = NULL;
    if (ingest != NULL) {
        sj_ingest_stop(ingest);
        ingest = NULL;
    }
    sj_store_close(lab.store);
    lab.store = NULL;
}

/* Starts what sojournd starts for its database. Returns false if that fails, with a reason. */
static bool start_collector(void)
{
    static const sj_retention_rule rule = {.set = "name:*removed*", .max_bytes = 1};
    const char *urls[] = {url};
    const sj_store_options store = {.path = lab.path, .create = true, .aggregates_delay_ms = 20};
    const sj_ingest_options options = {.urls = urls, .url_count = 1, .recheck_ms = 1};
    lab.error.text[0] = '\0';
    if (sj_store_open(&store, &lab.store, &lab.error) == SJ_OK &&
        sj_ingest_start(lab.store, &options, &ingest, &lab.error) == SJ_OK &&
        sj_retainer_start(lab.path, &rule, 1, 1, &retainer, &lab.error) == SJ_OK) {
        return true;
    }
    assert_string_not_equal(lab.error.text, "");
    stop_collector();
    return false;
}

static void forget_sent(void)
{
    for (int i = 0; i < DEVICES; ++i) {
        for (int k = 0; k < FRAMES; ++k) {
            devices[i].frames[k].is_acknowledged = false;
        }
    }
}

static void connect_devices(void)
{
    for (int i = 0; i < DEVICES; ++i) {
        const sj_channel_options options = {.url = url, .slots = WINDOW, .resend_ms = 10000};
        device *sender = &devices[i];
        sender->is_connected = sender->is_greeted = false;
        for (int k = 0; k < WINDOW; ++k) {
            sender->is_busy[k] = false;
        }
        for (int k = 0; k < FRAMES; ++k) {
            sender->frames[k].is_in_flight = false;
        }
        assert_int_equal(sj_channel_sp.open(&options, &sender->channel, &lab.error), SJ_OK);
    }
}

static void disconnect_devices(void)
{
    for (int i = 0; i < DEVICES; ++i) {
        sj_channel_sp.close(devices[i].channel);
    }
}

/* Handles the collector's answer to a frame. Refused batches are sent again. */
static void read_answer(device *sender, int number, sj_slice reply)
{
    sj_frame_view view;
    assert_int_equal(sj_frame_read(reply, &view), SJ_OK);
    assert_int_equal(view.type, SJ_FRAME_ACK);
    Sojourn__Ack *ack = sojourn__ack__unpack(NULL, view.header.size, view.header.data);
    assert_non_null(ack);
    const sj_status status = (sj_status)ack->status;
    if (number == GREETING) {
        sender->is_greeted = status == SJ_OK;
    } else if (status == SJ_OK || (sender->is_removed && !sj_store_ends_batch(status))) {
        sender->frames[number].is_acknowledged = true;
        sender->frames[number].log_at = power_log_count();
    } else if (!sj_store_ends_batch(status)) {
        fail_msg("frame %d is refused for good: %s", number, ack->message);
    }
    sojourn__ack__free_unpacked(ack, NULL);
}

static void read_events(device *sender)
{
    sj_channel_event event;
    while (sj_channel_sp.next_event(sender->channel, &event)) {
        if (event.type == SJ_CHANNEL_CONNECTED || event.type == SJ_CHANNEL_DISCONNECTED) {
            sender->is_connected = event.type == SJ_CHANNEL_CONNECTED;
            sender->is_greeted = false;
            continue;
        }
        const int number = sender->slots[event.slot];
        sender->is_busy[event.slot] = false;
        if (number != GREETING) {
            sender->frames[number].is_in_flight = false;
        }
        if (event.type == SJ_CHANNEL_REPLIED) {
            read_answer(sender, number, event.reply);
        }
    }
}

static bool is_acknowledged_until(const device *sender, int end)
{
    for (int i = 0; i < end; ++i) {
        if (!sender->frames[i].is_acknowledged) {
            return false;
        }
    }
    return true;
}

/* Returns the next frame to send, or FRAMES. The blocks wait for the introductions, and the end
 * waits for the blocks. */
static int choose_frame(const device *sender)
{
    for (int i = 0; i < FRAMES; ++i) {
        const bool has_to_wait = i <= INTRODUCTIONS || i == FRAMES - 1;
        if (has_to_wait && !is_acknowledged_until(sender, i)) {
            return FRAMES;
        }
        if (!sender->frames[i].is_acknowledged && !sender->frames[i].is_in_flight) {
            return i;
        }
    }
    return FRAMES;
}

static void ask(device *sender, uint32_t slot, int number, sj_slice frame)
{
    if (sj_channel_sp.ask(sender->channel, slot, frame) == SJ_OK) {
        sender->slots[slot] = number;
        sender->is_busy[slot] = true;
    }
}

static void send_frames(device *sender)
{
    const sj_slice hello = {.data = sender->hello, .size = sender->hello_bytes};
    if (!sender->is_connected) {
        return;
    }
    if (!sender->is_greeted) {
        if (!sender->is_busy[0]) {
            ask(sender, 0, GREETING, hello);
        }
        return;
    }
    for (uint32_t slot = 0; slot < WINDOW; ++slot) {
        const int number = sender->is_busy[slot] ? FRAMES : choose_frame(sender);
        if (number != FRAMES) {
            sent_frame *frame = &sender->frames[number];
            ask(sender, slot, number, (sj_slice){.data = frame->bytes, .size = frame->size});
            frame->is_in_flight = sender->is_busy[slot];
        }
    }
}

/* Lets all devices send and receive once. Returns true if everything is acknowledged. */
static bool step(void)
{
    struct timespec until;
    bool is_done = true;
    for (int i = 0; i < DEVICES; ++i) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 200000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        read_events(&devices[i]);
        send_frames(&devices[i]);
        if (!is_acknowledged_until(&devices[i], FRAMES)) {
            is_done = false;
            sj_channel_sp.wait(devices[i].channel, &until);
        }
    }
    return is_done;
}

/* Sends until everything is acknowledged, or a lasting fault was met often enough. */
static void deliver(const char *name, bool lasts)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (!step() && !(lasts && fault_vfs_failures() >= ENOUGH_FAILURES)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begun.tv_sec > PATIENCE_S) {
            fail_msg("%s: frames are not acknowledged", name);
        }
    }
}

static void print_finding(void *context, const sj_finding *finding)
{
    (void)context;
    print_error("found: %s\n", finding->what);
}

/* Returns the number of findings. */
static uint64_t verify(bool is_told)
{
    sj_verified verified = {0};
    const sj_verify_options options = {.check_only = true,
                                       .report = is_told ? print_finding : NULL};
    const sj_store_options store = {.path = lab.path};
    assert_int_equal(sj_store_open(&store, &lab.store, &lab.error), SJ_OK);
    assert_int_equal(sj_store_verify(lab.store, &options, &verified, &lab.error), SJ_OK);
    sj_store_close(lab.store);
    lab.store = NULL;
    return verified.bad_blocks + verified.other;
}

/* Opens the collector on a sound disk, sends what was not acknowledged, and closes it. */
static void deliver_rest(const char *name)
{
    if (!start_collector()) {
        fail_msg("%s: the collector cannot be started again: %s", name, lab.error.text);
    }
    connect_devices();
    deliver(name, false);
    disconnect_devices();
    stop_collector();
}

/* Each session is whole, except that of the first device, which retention removes. The store may
 * have added a block without calls, which ends the open ones. */
static void finish(const char *name)
{
    static const char whole[] =
        "SELECT count(*), sum(sent_calls = stored_calls + lost_calls), sum(missing_calls),"
        " sum(lost_calls), sum((SELECT count(*) FROM streams JOIN blocks USING (stream_id)"
        " WHERE streams.session_id = sessions.session_id AND call_count > 0))"
        " FROM sessions WHERE name = 'synthetic'";
    char expected[64];
    deliver_rest(name);
    if (verify(true) != 0) {
        fail_msg("%s: the database is not sound", name);
    }
    snprintf(expected, sizeof(expected), "%d|%d|0|%d|%d|\n", DEVICES - 1, DEVICES - 1,
             (DEVICES - 1) * LOST_CALLS, (DEVICES - 1) * BLOCKS);
    char *found = lab_file_ask(&lab, whole);
    if (strcmp(found, expected) != 0) {
        fail_msg("%s: %s instead of %s", name, found, expected);
    }
    sqlite3_free(found);
}

/* Runs the collector while a disk fails. True if an operation failed. */
static bool run(const fault_plan *plan, const char *name)
{
    lab_file_remove(lab.path);
    forget_sent();
    fault_vfs_at(plan->step, plan->kind, plan->lasts);
    if (!start_collector()) {
        const bool failed = fault_vfs_stop();
        assert_true(failed);
        finish(name);
        return true;
    }
    connect_devices();
    deliver(name, plan->lasts);
    disconnect_devices();
    stop_collector();
    const bool failed = fault_vfs_stop();
    finish(name);
    return failed;
}

static void a_failing_disk_loses_nothing_acknowledged(void **state)
{
    static const fault_plan none = {.step = UINT64_MAX};
    char name[96];
    (void)state;
    assert_false(run(&none, "undisturbed"));
    fault_vfs_at(UINT64_MAX, FAULT_IO, false);
    assert_false(run(&none, "undisturbed"));
    const uint64_t steps = fault_vfs_done();
    const uint64_t rounds = is_long() ? LONG_ROUNDS : QUICK_ROUNDS;
    unsigned failed = 0;
    for (uint64_t i = 0; i < rounds; ++i) {
        const fault_plan plan = {.step = i * steps / rounds,
                                 .kind = (fault_kind)(i % FAULT_KINDS),
                                 .lasts = i / FAULT_KINDS % 2 != 0};
        snprintf(name, sizeof(name), "step %llu of %llu, kind %d%s", (unsigned long long)plan.step,
                 (unsigned long long)steps, (int)plan.kind, plan.lasts ? ", lasting" : "");
        failed += run(&plan, name);
    }
    print_message("%u of %llu faults happened\n", failed, (unsigned long long)rounds);
    assert_true(failed > rounds / 4);
}

/* Records the power log of a run without a fault. Returns its length. */
static uint64_t record_power_log(void)
{
    lab_file_remove(lab.path);
    forget_sent();
    power_log_begin();
    assert_true(start_collector());
    connect_devices();
    deliver("recorded", false);
    disconnect_devices();
    stop_collector();
    power_log_end();
    return power_log_count();
}

/* Marks the frames as acknowledged that were so before the log had that many entries. */
static void go_back(const uint64_t log_at[DEVICES][FRAMES], uint64_t entries)
{
    for (int i = 0; i < DEVICES; ++i) {
        for (int k = 0; k < FRAMES; ++k) {
            devices[i].frames[k].is_acknowledged = log_at[i][k] <= entries;
        }
    }
}

static void note_log(uint64_t log_at[DEVICES][FRAMES])
{
    for (int i = 0; i < DEVICES; ++i) {
        for (int k = 0; k < FRAMES; ++k) {
            log_at[i][k] = devices[i].frames[k].log_at;
        }
    }
}

static void a_power_loss_loses_nothing_acknowledged(void **state)
{
    uint64_t log_at[DEVICES][FRAMES];
    char name[96];
    (void)state;
    const uint64_t entries = record_power_log();
    const uint64_t rounds = is_long() ? LONG_ROUNDS / 2 : QUICK_ROUNDS;
    note_log(log_at);
    for (uint64_t i = 0; i < rounds; ++i) {
        const uint64_t at = i * entries / rounds;
        snprintf(name, sizeof(name), "power went after %llu of %llu, loss %d",
                 (unsigned long long)at, (unsigned long long)entries, (int)(i % 3));
        power_log_lose(lab.path, at, (power_loss)(i % 3), 0, i);
        go_back(log_at, at);
        finish(name);
    }
}

/* After a disk lied, the devices announce their sessions and end them again. Calls that are gone
 * are lost. A damaged file is named. */
static void check_truth(const char *name, const uint64_t log_at[DEVICES][FRAMES], uint64_t at)
{
    if (!start_collector()) {
        if (strstr(lab.error.text, lab.path) == NULL) {
            fail_msg("%s: \"%s\" does not name the file", name, lab.error.text);
        }
        return;
    }
    stop_collector();
    if (verify(false) != 0) {
        return;
    }
    go_back(log_at, at);
    for (int i = 0; i < DEVICES; ++i) {
        for (int k = 0; k < FRAMES; ++k) {
            const bool is_repeated = k < INTRODUCTIONS || k == FRAMES - 1;
            devices[i].frames[k].is_acknowledged &= !is_repeated;
        }
    }
    deliver_rest(name);
    char *found =
        lab_file_ask(&lab, "SELECT name, sent_calls, stored_calls, lost_calls FROM sessions"
                           " WHERE name = 'synthetic' AND"
                           " sent_calls IS NOT stored_calls + lost_calls");
    if (found[0] != '\0') {
        fail_msg("%s: %s", name, found);
    }
    sqlite3_free(found);
    lab_file_expect(&lab, "SELECT count(*) FROM sessions WHERE name = 'synthetic'", "3|\n");
}

static void acknowledged_frames_that_a_lying_disk_lost_are_counted(void **state)
{
    uint64_t log_at[DEVICES][FRAMES];
    char name[96];
    (void)state;
    const uint64_t entries = record_power_log();
    const uint64_t rounds = is_long() ? LONG_ROUNDS / 2 : QUICK_ROUNDS;
    note_log(log_at);
    for (uint64_t i = 0; i < rounds; ++i) {
        const uint64_t at = (i + 1) * entries / rounds;
        const unsigned lies = 1 + (unsigned)(i / 2 % 3) * 2;
        const power_loss loss = i % 2 != 0 ? LOSS_SHUFFLES : LOSS_DROPS;
        snprintf(name, sizeof(name), "power went after %llu of %llu, loss %d, lies %u",
                 (unsigned long long)at, (unsigned long long)entries, (int)loss, lies);
        power_log_lose(lab.path, at, loss, lies, i);
        check_truth(name, log_at, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_disk_loses_nothing_acknowledged),
        cmocka_unit_test(a_power_loss_loses_nothing_acknowledged),
        cmocka_unit_test(acknowledged_frames_that_a_lying_disk_lost_are_counted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
