/* What the files of a recording share. */
#ifndef SJ_AGENT_CONTROL_RECORDING_PARTS_H
#define SJ_AGENT_CONTROL_RECORDING_PARTS_H

#include "agent/control/clock.h"
#include "agent/control/device.h"
#include "agent/control/directories.h"
#include "agent/control/journal.h"
#include "agent/control/launch.h"
#include "agent/control/link_server.h"
#include "agent/control/recording.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

/* The policies of a recording: the present one, and the one that somebody asks for. */
typedef struct sj_policy_changes {
    int wake;              /* eventfd: a request has come */
    bool is_unsure;        /* the next one goes over all hooks, also when it wants the same */
    pthread_mutex_t mutex; /* guards everything below */
    const sj_policy *policy;
    sj_policy *owned;  /* `policy`, when it came later than the recording began; else NULL */
    uint64_t number;   /* of `policy` in the session */
    uint64_t ticks;    /* since when it is obeyed */
    char *not_applied; /* JSON list of what of it could not be; NULL: none */
    char *requested;   /* document; NULL: none */
    size_t requested_bytes;
    int answer; /* socket of who asks */
} sj_policy_changes;

struct sj_recording {
    sj_recording_options options;
    sj_session_id session;
    char session_text[SJ_SESSION_TEXT_BYTES];
    char runtime_directory[PATH_MAX];
    char spool_directory[PATH_MAX];
    char destination_path[PATH_MAX]; /* beside the spool; locked while this recording lives */
    char cache_directory[PATH_MAX];
    int destination;
    sj_journal journal;
    int signals; /* signalfd */
    sj_launch launch;
    char agent_path[PATH_MAX];
    bool is_attached;
    sj_device device;
    sj_clock_pair start_clock;
    sj_clock_rate rate;
    double ns_per_tick;
    sj_spool *spool;
    bool is_spool_closed; /* delivered and gone, or kept for others to deliver */
    bool is_delivering;   /* the program has ended or was left */
    sj_uplink *uplink;
    sj_emitter *emitter;
    sj_roster *roster;
    sj_class_table *classes;
    sj_drain *drain;
    sj_link_server *link;
    sj_rules *rules;           /* NULL: no policy */
    sj_control_store *control; /* likewise */
    sj_policy_changes changes;
    _Atomic uint64_t main_process; /* number of what the launched pid runs at present */
    int interrupts;
    sj_recording_summary summary;
};

/* What a recording is made with. */
typedef struct sj_rooms_means {
    const sj_channel_kind *channel;
    const sj_recording_link *link; /* borrowed for the call */
    uint32_t resend_ms;            /* 0: the uplink's default */
    bool threadless; /* uplink, drain and link are given their steps by the caller's thread */
    /* see link_server.h; the context is the recording */
    sj_status (*joined)(void *context, const sj_link_process *process);
    sj_status (*policy)(void *context, sj_slice document, int fd);
} sj_rooms_means;

/* So often a recording tells what its clock and the time of day are. */
#define SJ_CLOCK_PAIR_NS UINT64_C(1000000000)

/* sj_rooms_new makes a recording of nothing yet; sj_rooms_free gives it back with its files, but
 * for a spool that was closed with sj_rooms_close_spool. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_rooms_new(const sj_recording_options *options, sj_recording **recording,
                                     sj_error *error);
void sj_rooms_free(sj_recording *recording);

/* sj_rooms_place gives the recording a session id, a device and directories; sj_rooms_keep makes
 * the files that let others finish the session if this process is killed; sj_rooms_start starts
 * everything and tells the collector that the session begins, which it hears when the uplink is
 * released. */
SJ_MUST_CHECK sj_status sj_rooms_place(sj_recording *recording, sj_error *error);
SJ_MUST_CHECK sj_status sj_rooms_keep(sj_recording *recording, sj_error *error);
SJ_MUST_CHECK sj_status sj_rooms_start(sj_recording *recording, const sj_rooms_means *means,
                                       sj_error *error);

/* sj_rooms_tell_clock sends a pair of clock and time of day. */
void sj_rooms_tell_clock(sj_recording *recording);

/* sj_rooms_sum fills the summary after the drain has finished; `how` it ended, a static text.
 * sj_rooms_end_session tells the collector. sj_rooms_close_spool stops the uplink and removes the
 * spool when everything was delivered. */
void sj_rooms_sum(sj_recording *recording, const char *how);
SJ_MUST_CHECK sj_status sj_rooms_end_session(sj_recording *recording);
void sj_rooms_close_spool(sj_recording *recording);

/* sj_policy_changes_init and _deinit; `policy` NULL: none, and there will be none. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_policy_changes_init(sj_policy_changes *changes, const sj_policy *policy,
                                               sj_error *error);
void sj_policy_changes_deinit(sj_policy_changes *changes);

/* sj_policy_change_request takes a document that is to be obeyed from now on; `fd`, of which it
 * keeps a copy, is told when that is done. SJ_EAGAIN: another request is not yet done,
 * SJ_EUNSUPPORTED: this recording has no policy, SJ_ENOMEM. Any thread. */
SJ_MUST_CHECK sj_status sj_policy_change_request(sj_recording *recording, sj_slice document,
                                                 int fd);

/* sj_policy_change_settle tells the collector what of the present policy was not applied, with the
 * names that match nothing so far; the latter are written to `unmatched` as a JSON list, "" when
 * there are none. The recording's thread. */
void sj_policy_change_settle(sj_recording *recording, char *unmatched, size_t capacity);

/* sj_policy_change_take does what was requested, if anything. The recording's thread. Blocking. */
void sj_policy_change_take(sj_recording *recording);

#endif
