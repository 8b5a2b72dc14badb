#include "agent/direct/no_channel.h"

#include <stdlib.h>

struct sj_channel {
    char unused;
};

static sj_status open_none(const sj_channel_options *options, sj_channel **channel, sj_error *error)
{
    (void)options;
    *channel = calloc(1, sizeof(**channel));
    return *channel != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status ask_nobody(sj_channel *channel, uint32_t slot, sj_slice question)
{
    (void)channel;
    (void)slot;
    (void)question;
    return SJ_ECLOSED;
}

static bool next_no_event(sj_channel *channel, sj_channel_event *event)
{
    (void)channel;
    (void)event;
    return false;
}

static void wait_for_nothing(sj_channel *channel, const struct timespec *until)
{
    (void)channel;
    (void)until;
}

static void wake_nobody(sj_channel *channel)
{
    (void)channel;
}

static void close_none(sj_channel *channel)
{
    free(channel);
}

const sj_channel_kind sj_channel_none = {.open = open_none,
                                         .ask = ask_nobody,
                                         .next_event = next_no_event,
                                         .wait = wait_for_nothing,
                                         .wake = wake_nobody,
                                         .close = close_none};
