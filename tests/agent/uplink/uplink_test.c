/* The test simulates the collector of an uplink. It checks the number of frames in flight, missing
 * credit, collectors of older and newer versions, and broken connections. */
#include "agent/uplink/nng_channel.h"
#include "agent/uplink/uplink.h"
#include "proto/wire/sojourn.pb-c.h"
#include "tests/collector-server/store/frame_maker.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { HELD_MAX = 64, QUIET_MS = 250, PATIENCE_MS = 120000 };

typedef struct collector {
    char url[96];
    char spool_path[64];
    nng_socket socket;
    sj_spool *spool;
    sj_uplink *uplink;
    frame_maker maker;
    nng_msg *held[HELD_MAX]; /* questions without a reply yet */
    unsigned held_count;
    unsigned seen[SJ_FRAME_PING + 1]; /* Frames by type. */
} collector;

static void open_listener(collector *one)
{
    assert_int_equal(nng_rep0_open_raw(&one->socket), 0);
    assert_int_equal(nng_listen(one->socket, one->url, NULL, 0), 0);
}

static int set_up(void **state)
{
    static int runs;
    char command[128];
    sj_error error = {0};
    collector *one = calloc(1, sizeof(*one));
    snprintf(one->url, sizeof(one->url), "ipc://./uplink_test.%d.%d.ipc", (int)getpid(), ++runs);
    snprintf(one->spool_path, sizeof(one->spool_path), "uplink_test.%d.spool", (int)getpid());
    snprintf(command, sizeof(command), "rm -rf %s", one->spool_path);
    assert_int_equal(system(command), 0);
    frame_maker_init(&one->maker, 3);
    const sj_spool_options spool = {.directory = one->spool_path, .reserve_bytes = 1};
    assert_int_equal(sj_spool_open(&spool, &one->spool, &error), SJ_OK);
    open_listener(one);
    *state = one;
    return 0;
}

static int tear_down(void **state)
{
    collector *one = *state;
    char command[128];
    sj_uplink_stop(one->uplink);
    for (unsigned i = 0; i < one->held_count; ++i) {
        nng_msg_free(one->held[i]);
    }
    nng_close(one->socket);
    sj_spool_close(one->spool);
    frame_maker_deinit(&one->maker);
    snprintf(command, sizeof(command), "rm -rf %s", one->spool_path);
    free(one);
    return system(command);
}

static void append_frames(collector *one, int blocks)
{
    sj_error error = {0};
    const bool is_first = one->maker.next_event == 0;
    if (is_first) {
        assert_int_equal(sj_spool_append(one->spool, frame_maker_session(&one->maker), &error),
                         SJ_OK);
    }
    for (int i = 0; i < blocks; ++i) {
        const sj_slice block = frame_maker_block(&one->maker, 100, 0);
        assert_int_equal(sj_spool_append(one->spool, block, &error), SJ_OK);
    }
}

static void start_uplink_with(collector *one, uint32_t window, bool waits)
{
    sj_error error = {0};
    const sj_uplink_options options = {.channel = &sj_channel_nng,
                                       .url = one->url,
                                       .hello = frame_maker_hello(&one->maker),
                                       .window = window,
                                       .resend_ms = 60000,
                                       .waits = waits};
    assert_int_equal(sj_uplink_start(one->spool, &options, &one->uplink, &error), SJ_OK);
}

static void start_uplink(collector *one, uint32_t window)
{
    start_uplink_with(one, window, false);
}

static unsigned type_of(nng_msg *message)
{
    sj_frame_view view;
    const sj_slice bytes = {.data = nng_msg_body(message), .size = nng_msg_len(message)};
    assert_int_equal(sj_frame_read(bytes, &view), SJ_OK);
    return view.type;
}

/* Receives a question within `ms`. Returns NULL if none arrives. */
static nng_msg *receive_question(collector *one, int ms)
{
    nng_msg *message = NULL;
    assert_int_equal(nng_socket_set_ms(one->socket, NNG_OPT_RECVTIMEO, ms), 0);
    if (nng_recvmsg(one->socket, &message, 0) != 0) {
        return NULL;
    }
    one->seen[type_of(message) <= SJ_FRAME_PING ? type_of(message) : 0]++;
    return message;
}

