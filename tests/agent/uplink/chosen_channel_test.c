/* A session goes to the first of several collectors that replies, and to no other collector
 * afterwards. The test simulates the connections. */
#include "agent/uplink/chosen_channel.h"
#include "agent/uplink/spool_collector.h"
#include "proto/wire/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { QUESTION_BYTES = 64 };

/* The simulated connections of the channel, and their next event. */
static struct {
    unsigned opened, closed;
    char url[32]; /* Address of the newest connection. */
    unsigned asked;
    uint8_t question[QUESTION_BYTES]; /* The newest question. */
    bool is_kept_first;               /* The choice was on disk before the question was sent. */
    sj_channel_event event;
    bool has_event;
} played;

static char directory[64];

static sj_status play_open(const sj_channel_options *options, sj_channel **channel, sj_error *error)
{
    (void)error;
    played.opened++;
    snprintf(played.url, sizeof(played.url), "%s", options->url);
    *channel = malloc(1);
    return SJ_OK;
}

static sj_status play_ask(sj_channel *channel, uint32_t slot, sj_slice question)
{
    char url[SJ_SPOOL_COLLECTOR_BYTES];
    (void)channel, (void)slot;
    played.asked++;
    memcpy(played.question, question.data, question.size);
    played.is_kept_first = sj_spool_collector_read(directory, url) && strcmp(url, played.url) == 0;
    return SJ_OK;
}

static bool play_next_event(sj_channel *channel, sj_channel_event *event)
{
    const bool has_event = played.has_event;
    (void)channel;
    *event = played.event;
    played.has_event = false;
    return has_event;
}

/* Returns at once, because the test polls for events. */
static void play_wait(sj_channel *channel, const struct timespec *until)
{
    (void)channel, (void)until;
}

static void play_wake(sj_channel *channel)
{
    (void)channel;
}

static void play_close(sj_channel *channel)
{
    played.closed++;
    free(channel);
}

static const sj_channel_kind played_kind = {.open = play_open,
                                            .ask = play_ask,
                                            .next_event = play_next_event,
                                            .wait = play_wait,
                                            .wake = play_wake,
                                            .close = play_close};

static sj_slice frame_of(sj_frame_type type, const char *text, uint8_t bytes[QUESTION_BYTES])
{
    size_t size = 0;
    const sj_slice header = {.data = (const uint8_t *)text, .size = strlen(text)};
    assert_int_equal(
        sj_frame_write((uint16_t)type, header, (sj_slice){0}, bytes, QUESTION_BYTES, &size), SJ_OK);
    return (sj_slice){.data = bytes, .size = size};
}

static sj_channel *open_chosen(uint32_t away_ms)
{
    uint8_t hellos[2][QUESTION_BYTES];
    sj_channel *channel = NULL;
    sj_error error = {0};
    const sj_collector_place places[] = {
        {.url = "tcp://first", .hello = frame_of(SJ_FRAME_HELLO, "for the first", hellos[0])},
        {.url = "tcp://second", .hello = frame_of(SJ_FRAME_HELLO, "for the second", hellos[1])}};
    const sj_collector_choice choice = {.kind = &played_kind,
                                        .places = places,
                                        .count = 2,
                                        .directory = directory,
                                        .away_ms = away_ms};
    const sj_channel_options options = {.slots = 4, .resend_ms = 1000, .context = &choice};
    memset(&played, 0, sizeof(played));
    assert_int_equal(sj_channel_chosen.open(&options, &channel, &error), SJ_OK);
    return channel;
}

static void ask(sj_channel *channel, uint32_t slot, sj_frame_type type)
{
    uint8_t bytes[QUESTION_BYTES];
    assert_int_equal(sj_channel_chosen.ask(channel, slot, frame_of(type, "any", bytes)), SJ_OK);
}

static bool was_asked(const char *text)
{
    return memmem(played.question, sizeof(played.question), text, strlen(text)) != NULL;
}

/* Polls the channel until it has an event. */
static sj_channel_event next_event(sj_channel *channel)
{
    sj_channel_event event;
    while (!sj_channel_chosen.next_event(channel, &event)) {
        sj_channel_chosen.wait(channel, NULL);
    }
    return event;
}

