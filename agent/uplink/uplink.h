/* The uplink sends a spool to a collector over a channel, in a bounded window. It marks frames as
 * acknowledged once the collector has committed them. It has one thread of its own, or none. */
#ifndef SJ_AGENT_UPLINK_UPLINK_H
#define SJ_AGENT_UPLINK_UPLINK_H

#include "agent/uplink/channel.h"
#include "agent/uplink/spool.h"

typedef struct sj_uplink sj_uplink;

typedef struct sj_uplink_options {
    const sj_channel_kind *channel;
    const void *channel_context; /* Further options of the channel's kind. Borrowed for the call. */
    const char *url; /* Any address of the channel: inproc://, ipc://, tcp://, tls+tcp://. */
    sj_slice hello;  /* A whole HELLO frame; copied. */
    /* Maximum number of frames in flight; the collector's ACK may lower it. 0: 8. */
    uint32_t window;
    uint32_t resend_ms; /* 0: 10 s. */
    bool waits;         /* Sends no frames of the spool before sj_uplink_release. */
    /* The collector's certificate (PEM), only for tls+tcp://. Borrowed for the call. */
    const char *certificate;
    /* The uplink has no thread: the owner calls sj_uplink_step, and makes all calls on one
     * thread. */
    bool threadless;
} sj_uplink_options;

typedef enum sj_uplink_state {
    SJ_UPLINK_CONNECTING = 0,
    SJ_UPLINK_SENDING = 1,
    SJ_UPLINK_WAITING = 2, /* The collector currently accepts no further frames. */
    SJ_UPLINK_REFUSED = 3  /* The collector refuses the version or the token; see `message`. */
} sj_uplink_state;

typedef struct sj_uplink_status {
    sj_uplink_state state;
    uint64_t acknowledged_frames;
    uint64_t resent_frames;
    uint64_t announced_frames; /* Acknowledged announcements that were sent again. */
    /* Frames that the collector can never store: set aside, not resent. */
    uint64_t rejected_frames;
    bool is_over_quota; /* The collector's latest reply: the device's quota is used up. */
    char message[256];  /* Latest message of the collector or the network. */
} sj_uplink_status;

/* Opens the channel and, unless the uplink is threadless, starts the thread. The spool is borrowed.
 * Returns SJ_EINVAL without an address, a channel or a HELLO frame, SJ_ENOMEM, SJ_EIO if the thread
 * cannot start, or an error of the channel. */
SJ_MUST_CHECK sj_status sj_uplink_start(sj_spool *spool, const sj_uplink_options *options,
                                        sj_uplink **uplink, sj_error *error);
void sj_uplink_get_status(sj_uplink *uplink, sj_uplink_status *status);

/* Lets a waiting uplink send the frames of the spool. Thread-safe. */
void sj_uplink_release(sj_uplink *uplink);

/* Wakes the uplink's thread after frames were appended. Thread-safe. Takes no lock of the
 * uplink. */
void sj_uplink_wake(sj_uplink *uplink);

/* Handles events and sends frames. Only for uplinks without a thread. Does not block. */
void sj_uplink_step(sj_uplink *uplink);

/* Waits until everything in the spool is acknowledged. Returns SJ_ETIMEDOUT after `timeout_ms` (-1:
 * never), or SJ_EPERM if the collector refuses. */
SJ_MUST_CHECK sj_status sj_uplink_drain(sj_uplink *uplink, int64_t timeout_ms);

/* Closes the channel. Frames that are not acknowledged stay in the spool. */
void sj_uplink_stop(sj_uplink *uplink);

#endif