/* Holds `wanted` frames, and all further frames that arrive without a pause. */
static void hold_all(collector *one, unsigned wanted)
{
    nng_msg *message;
    while (one->held_count < HELD_MAX &&
           (message = receive_question(one, one->held_count < wanted ? PATIENCE_MS : QUIET_MS)) !=
               NULL) {
        one->held[one->held_count++] = message;
    }
}

static void reply(collector *one, nng_msg *message, Sojourn__Ack ack, uint8_t major)
{
    uint8_t header[256];
    uint8_t frame[sizeof(header) + SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    const sj_slice packed = {.data = header, .size = sojourn__ack__pack(&ack, header)};
    assert_int_equal(
        sj_frame_write(SJ_FRAME_ACK, packed, (sj_slice){0}, frame, sizeof(frame), &size), SJ_OK);
    frame[4] = major;
    nng_msg_clear(message);
    assert_int_equal(nng_msg_append(message, frame, size), 0);
    assert_int_equal(nng_sendmsg(one->socket, message, 0), 0);
}

/* Replies like the first version, without times. */
static void accept(collector *one, nng_msg *message, uint32_t window)
{
    Sojourn__Ack ack = SOJOURN__ACK__INIT;
    ack.window = window;
    reply(one, message, ack, SJ_FRAME_MAJOR);
}

static void expect_question(collector *one, unsigned type, nng_msg **message)
{
    *message = receive_question(one, PATIENCE_MS);
    assert_non_null(*message);
    assert_int_equal(type_of(*message), type);
}

static void introduce(collector *one, uint32_t window)
{
    nng_msg *message;
    expect_question(one, SJ_FRAME_HELLO, &message);
    accept(one, message, window);
    expect_question(one, SJ_FRAME_SESSION, &message);
    accept(one, message, window);
}

/* Accepts frames until the uplink has none left to send or to wait for. */
static void serve(collector *one)
{
    sj_status status = SJ_ETIMEDOUT;
    for (unsigned i = 0; i < one->held_count; ++i) {
        accept(one, one->held[i], 8);
    }
    one->held_count = 0;
    for (int rounds = 0; status == SJ_ETIMEDOUT && rounds < PATIENCE_MS / 50; ++rounds) {
        nng_msg *message = receive_question(one, 50);
        if (message != NULL) {
            accept(one, message, 8);
        }
        status = sj_uplink_drain(one->uplink, 1);
    }
    assert_int_equal(status, SJ_OK);
}

static void frames_under_way_stay_within_the_collectors_limit(void **state)
{
    collector *one = *state;
    append_frames(one, 40);
    start_uplink(one, 16);
    introduce(one, 5);
    hold_all(one, 5);
    assert_int_equal(one->held_count, 5);
    serve(one);
    assert_int_equal(one->seen[SJ_FRAME_BLOCK], 40);
}

static void only_hello_is_sent_before_the_uplink_is_released(void **state)
{
    collector *one = *state;
    nng_msg *message;
    append_frames(one, 5);
    start_uplink_with(one, 8, true);
    expect_question(one, SJ_FRAME_HELLO, &message);
    accept(one, message, 8);
    sj_uplink_wake(one->uplink);
    assert_null(receive_question(one, QUIET_MS));
    sj_uplink_release(one->uplink);
    serve(one);
    assert_int_equal(one->seen[SJ_FRAME_SESSION], 1);
    assert_int_equal(one->seen[SJ_FRAME_BLOCK], 5);
}

static void frames_under_way_stay_within_the_devices_limit(void **state)
{
    collector *one = *state;
    append_frames(one, 40);
    start_uplink(one, 3);
    introduce(one, 48);
    hold_all(one, 3);
    assert_int_equal(one->held_count, 3);
    serve(one);
}

static void without_credit_one_frame_at_a_time_asks_for_it(void **state)
{
    collector *one = *state;
    nng_msg *message;
    Sojourn__Ack full = SOJOURN__ACK__INIT;
    full.status = SJ_EFULL;
    full.message = (char *)(uintptr_t) "full";
    append_frames(one, 10);
    start_uplink(one, 8);
    introduce(one, 0);
    for (int i = 0; i < 3; ++i) {
        expect_question(one, SJ_FRAME_BLOCK, &message);
        assert_null(receive_question(one, 100));
        reply(one, message, full, SJ_FRAME_MAJOR);
    }
    sj_uplink_status status;
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.state, SJ_UPLINK_WAITING);
    serve(one);
    sj_spool_counters counters;
    sj_spool_get_counters(one->spool, &counters);
    assert_int_equal(counters.acknowledged_frames, 11);
}

