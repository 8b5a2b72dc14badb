/* The state of a pipeline. Only the files of this component that build and run a recording use it.
 * Other components use pipeline.h. */
#ifndef SJ_AGENT_RECORDING_PIPELINE_STATE_H
#define SJ_AGENT_RECORDING_PIPELINE_STATE_H

#include "agent/host/clock.h"
#include "agent/host/device.h"
#include "agent/host/directories.h"
#include "agent/recording/pipeline.h"
#include "agent/session/journal.h"
#include "agent/zombies/zombies.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

/* The policies of a recording: the current one, and a requested one. */
typedef struct sj_policy_changes {
    int wake; /* eventfd: signals a request */
    /* the next request updates all hooks, even if it selects the same functions */
    bool is_unsure;
    pthread_mutex_t mutex; /* protects the members below */
    const sj_policy *policy;
    sj_policy *owned;  /* `policy` if it replaced the initial one, else NULL */
    uint64_t number;   /* number of `policy` in the session */
    uint64_t ticks;    /* when it took effect */
    char *not_applied; /* JSON list of its parts that could not be applied; NULL: none */
    char *requested;   /* requested document; NULL: none */
    size_t requested_bytes;
    int reply; /* socket of the requester */
    /* value rules before the request, restored if it is refused */
    sj_value_rules_past values_before;
} sj_policy_changes;

struct sj_pipeline {
    sj_recording_options options;
    void *owner; /* passed to `joined` */
    sj_status (*joined)(void *owner, const sj_link_process *process);
    bool may_count_calls; /* agents were started with the ability to count calls */
    sj_session_id session;
    char session_text[SJ_SESSION_TEXT_BYTES];
    char runtime_directory[PATH_MAX];
    char spool_directory[PATH_MAX];
    char destination_path[PATH_MAX]; /* file beside the spool; locked while this recording lives */
    char cache_directory[PATH_MAX];
    int destination;
    sj_journal journal;
    sj_device device;
    sj_clock_pair start_clock;
    sj_clock_rate rate;
    double ns_per_tick;
    sj_spool *spool;
    bool is_spool_closed; /* the spool was delivered and removed, or is kept for a later delivery */
    sj_uplink *uplink;
    sj_function_log *function_log; /* NULL: none */
    sj_frame_writer *writer;
    sj_plan_ahead *ahead; /* NULL: none */
    sj_registry *registry;
    sj_class_table *classes;
    sj_drain *drain;
    sj_link_server *link;
    sj_function_rules *rules; /* NULL without a policy */
    /* value rules of all policies so far; each rule keeps its index; NULL: there was no policy */
    sj_value_rules *values;
    sj_changes_table *_Atomic table; /* NULL: no rule changes calls */
    sj_metadata_store *control;      /* NULL without a policy */
    sj_zombies *zombies;             /* NULL: freed memory is not watched */
    sj_policy_changes changes;
    _Atomic uint64_t main_process; /* number of the program that the launched pid currently runs */
    sj_recording_summary summary;
};

/* Creates the table of rules that change calls, if this machine allows those rules in `wanted`. The
 * table shares `places`: a rule has the same index in both. Returns SJ_EPERM if the machine does
 * not allow them; the message says why. Also returns SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_changes_start(sj_pipeline *pipeline, const sj_value_rules *wanted,
                                         sj_value_rules *places, double ns_per_tick,
                                         sj_error *error);

/* Initialize and free the policies. If `policy` is NULL, the recording never has a policy. Returns
 * SJ_EIO. */
SJ_MUST_CHECK sj_status sj_policy_changes_init(sj_policy_changes *changes, const sj_policy *policy,
                                               sj_error *error);
void sj_policy_changes_deinit(sj_policy_changes *changes);

/* Requests the policy of a document. Duplicates the socket `fd`, and replies on it after the
 * request was carried out. Returns SJ_EAGAIN if another request is still being carried out. Returns
 * SJ_EUNSUPPORTED if this recording has no policy. Also returns SJ_ENOMEM. Any thread may call
 * this. */
SJ_MUST_CHECK sj_status sj_policy_change_request(sj_pipeline *pipeline, sj_slice document, int fd);

/* Reports to the collector which parts of the current policy were not applied. The report includes
 * the rules that cannot change calls, and the policy's patterns that match nothing so far. Writes
 * these patterns to `unmatched` as a JSON list, or "" if there are none. Called by the recording's
 * thread. */
void sj_policy_change_settle(sj_pipeline *pipeline, char *unmatched, size_t capacity);

/* Carries out the requested policy change, if there is one. Called by the recording's thread.
 * Blocks. */
void sj_policy_change_apply(sj_pipeline *pipeline);

#endif
