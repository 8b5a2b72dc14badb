/* The uplink: sends a spool to a collector over a channel, a bounded window at a time, and marks as
 * acknowledged what the collector has committed. One thread of its own, or none. */
#ifndef SJ_AGENT_UPLINK_UPLINK_H
#define SJ_AGENT_UPLINK_UPLINK_H

#include "agent/uplink/channel.h"
#include "agent/uplink/spool.h"

typedef struct sj_uplink sj_uplink;

typedef struct sj_uplink_options {
    const sj_channel_kind *channel;
    const char *url;    /* inproc://, ipc://, tcp://, tls+tcp://: what the channel knows */
    sj_slice hello;     /* whole HELLO frame; copied */
    uint32_t window;    /* at most; the collector's ACK may lower it; 0: 8 */
    uint32_t resend_ms; /* 0: 10 s */
    bool waits;         /* sends nothing of the spool before sj_uplink_release */
    const char
        *certificate; /* of the collector (PEM); for tls+tcp:// only; borrowed for the call */
    bool threadless;  /* the owner makes the steps; all calls come from its thread */
} sj_uplink_options;

typedef enum sj_uplink_state {
    SJ_UPLINK_CONNECTING = 0,
    SJ_UPLINK_SENDING = 1,
    SJ_UPLINK_WAITING = 2, /* the collector gives no credit */
    SJ_UPLINK_REFUSED = 3  /* version or token; see the message */
} sj_uplink_state;

typedef struct sj_uplink_status {
    sj_uplink_state state;
    uint64_t acknowledged_frames;
    uint64_t resent_frames;
    uint64_t announced_frames; /* that were acknowledged before and sent once more */
    uint64_t rejected_frames; /* the collector said that they are corrupt: kept aside, not resent */
    char message[256];        /* last thing the collector or the network said */
} sj_uplink_status;

SJ_MUST_CHECK sj_status sj_uplink_start(sj_spool *spool, const sj_uplink_options *options,
                                        sj_uplink **uplink, sj_error *error);
void sj_uplink_get_status(sj_uplink *uplink, sj_uplink_status *status);

/* sj_uplink_release lets an uplink that waits send what is in the spool. Any thread. */
void sj_uplink_release(sj_uplink *uplink);

/* sj_uplink_wake wakes the sender thread: frames were appended. Any thread; takes no lock of the
 * sender's. */
void sj_uplink_wake(sj_uplink *uplink);

/* sj_uplink_step takes in what has come and sends what may be sent. Without a thread only; does not
 * block. */
void sj_uplink_step(sj_uplink *uplink);

/* sj_uplink_drain waits until everything in the spool is acknowledged. SJ_ETIMEDOUT after
 * `timeout_ms` (-1: forever), SJ_EPERM when refused. */
SJ_MUST_CHECK sj_status sj_uplink_drain(sj_uplink *uplink, int64_t timeout_ms);

/* sj_uplink_stop closes the channel; what is not acknowledged stays in the spool. */
void sj_uplink_stop(sj_uplink *uplink);

#endif