static void a_collector_without_clock_replies_gets_no_clock_frame(void **state)
{
    collector *one = *state;
    append_frames(one, 5);
    start_uplink(one, 8);
    introduce(one, 8);
    serve(one);
    assert_int_equal(one->seen[SJ_FRAME_DEVICE_CLOCK], 0);
}

/* This collector sends times but does not know clock frames. */
static void a_collector_that_knows_no_clock_frame_gets_everything_else(void **state)
{
    collector *one = *state;
    nng_msg *message;
    Sojourn__Ack timed = SOJOURN__ACK__INIT;
    Sojourn__Ack unknown = SOJOURN__ACK__INIT;
    timed.window = 8;
    timed.received_realtime_ns = 1000;
    timed.sent_realtime_ns = 1000;
    unknown.status = SJ_EUNSUPPORTED;
    unknown.message = (char *)(uintptr_t) "unknown frame";
    append_frames(one, 5);
    Sojourn__Hello *about = NULL;
    sj_frame_view view;
    assert_int_equal(sj_frame_read(frame_maker_hello(&one->maker), &view), SJ_OK);
    about = sojourn__hello__unpack(NULL, view.header.size, view.header.data);
    assert_true(about->boot_id[0] != '\0'); /* without it, the uplink would send no clock frame */
    sojourn__hello__free_unpacked(about, NULL);
    start_uplink(one, 8);
    expect_question(one, SJ_FRAME_HELLO, &message);
    reply(one, message, timed, SJ_FRAME_MAJOR);
    while (one->seen[SJ_FRAME_DEVICE_CLOCK] == 0) {
        message = receive_question(one, PATIENCE_MS);
        assert_non_null(message);
        reply(one, message, type_of(message) == SJ_FRAME_DEVICE_CLOCK ? unknown : timed,
              SJ_FRAME_MAJOR);
    }
    serve(one);
    sj_uplink_status status;
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.rejected_frames, 0);
}

static void a_collector_of_another_major_version_is_reported_and_nothing_is_lost(void **state)
{
    collector *one = *state;
    nng_msg *message;
    Sojourn__Ack ack = SOJOURN__ACK__INIT;
    append_frames(one, 5);
    start_uplink(one, 8);
    expect_question(one, SJ_FRAME_HELLO, &message);
    reply(one, message, ack, SJ_FRAME_MAJOR + 1);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_EPERM);
    sj_uplink_status status;
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.state, SJ_UPLINK_REFUSED);
    assert_non_null(strstr(status.message, "major version"));
    sj_spool_counters counters;
    sj_spool_get_counters(one->spool, &counters);
    assert_int_equal(counters.pending_frames, 6);
}

static void a_collector_too_old_for_a_block_gets_it_once_it_is_updated(void **state)
{
    collector *one = *state;
    nng_msg *message;
    Sojourn__Ack refused = SOJOURN__ACK__INIT;
    refused.status = SJ_EVERSION;
    refused.message = (char *)(uintptr_t) "a block's header cannot be read";
    refused.window = 1;
    append_frames(one, 3);
    start_uplink(one, 8);
    introduce(one, 1);
    expect_question(one, SJ_FRAME_BLOCK, &message);
    reply(one, message, refused, SJ_FRAME_MAJOR);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_EPERM);
    sj_uplink_status status;
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.state, SJ_UPLINK_REFUSED);
    assert_non_null(strstr(status.message, "update the collector"));
    nng_close(one->socket); /* Another collector replaces it. */
    open_listener(one);
    expect_question(one, SJ_FRAME_HELLO, &message);
    accept(one, message, 8);
    expect_question(one, SJ_FRAME_BLOCK, &message);
    accept(one, message, 8);
    serve(one);
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.rejected_frames, 0);
    assert_int_equal(one->seen[SJ_FRAME_BLOCK], 4);
}

