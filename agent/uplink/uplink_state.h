/* Internal header of the uplink: its state. The files of the uplink share it: uplink_pause.c,
 * uplink_recall.c, uplink_answers.c, uplink_sending.c and uplink.c. The caller of a function below
 * holds the lock. */
#ifndef SJ_AGENT_UPLINK_UPLINK_STATE_H
#define SJ_AGENT_UPLINK_UPLINK_STATE_H

#include "agent/uplink/channel.h"
#include "agent/uplink/clock_offset.h"
#include "agent/uplink/moment.h"
#include "agent/uplink/uplink.h"
#include "proto/wire/ack_status.h"
#include "proto/wire/sojourn.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { SJ_UPLINK_MAX_WINDOW = SJ_CHANNEL_SLOTS };

#define SJ_UPLINK_NO_SPACE                                                                         \
    "frames were refused, and the disk of the spool has no space to count them"

typedef enum sj_frame_rank {
    SJ_RANK_HELLO,
    SJ_RANK_SESSION,
    SJ_RANK_METADATA,
    SJ_RANK_BLOCK,
    SJ_RANK_END,
    SJ_RANK_CLOCK, /* Clock offsets, which are not in the spool. */
    SJ_RANKS
} sj_frame_rank;

/* A frame in flight, or an idle slot. */
typedef struct sj_uplink_slot {
    bool is_busy;
    sj_frame_rank rank;
    uint64_t position;  /* Spool position, for frames of the spool only. */
    int64_t sent_ns;    /* CLOCK_BOOTTIME. */
    bool is_recalled;   /* True for an announcement that is sent again. */
    uint64_t recall_at; /* Position of a recalled frame in the walk. */
} sj_uplink_slot;

struct sj_uplink {
    sj_spool *spool;
    uint8_t *hello;
    size_t hello_bytes;
    uint32_t window_max;
    const sj_channel_kind *kind;
    sj_channel *channel;
    bool threadless;
    pthread_t thread;
    bool thread_started;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* Signalled after each step. */
    bool stopping;
    bool waits;           /* True until sj_uplink_release: no frames of the spool are sent. */
    bool hello_wanted;    /* HELLO must be sent before other frames. */
    atomic_bool notified; /* A step was requested. Used without the lock. */
    bool idle;            /* At the latest step, the spool was empty and nothing was in flight. */
    bool rewind;
    uint32_t window;
    unsigned pause_ms;         /* Doubles with each pause. 0: none since a frame was accepted. */
    struct timespec resume;    /* Monotonic end of the pause. */
    uint64_t unknown_position; /* Latest frame that referred to something unknown. */
    unsigned unknown_tries;
    /* True if the latest frame with an unknown reference was rejected for good, and no frame was
     * accepted since. */
    bool unknown_is_final;
    sj_spool_recall recall; /* The walk over announcements that is requested or running. */
    bool recall_wanted;     /* The walk starts or resumes once nothing is in flight. */
    bool is_recalling;
    unsigned recalled_in_flight;
    bool was_recalled;    /* A whole walk was requested for this incarnation of the collector. */
    uint64_t recalled_at; /* Value of status.acknowledged_frames at that request. */
    uint64_t incarnation; /* The collector's incarnation. 0: unknown. */
    bool held_is_recalled;
    uint64_t held_recall_at;
    bool held_back; /* `held` is the next frame to send. */
    sj_slice held;
    uint64_t held_position;
    unsigned in_flight[SJ_RANKS];
    sj_uplink_status status;
    Sojourn__Hello *about; /* The unpacked HELLO. It identifies the device. */
    sj_clock_offsets clocks;
    sj_clock_offset clock; /* The next offset to report. */
    bool clock_wanted;
    sj_uplink_slot slots[SJ_UPLINK_MAX_WINDOW];
};

/* Returns the number of frames without an answer. */
unsigned sj_uplink_count_in_flight(const sj_uplink *uplink);

/* Sets the message of the status. */
void sj_uplink_set_message(sj_uplink *uplink, const char *text);

/* sj_uplink_begin_pause begins a pause, which is twice as long as the one before. After a pause,
 * sj_uplink_pause_once does so too, but not while a pause is running. Frames that were in flight
 * together usually fail for the same reason, so they cause one pause. */
void sj_uplink_begin_pause(sj_uplink *uplink);
void sj_uplink_pause_once(sj_uplink *uplink);

/* Ends the pause. The next frame is sent alone. */
void sj_uplink_probe_at_once(sj_uplink *uplink);

/* Requests a whole walk, unless a walk is requested already. Returns false if the latest whole walk
 * was recent: then the frame refers to something that was never announced. */
bool sj_uplink_want_whole_recall(sj_uplink *uplink);

/* Resumes the walk at the announcement in `done`, once nothing is in flight. */
void sj_uplink_resume_recall(sj_uplink *uplink, const sj_uplink_slot *done);

/* Requests a brief walk if the collector is a new or restarted one. */
void sj_uplink_note_incarnation(sj_uplink *uplink, const Sojourn__Ack *ack);

/* Reads the next announcement of the walk into `held`. Returns SJ_EAGAIN at the end of the walk. */
SJ_MUST_CHECK sj_status sj_uplink_hold_recalled(sj_uplink *uplink);

/* Handles the answers and other events of the channel. */
void sj_uplink_handle_events(sj_uplink *uplink);

/* Sends what may be sent now: HELLO, a clock offset, and frames of the spool. */
void sj_uplink_send(sj_uplink *uplink);

#endif