static void play(sj_channel *channel, sj_channel_event event)
{
    played.event = event;
    played.has_event = true;
    assert_int_equal(next_event(channel).type, event.type);
}

/* Lets more time pass than a collector may be silent, and checks that there is no event. */
static void let_pass(sj_channel *channel)
{
    sj_channel_event event;
    const struct timespec pause = {.tv_nsec = 5 * 1000000};
    nanosleep(&pause, NULL);
    assert_false(sj_channel_chosen.next_event(channel, &event));
}

static void a_silent_collector_is_replaced_by_the_next(void **state)
{
    sj_channel *channel = open_chosen(1);
    (void)state;
    assert_string_equal(played.url, "tcp://first");
    ask(channel, 2, SJ_FRAME_HELLO);
    assert_true(was_asked("for the first"));
    assert_int_equal(next_event(channel).type, SJ_CHANNEL_DISCONNECTED);
    assert_string_equal(played.url, "tcp://second");
    assert_int_equal(played.closed, 1);
    const sj_channel_event failed = next_event(channel);
    assert_int_equal(failed.type, SJ_CHANNEL_FAILED);
    assert_int_equal(failed.slot, 2);
    ask(channel, 2, SJ_FRAME_HELLO);
    assert_true(was_asked("for the second"));
    play(channel, (sj_channel_event){.type = SJ_CHANNEL_REPLIED, .slot = 2});
    let_pass(channel); /* The collector has replied. */
    assert_int_equal(played.opened, 2);
    sj_channel_chosen.close(channel);
    assert_int_equal(played.closed, 2);
}

static void the_first_is_tried_again_after_the_last(void **state)
{
    sj_channel *channel = open_chosen(1);
    (void)state;
    while (played.opened < 3) {
        (void)next_event(channel);
    }
    assert_string_equal(played.url, "tcp://first");
    sj_channel_chosen.close(channel);
}

static void a_session_stays_with_the_collector_of_its_first_frame(void **state)
{
    sj_channel *channel = open_chosen(1);
    (void)state;
    (void)next_event(channel);
    ask(channel, 0, SJ_FRAME_HELLO);
    assert_false(played.is_kept_first);
    play(channel, (sj_channel_event){.type = SJ_CHANNEL_REPLIED, .slot = 0});
    ask(channel, 0, SJ_FRAME_DEVICE_CLOCK);
    assert_false(played.is_kept_first);
    ask(channel, 1, SJ_FRAME_SESSION);
    assert_true(played.is_kept_first);
    play(channel, (sj_channel_event){.type = SJ_CHANNEL_DISCONNECTED});
    let_pass(channel);
    assert_string_equal(played.url, "tcp://second");
    sj_channel_chosen.close(channel);
    channel = open_chosen(1); /* As after a restart of the device. */
    assert_string_equal(played.url, "tcp://second");
    let_pass(channel);
    assert_int_equal(played.opened, 1);
    sj_channel_chosen.close(channel);
    sj_spool_collector_remove(directory);
    channel = open_chosen(1000000);
    assert_string_equal(played.url, "tcp://first");
    sj_channel_chosen.close(channel);
}

static void no_frame_is_sent_before_the_choice_is_on_disk(void **state)
{
    uint8_t bytes[QUESTION_BYTES];
    sj_channel *channel = open_chosen(1000000);
    (void)state;
    assert_int_equal(rmdir(directory), 0);
    const sj_slice frame = frame_of(SJ_FRAME_SESSION, "any", bytes);
    assert_int_equal(sj_channel_chosen.ask(channel, 0, frame), SJ_EIO);
    assert_int_equal(played.asked, 0);
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(sj_channel_chosen.ask(channel, 0, frame), SJ_OK);
    assert_true(played.is_kept_first);
    sj_channel_chosen.close(channel);
}

static int make_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "chosen_channel_test.%d", (int)getpid());
    return mkdir(directory, 0700);
}

static int remove_directory(void **state)
{
    (void)state;
    sj_spool_collector_remove(directory);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_silent_collector_is_replaced_by_the_next, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(the_first_is_tried_again_after_the_last, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(a_session_stays_with_the_collector_of_its_first_frame,
                                        make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(no_frame_is_sent_before_the_choice_is_on_disk,
                                        make_directory, remove_directory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
