/* A recording of a program from its launch, or of a running process from the attach, until the last
 * frame is acknowledged.
 *
 * It has two steps, sj_recording_prepare and sj_recording_run. The program must be forked before
 * the collector, embedded or not, starts threads. Not thread-safe. Only one recording in a
 * process. */
#ifndef SJ_AGENT_RECORDING_RECORDING_H
#define SJ_AGENT_RECORDING_RECORDING_H

#include "agent/abi/arena.h"
#include "agent/attach/attach.h"
#include "agent/attach/detach.h"
#include "agent/drain/drain.h"
#include "agent/host/device.h"
#include "agent/launch/program.h"
#include "agent/policy/policy.h"
#include "agent/policy/selection.h"
#include "agent/recording/recording_cost.h"
#include "agent/recording/session_uplink.h"
#include "agent/uplink/spool_aside.h"

typedef struct sj_recording sj_recording;

typedef enum sj_recording_phase {
    SJ_PHASE_RECORDING,
    /* the program's JVM still changes classes for the budget; the recorder detaches after that */
    SJ_PHASE_WAITING_FOR_BUDGET,
    SJ_PHASE_WAITING_FOR_COLLECTOR /* the program has ended; some frames are not acknowledged yet */
} sj_recording_phase;

/* The state of a running recording. */
typedef struct sj_recording_progress {
    sj_recording_phase phase;
    uint64_t elapsed_ns;
    sj_drain_counters drain;
    sj_frame_writer_counters writer;
    sj_spool_counters spool;
    sj_uplink_status uplink;
} sj_recording_progress;

typedef struct sj_recording_options {
    const sj_program *program; /* borrowed, checked; NULL for an attach */
    char *const *arguments;    /* the program's, NULL-terminated; borrowed */
    pid_t attach_pid;          /* the running process to record; 0: launch `program` */
    /* after an attach: maximum duration; 0: until a signal or the process's end */
    uint64_t duration_ms;
    const char *agent_path;  /* NULL: found beside the running program */
    const char *name;        /* label of the session; NULL: none */
    const sj_device *device; /* the recording device; NULL: use sj_device_read; borrowed */
    const char *spool_root;  /* NULL: the state directory's */
    const char *destination; /* stored beside the spool for `sojourn flush`; borrowed */
    sj_selection selection;
    const sj_policy *policy;    /* NULL: trace everything selected; borrowed */
    uint64_t max_bytes;         /* maximum total size of the frames; 0: no limit */
    uint64_t spool_bytes;       /* maximum size of unacknowledged frames; 0 means 4 GiB */
    uint64_t spool_root_bytes;  /* maximum size of all sessions in the spool root; 0: no limit */
    uint32_t chunks_per_thread; /* 0: all 64 */
    uint32_t max_threads;       /* 0: 512 */
    uint32_t children;          /* sj_follow bits: the children that join */
    /* after a launch: record until all processes of the program have ended, not only the first */
    bool until_all_end;
    sj_full_policy full_policy;
    uint32_t block_ms; /* 0: 2000 */
    bool no_plan_cache;
    bool no_code_samples; /* see code_samples.h */
    /* how long a program waits for the plan of a module; 0 means 20000 */
    int64_t plan_wait_ms;
    bool asks_user_for_changes;  /* the user's changes.json counts (change_permit.h) */
    const char *function_txt;    /* directory of a live function.txt; NULL: none; borrowed */
    uint64_t function_txt_bytes; /* maximum size of a file; 0: no limit */
    int64_t function_txt_files;  /* number of files to keep; 0 means 4 */
    void *context;
    void (*progress)(void *context, const sj_recording_progress *progress); /* NULL: none */
} sj_recording_options;