/* If the disk has no space for the account of a frame, the frame is sent again. */
static void a_refused_frame_that_cannot_be_noted_comes_again(void **state)
{
    collector *one = *state;
    nng_msg *message;
    char aside[96];
    Sojourn__Ack refused = SOJOURN__ACK__INIT;
    refused.status = SJ_ECORRUPT;
    refused.message = (char *)(uintptr_t) "a block is corrupt";
    refused.window = 1;
    snprintf(aside, sizeof(aside), "%s/aside", one->spool_path);
    FILE *obstacle = fopen(aside, "w"); /* A file takes the place of the account's folder. */
    assert_non_null(obstacle);
    assert_int_equal(fclose(obstacle), 0);
    append_frames(one, 1);
    start_uplink(one, 8);
    introduce(one, 1);
    expect_question(one, SJ_FRAME_BLOCK, &message);
    reply(one, message, refused, SJ_FRAME_MAJOR);
    expect_question(one, SJ_FRAME_BLOCK, &message);
    sj_uplink_status status;
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.rejected_frames, 0);
    assert_non_null(strstr(status.message, "no space to count"));
    assert_int_equal(remove(aside), 0);
    reply(one, message, refused, SJ_FRAME_MAJOR);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_OK);
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.rejected_frames, 1);
    assert_non_null(strstr(status.message, "a block is corrupt"));
}

static void each_connection_begins_with_hello_and_goes_on_where_it_broke(void **state)
{
    collector *one = *state;
    append_frames(one, 6);
    start_uplink(one, 8);
    introduce(one, 8);
    hold_all(one, 6);
    assert_int_equal(one->held_count, 6);
    for (unsigned i = 0; i < one->held_count; ++i) {
        nng_msg_free(one->held[i]);
    }
    one->held_count = 0;
    nng_close(one->socket);
    open_listener(one);
    const unsigned hellos = one->seen[SJ_FRAME_HELLO];
    serve(one);
    assert_true(one->seen[SJ_FRAME_HELLO] > hellos);
    sj_spool_counters counters;
    sj_spool_get_counters(one->spool, &counters);
    assert_int_equal(counters.acknowledged_frames, 7);
}

/* Announces a session with a module and a thread, and accepts all frames. */
static void announce_and_serve(collector *one)
{
    sj_error error = {0};
    append_frames(one, 0);
    assert_int_equal(sj_spool_append(one->spool, frame_maker_module(&one->maker), &error), SJ_OK);
    assert_int_equal(sj_spool_append(one->spool, frame_maker_thread(&one->maker), &error), SJ_OK);
    start_uplink(one, 1);
    serve(one);
}

static void expect_and_accept(collector *one, unsigned type)
{
    nng_msg *message;
    expect_question(one, type, &message);
    accept(one, message, 1);
}

/* The collector's database was truncated, or an older copy was restored. */
static void sessions_that_the_collector_lost_are_announced_again(void **state)
{
    collector *one = *state;
    nng_msg *message;
    sj_error error = {0};
    Sojourn__Ack unknown = SOJOURN__ACK__INIT;
    unknown.status = SJ_ENOTFOUND;
    unknown.message = (char *)(uintptr_t) "not announced";
    unknown.window = 1;
    announce_and_serve(one);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(
            sj_spool_append(one->spool, frame_maker_block(&one->maker, 100, 0), &error), SJ_OK);
    }
    sj_uplink_wake(one->uplink);
    expect_question(one, SJ_FRAME_BLOCK, &message);
    reply(one, message, unknown, SJ_FRAME_MAJOR);
    expect_and_accept(one, SJ_FRAME_SESSION);
    expect_and_accept(one, SJ_FRAME_MODULE);
    expect_and_accept(one, SJ_FRAME_THREAD);
    expect_and_accept(one, SJ_FRAME_BLOCK);
    /* refused again, although everything was announced */
    expect_question(one, SJ_FRAME_BLOCK, &message);
    reply(one, message, unknown, SJ_FRAME_MAJOR);
    expect_and_accept(one, SJ_FRAME_BLOCK);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_OK);
    sj_uplink_status status;
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.announced_frames, 3);
    assert_int_equal(status.rejected_frames, 0);
}

