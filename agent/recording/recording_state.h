/* The state of a recording. Only the files of this room that build and run a recording read it;
 * others use pipeline.h. */
#ifndef SJ_AGENT_RECORDING_RECORDING_STATE_H
#define SJ_AGENT_RECORDING_RECORDING_STATE_H

#include "agent/host/clock.h"
#include "agent/host/device.h"
#include "agent/host/directories.h"
#include "agent/launch/launch.h"
#include "agent/recording/pipeline.h"
#include "agent/session/journal.h"
#include "agent/zombies/zombies.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

/* The policies of a recording: the one in force, and a requested one. */
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
    int answer;                        /* socket of who asks */
    sj_value_rules_past values_before; /* what is asked for, for when it is refused */
} sj_policy_changes;

struct sj_recording {
    sj_recording_options options;
    bool may_count_calls; /* agents were started for it */
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
    bool is_spool_closed;   /* delivered and gone, or kept for others to deliver */
    bool has_program_ended; /* the launched process was reaped: its pid may be another's */
    bool is_delivering;     /* the program has ended or was left */
    atomic_bool is_full;    /* the session has its largest size, and its processes are left */
    sj_uplink *uplink;
    sj_function_log *function_log; /* NULL: none */
    sj_frame_writer *writer;
    sj_plan_ahead *ahead; /* NULL: none */
    sj_registry *registry;
    sj_class_table *classes;
    sj_drain *drain;
    sj_link_server *link;
    sj_function_rules *rules; /* NULL: no policy */
    sj_value_rules *values;   /* of all policies so far, in their places; NULL: there was none */
    sj_changes_table *_Atomic table; /* NULL: no rule changes calls */
    sj_metadata_store *control;      /* likewise */
    sj_zombies *zombies;             /* NULL: freed memory is not watched */
    sj_policy_changes changes;
    _Atomic uint64_t main_process; /* number of what the launched pid runs at present */
    int interrupts;
    sj_recording_summary summary;
};

/* sj_changes_start makes the table of rules that change calls if this machine allows those of
 * `wanted` that do. Places in it are those of `places`, which the table shares. SJ_EPERM: it does
 * not, the message says why; SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_changes_start(sj_recording *recording, const sj_value_rules *wanted,
                                         sj_value_rules *places, double ns_per_tick,
                                         sj_error *error);

/* sj_policy_changes_init and _deinit; `policy` NULL: none, and there will be none. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_policy_changes_init(sj_policy_changes *changes, const sj_policy *policy,
                                               sj_error *error);
void sj_policy_changes_deinit(sj_policy_changes *changes);

/* sj_policy_change_request takes a document that is to be obeyed from now on; `fd`, of which it
 * keeps a copy, is answered when that is done. SJ_EAGAIN: another request is not yet done,
 * SJ_EUNSUPPORTED: this recording has no policy, SJ_ENOMEM. Any thread. */
SJ_MUST_CHECK sj_status sj_policy_change_request(sj_recording *recording, sj_slice document,
                                                 int fd);

/* sj_policy_change_settle reports to the collector what of the present policy was not applied, with
 * the rules that cannot change calls and the names that match nothing so far; the latter are
 * written to `unmatched` as a JSON list, "" when there are none. The recording's thread. */
void sj_policy_change_settle(sj_recording *recording, char *unmatched, size_t capacity);

/* sj_policy_change_take does what was requested, if anything. The recording's thread. Blocking. */
void sj_policy_change_take(sj_recording *recording);

#endif
