/* A channel carries questions to a collector and brings each its answer (REQ and REP of the
 * SP protocols). Two kinds: NNG's, with threads of its own and TLS, and sp_channel.h, which has no
 * thread and lives in programs that must not gain any.
 *
 * A question belongs to a slot; a slot has one at a time. What happened is taken as events, in one
 * thread; `wake` may be called by any. */
#ifndef SJ_AGENT_UPLINK_CHANNEL_H
#define SJ_AGENT_UPLINK_CHANNEL_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

#include <time.h>

enum { SJ_CHANNEL_SLOTS = 64, SJ_CHANNEL_ANSWER_BYTES = 64 * 1024 };

typedef struct sj_channel sj_channel;

typedef enum sj_channel_event_type {
    SJ_CHANNEL_CONNECTED,
    SJ_CHANNEL_DISCONNECTED,
    SJ_CHANNEL_ANSWERED,
    SJ_CHANNEL_FAILED /* the question has to be asked again */
} sj_channel_event_type;

typedef struct sj_channel_event {
    sj_channel_event_type type;
    uint32_t slot;       /* ANSWERED, FAILED */
    int64_t received_ns; /* ANSWERED: CLOCK_BOOTTIME */
    sj_slice answer;     /* ANSWERED; borrowed until the channel's next call */
    const char *why;     /* FAILED; static or the channel's */
} sj_channel_event;

typedef struct sj_channel_options {
    const char *url; /* borrowed for the call */
    const char
        *certificate;   /* of the collector (PEM); for tls+tcp:// only; borrowed for the call */
    uint32_t slots;     /* at most SJ_CHANNEL_SLOTS */
    uint32_t resend_ms; /* a question without an answer for so long is asked again */
} sj_channel_options;

typedef struct sj_channel_kind {
    /* open begins to connect, and connects again forever, with jittered pauses of 0.1 s to 5 s.
     * SJ_EINVAL the address, SJ_EIO, SJ_ENOMEM. */
    sj_status (*open)(const sj_channel_options *options, sj_channel **channel, sj_error *error);
    /* ask sends a copy of `question` in an idle slot; what becomes of it is reported by an event.
     */
    sj_status (*ask)(sj_channel *channel, uint32_t slot, sj_slice question);
    /* take gives the next event; false: none now. Does not block. */
    bool (*take)(sj_channel *channel, sj_channel_event *event);
    /* wait returns when there may be an event, after `wake`, or at `until` (CLOCK_MONOTONIC;
     * NULL: not before). */
    void (*wait)(sj_channel *channel, const struct timespec *until);
    void (*wake)(sj_channel *channel);
    void (*close)(sj_channel *channel);
} sj_channel_kind;

#endif