static void an_announcement_that_a_full_disk_refuses_is_sent_until_it_is_taken(void **state)
{
    collector *one = *state;
    nng_msg *message;
    sj_error error = {0};
    Sojourn__Ack refused = SOJOURN__ACK__INIT;
    refused.status = SJ_ENOTFOUND;
    refused.message = (char *)(uintptr_t) "refused";
    refused.window = 1;
    announce_and_serve(one);
    assert_int_equal(sj_spool_append(one->spool, frame_maker_block(&one->maker, 100, 0), &error),
                     SJ_OK);
    sj_uplink_wake(one->uplink);
    expect_question(one, SJ_FRAME_BLOCK, &message);
    reply(one, message, refused, SJ_FRAME_MAJOR);
    expect_and_accept(one, SJ_FRAME_SESSION);
    expect_question(one, SJ_FRAME_MODULE, &message);
    refused.status = SJ_EFULL;
    reply(one, message, refused, SJ_FRAME_MAJOR);
    /* The announcements resume where they were interrupted. */
    expect_question(one, SJ_FRAME_MODULE, &message);
    nng_msg_clear(message);
    assert_int_equal(nng_sendmsg(one->socket, message, 0), 0); /* this reply is unreadable */
    expect_and_accept(one, SJ_FRAME_MODULE);
    expect_and_accept(one, SJ_FRAME_THREAD);
    expect_and_accept(one, SJ_FRAME_BLOCK);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_OK);
}

static void append_unknown_block(collector *one)
{
    nng_msg *message;
    sj_error error = {0};
    Sojourn__Ack unknown = SOJOURN__ACK__INIT;
    unknown.status = SJ_ENOTFOUND;
    unknown.message = (char *)(uintptr_t) "not announced";
    unknown.window = 1;
    assert_int_equal(sj_spool_append(one->spool, frame_maker_block(&one->maker, 100, 0), &error),
                     SJ_OK);
    sj_uplink_wake(one->uplink);
    expect_question(one, SJ_FRAME_BLOCK, &message);
    reply(one, message, unknown, SJ_FRAME_MAJOR);
}

static void an_announcement_that_a_collector_forbids_waits_for_another_one(void **state)
{
    collector *one = *state;
    nng_msg *message;
    sj_uplink_status status;
    Sojourn__Ack refused = SOJOURN__ACK__INIT;
    refused.window = 1;
    announce_and_serve(one);
    append_unknown_block(one);
    expect_and_accept(one, SJ_FRAME_SESSION);
    expect_question(one, SJ_FRAME_MODULE, &message);
    refused.status = SJ_EVERSION; /* The collector cannot read this frame and does without it. */
    refused.message = (char *)(uintptr_t) "too new";
    reply(one, message, refused, SJ_FRAME_MAJOR);
    expect_question(one, SJ_FRAME_THREAD, &message);
    refused.status = SJ_EPERM;
    refused.message = (char *)(uintptr_t) "the token was withdrawn";
    reply(one, message, refused, SJ_FRAME_MAJOR);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_EPERM);
    sj_uplink_get_status(one->uplink, &status);
    assert_int_equal(status.state, SJ_UPLINK_REFUSED);
    assert_string_equal(status.message, "the token was withdrawn");
    nng_close(one->socket); /* Another collector replaces it. */
    open_listener(one);
    expect_and_accept(one, SJ_FRAME_HELLO);
    expect_and_accept(one, SJ_FRAME_THREAD);
    expect_and_accept(one, SJ_FRAME_BLOCK);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_OK);
    assert_int_equal(one->seen[SJ_FRAME_MODULE], 2);
}