typedef struct sj_recording_link {
    const sj_session_collector *collectors; /* in order of preference; see session_uplink.h */
    size_t collector_count;
    bool is_chosen_once;  /* the session belongs to one collector; see session_uplink.h */
    uint32_t window;      /* maximum number of unacknowledged frames; 0: the uplink's default */
    int64_t wait_ms;      /* wait for acknowledgements after the program's end; -1: forever */
    bool waits_from_last; /* wait_ms counts from the last acknowledgement, not from the end */
    /* Wait without a limit while metadata frames wait in memory for space in the spool, because the
     * disk is full. Else these frames, among them the end of the session, would be lost. */
    bool stays_for_spool;
} sj_recording_link;

enum {
    SJ_LEFT_NAMED = 16,
    SJ_DEEP_THROW = 1000 /* an exception that ends at least this many nested calls is reported */
};

/* A process of the program that continues after its recording. */
typedef struct sj_left_process {
    pid_t pid;
    char name[64];
} sj_left_process;

typedef struct sj_recording_summary {
    sj_session_id session;
    const char *how;     /* completed, interrupted, crashed, killed */
    bool agent_reported; /* the agent was loaded and finished its start */
    bool program_left;   /* the recording was stopped and the program continues */
    int wait_status;
    /* after a launch: number of processes that continue without recording */
    uint32_t left_processes;
    uint32_t left_hooked; /* number of them that still have hooks, see detach_problem */
    sj_left_process left[SJ_LEFT_NAMED]; /* the first of them */
    sj_attach_report attach;             /* after an attach */
    sj_detach_process_report detach;
    /* time from the start to the moment when the session reached its maximum size and hooks were
     * removed; 0: never */
    uint64_t full_after_ns;
    uint32_t open_calls; /* calls that were open at the attach and were sent to the collector */
    bool replaced;       /* the attached process executed another program */
    /* the attached process has a JVM's library, but its JVM could not be joined */
    bool jvm_unjoined;
    char detach_problem[256]; /* "" if the process was restored */
    uint64_t elapsed_ns;
    uint64_t traced_cpu_ns;
    uint64_t estimated_probe_ns;
    sj_recording_cost cost;
    double ns_per_tick;
    char unmatched[1024]; /* JSON list of the policy's patterns that matched nothing; "": none */
    /* Rules that cannot change calls of the functions they name, one in a line. "": none. */
    char unchanging[SJ_VALUE_RULES * SJ_UNCHANGING_BYTES];
    char empty_because[1024]; /* why there are no calls; "": calls were recorded or lost */
    uint64_t calls;           /* all calls, including lost ones */
    uint64_t lost_calls;
    uint64_t lost_events;
    sj_function_log_counters function_log;
    bool delivered; /* everything is stored */
    bool answered;  /* each frame is stored or was put aside; none waits to be sent */
    /* sentence about frames that were refused permanently; "": none */
    char set_aside[SJ_ASIDE_TEXT_BYTES];
    char spool_directory[PATH_MAX];
    char undelivered_reason[256];
    sj_drain_counters drain;
    sj_frame_writer_counters writer;
    sj_registry_counters registry;
} sj_recording_summary;

/* Lists the parts of the policy that cannot take effect, like sj_policy_missed. */
size_t sj_recording_missed(const sj_recording_options *options,
                           const char *texts[SJ_POLICY_MISSED]);

/* Creates the session, its directories and the waiting child process. Leaves nothing behind if it
 * fails. */
SJ_MUST_CHECK sj_status sj_recording_prepare(const sj_recording_options *options,
                                             sj_recording **recording, sj_error *error);

const sj_session_id *sj_recording_session(const sj_recording *recording);

/* Runs the program to its end and delivers the remaining frames. Blocks.
 *
 * Fails only before the program has started. Sets `*exec_errno` if the program could not be
 * executed. After the start, always returns SJ_OK, and the summary lists the problems. */
SJ_MUST_CHECK sj_status sj_recording_run(sj_recording *recording, const sj_recording_link *link,
                                         sj_recording_summary *summary, int *exec_errno,
                                         sj_error *error);

/* Frees the recording and removes its runtime directory. Kills the child process if it was never
 * started. */
void sj_recording_free(sj_recording *recording);

#endif
