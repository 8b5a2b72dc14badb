/* A channel sends questions to a collector and receives the replies (REQ and REP of the SP
 * protocols). nng_channel.h supports TLS and starts threads. sp_channel.h starts no threads, for
 * programs in which the agent must not start any. chosen_channel.h uses one of these two kinds.
 *
 * Each question uses a slot, and a slot has one question at a time. One thread asks, reads events
 * and waits. Any thread may call `wake`. */
#ifndef SJ_AGENT_UPLINK_CHANNEL_H
#define SJ_AGENT_UPLINK_CHANNEL_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

#include <time.h>

enum { SJ_CHANNEL_SLOTS = 64, SJ_CHANNEL_REPLY_BYTES = 64 * 1024 };

typedef struct sj_channel sj_channel;

typedef enum sj_channel_event_type {
    SJ_CHANNEL_CONNECTED,
    SJ_CHANNEL_DISCONNECTED,
    SJ_CHANNEL_REPLIED,
    SJ_CHANNEL_FAILED /* The question of the slot failed. The caller must send it again. */
} sj_channel_event_type;

typedef struct sj_channel_event {
    sj_channel_event_type type;
    uint32_t slot;       /* Set for REPLIED and FAILED. */
    int64_t received_ns; /* REPLIED: CLOCK_BOOTTIME. */
    sj_slice reply;      /* REPLIED: borrowed until the channel's next call. */
    const char *why;     /* FAILED: static, or owned by the channel. */
} sj_channel_event;

typedef struct sj_channel_options {
    const char *url; /* Borrowed for the call. */
    /* The collector's certificate (PEM), only for tls+tcp://. Borrowed for the call. */
    const char *certificate;
    uint32_t slots;      /* At most SJ_CHANNEL_SLOTS. */
    uint32_t resend_ms;  /* A question without a reply is repeated after this time. */
    const void *context; /* Options of the channel's kind. NULL: none. Borrowed for the call. */
} sj_channel_options;

typedef struct sj_channel_kind {
    /* Starts to connect. It reconnects forever, after jittered pauses of 0.1 s to 5 s. Returns
     * SJ_EINVAL if the address is invalid, SJ_EIO or SJ_ENOMEM. */
    sj_status (*open)(const sj_channel_options *options, sj_channel **channel, sj_error *error);
    /* Sends a copy of `question` in an idle slot. An event reports the outcome. */
    sj_status (*ask)(sj_channel *channel, uint32_t slot, sj_slice question);
    /* Returns the next event, or false if there is none now. Does not block. */
    bool (*next_event)(sj_channel *channel, sj_channel_event *event);
    /* Waits until there may be an event, until `wake` is called, or until `until` (CLOCK_MONOTONIC;
     * NULL: without limit). */
    void (*wait)(sj_channel *channel, const struct timespec *until);
    void (*wake)(sj_channel *channel);
    void (*close)(sj_channel *channel);
} sj_channel_kind;

#endif