/* The file of announcements cannot be opened for a while. */
static void announcements_that_cannot_be_read_now_are_sent_later(void **state)
{
    collector *one = *state;
    sj_error error = {0};
    sj_uplink_status status = {0};
    char kept[96];
    char away[96];
    snprintf(kept, sizeof(kept), "%s/announced", one->spool_path);
    snprintf(away, sizeof(away), "%s/away", one->spool_path);
    sj_spool_close(one->spool);
    const sj_spool_options small = {
        .directory = one->spool_path, .reserve_bytes = 1, .segment_bytes = 64};
    assert_int_equal(sj_spool_open(&small, &one->spool, &error), SJ_OK);
    announce_and_serve(one);
    assert_int_equal(rename(kept, away), 0);
    assert_int_equal(symlink("announced", kept), 0);
    append_unknown_block(one);
    for (int ms = 0; ms < PATIENCE_MS && strcmp(status.message, "cannot read the spool") != 0;
         ++ms) {
        usleep(1000);
        sj_uplink_get_status(one->uplink, &status);
    }
    assert_string_equal(status.message, "cannot read the spool");
    assert_int_equal(rename(away, kept), 0);
    expect_and_accept(one, SJ_FRAME_SESSION);
    expect_and_accept(one, SJ_FRAME_MODULE);
    expect_and_accept(one, SJ_FRAME_THREAD);
    expect_and_accept(one, SJ_FRAME_BLOCK);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_OK);
}

/* The collector stores a block whose thread is unknown. So it would never ask for the thread
 * later. */
static void a_collector_that_was_started_anew_gets_brief_announcements(void **state)
{
    collector *one = *state;
    nng_msg *message;
    sj_error error = {0};
    Sojourn__Ack ack = SOJOURN__ACK__INIT;
    ack.window = 1;
    announce_and_serve(one);
    for (uint64_t incarnation = 1; incarnation < 3; ++incarnation) {
        assert_int_equal(
            sj_spool_append(one->spool, frame_maker_block(&one->maker, 100, 0), &error), SJ_OK);
        sj_uplink_wake(one->uplink);
        expect_question(one, SJ_FRAME_BLOCK, &message);
        ack.incarnation = incarnation;
        reply(one, message, ack, SJ_FRAME_MAJOR);
        for (int i = 0; i < 2; ++i) { /* the second reply comes from the same collector */
            expect_question(one, i == 0 ? SJ_FRAME_SESSION : SJ_FRAME_THREAD, &message);
            reply(one, message, ack, SJ_FRAME_MAJOR);
        }
    }
    assert_int_equal(sj_spool_append(one->spool, frame_maker_block(&one->maker, 100, 0), &error),
                     SJ_OK);
    sj_uplink_wake(one->uplink);
    expect_and_accept(one, SJ_FRAME_BLOCK);
    assert_int_equal(sj_uplink_drain(one->uplink, PATIENCE_MS), SJ_OK);
    assert_int_equal(one->seen[SJ_FRAME_MODULE], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_under_way_stay_within_the_collectors_limit, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(frames_under_way_stay_within_the_devices_limit, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(only_hello_is_sent_before_the_uplink_is_released, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_credit_one_frame_at_a_time_asks_for_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_collector_without_clock_replies_gets_no_clock_frame,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_collector_that_knows_no_clock_frame_gets_everything_else,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_collector_of_another_major_version_is_reported_and_nothing_is_lost, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(a_collector_too_old_for_a_block_gets_it_once_it_is_updated,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refused_frame_that_cannot_be_noted_comes_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            each_connection_begins_with_hello_and_goes_on_where_it_broke, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sessions_that_the_collector_lost_are_announced_again,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_announcement_that_a_full_disk_refuses_is_sent_until_it_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_announcement_that_a_collector_forbids_waits_for_another_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(announcements_that_cannot_be_read_now_are_sent_later,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_collector_that_was_started_anew_gets_brief_announcements,
                                        set_up, tear_down),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nng_fini();
    return failed;
}
