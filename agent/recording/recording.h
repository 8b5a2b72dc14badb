/* One recording: a program run under trace from its launch, or a running process from its attach,
 * to the last acknowledged frame.
 *
 * Two steps, because the program must be forked before the collector (embedded or not) starts
 * threads: sj_recording_prepare, then sj_recording_run. One thread; one recording a process. */
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
#include "agent/uplink/spool_aside.h"

typedef struct sj_recording sj_recording;

typedef enum sj_recording_phase {
    SJ_PHASE_RECORDING,
    SJ_PHASE_WAITING_FOR_BUDGET,   /* processes are to be left; the budget still changes methods */
    SJ_PHASE_WAITING_FOR_COLLECTOR /* the program has ended; frames are not yet acknowledged */
} sj_recording_phase;

/* What is known while it goes on. */
typedef struct sj_recording_progress {
    sj_recording_phase phase;
    uint64_t elapsed_ns;
    sj_drain_counters drain;
    sj_frame_writer_counters writer;
    sj_spool_counters spool;
    sj_uplink_status uplink;
} sj_recording_progress;

typedef struct sj_recording_options {
    const sj_program *program; /* borrowed, checked; NULL when attaching */
    char *const *arguments;    /* of the program, NULL-terminated; borrowed */
    pid_t attach_pid;          /* record this running process instead; 0: launch `program` */
    uint64_t duration_ms;      /* attached: leave after so long; 0: at a signal or its end */
    const char *agent_path;    /* NULL: found beside the running program */
    const char *name;          /* label of the session; NULL: none */
    const sj_device *device;   /* who this is; NULL: as sj_device_read says; borrowed */
    const char *spool_root;    /* NULL: the state directory's */
    const char *destination;   /* kept beside the spool for `sojourn flush`; borrowed */
    sj_selection selection;
    const sj_policy *policy;    /* NULL: trace everything selected; borrowed */
    uint64_t max_bytes;         /* of frames; 0: no limit */
    uint64_t spool_bytes;       /* unacknowledged at most; 0: 4 GiB */
    uint64_t spool_root_bytes;  /* of all sessions in the spool root; 0: no such limit */
    uint32_t chunks_per_thread; /* 0: all 64 */
    uint32_t max_threads;       /* 0: 512 */
    uint32_t children;          /* sj_follow bits: which children join */
    bool until_all_end;         /* launched: record until no process of the program is left */
    sj_full_policy full_policy;
    uint32_t block_ms; /* 0: 2000 */
    bool no_plan_cache;
    int64_t plan_wait_ms;        /* a program waits so long for the plan of a module; 0: 20000 */
    bool asks_user_for_changes;  /* his own changes.json counts (change_permit.h) */
    const char *function_txt;    /* directory of a live function.txt; NULL: none; borrowed */
    uint64_t function_txt_bytes; /* of a file; 0: no limit */
    int64_t function_txt_files;  /* kept; 0: 4 */
    void *context;
    void (*progress)(void *context, const sj_recording_progress *progress); /* NULL: none */
} sj_recording_options;

typedef struct sj_recording_link {
    const char *url;         /* collector */
    const char *token;       /* NULL: none */
    const char *certificate; /* of the collector (PEM), for tls+tcp://; NULL: none */
    uint32_t window;         /* frames under way at most; 0: the uplink's default */
    int64_t wait_ms;         /* for acknowledgements after the program's end; -1: forever */
    bool waits_from_last;    /* wait_ms counts from the last acknowledgement, not from the end */
    bool stays_for_spool;    /* wait longer, however long, while a full disk keeps the last frames
                                in memory: with them the session's end would be lost */
} sj_recording_link;

enum {
    SJ_LEFT_NAMED = 16,
    SJ_DEEP_THROW = 1000 /* so many nested calls of methods that one exception ends are reported */
};

/* A process of the program that goes on without its recording. */
typedef struct sj_left_process {
    pid_t pid;
    char name[64];
} sj_left_process;

typedef struct sj_recording_summary {
    sj_session_id session;
    const char *how;     /* completed, interrupted, crashed, killed */
    bool agent_reported; /* the agent was loaded and finished its start */
    bool program_left;   /* recording was stopped while the program went on */
    int wait_status;
    uint32_t left_processes; /* of a launched program, that go on: their recording has ended */
    uint32_t left_hooked;    /* of them: with hooks, see detach_problem */
    sj_left_process left[SJ_LEFT_NAMED]; /* the first of them */
    sj_attach_report attach;             /* when attached */
    sj_detach_process_report detach;
    uint64_t full_after_ns; /* the session had its largest size, and hooks were removed; 0: not */
    uint32_t open_calls;    /* found open at attach and sent to the collector */
    bool replaced;          /* the attached process executed another program */
    bool jvm_unjoined; /* the attached process has a JVM's library and no JVM that was joined */
    char detach_problem[256]; /* "" when the process was restored */
    uint64_t elapsed_ns;
    uint64_t traced_cpu_ns;
    uint64_t estimated_probe_ns;
    sj_recording_cost cost;
    double ns_per_tick;
    char unmatched[1024]; /* JSON list of the policy's patterns that matched nothing; "": none */
    char unchanging[SJ_VALUE_RULES * SJ_UNCHANGING_BYTES]; /* lines: which rules cannot change calls
                                                              of what they name; "": none */
    char empty_because[1024]; /* why there is no call; "": there are some, or were some lost */
    uint64_t calls;           /* all, the lost ones included */
    uint64_t lost_calls;
    uint64_t lost_events;
    sj_function_log_counters function_log;
    bool delivered; /* everything is stored */
    bool answered;  /* no frame waits to be sent: each is stored or was put aside */
    char set_aside[SJ_ASIDE_TEXT_BYTES]; /* what was refused for good, as a sentence; "": nothing */
    char spool_directory[PATH_MAX];
    char undelivered_reason[256];
    sj_drain_counters drain;
    sj_frame_writer_counters writer;
    sj_registry_counters registry;
} sj_recording_summary;

/* sj_recording_missed lists what the program does not get of its policy, as sj_policy_missed. */
size_t sj_recording_missed(const sj_recording_options *options,
                           const char *texts[SJ_POLICY_MISSED]);

/* sj_recording_prepare makes the session, its directories and the waiting child. Nothing stays
 * behind when it fails. */
SJ_MUST_CHECK sj_status sj_recording_prepare(const sj_recording_options *options,
                                             sj_recording **recording, sj_error *error);

const sj_session_id *sj_recording_session(const sj_recording *recording);

/* sj_recording_run runs the program to its end and delivers the rest. Blocking. Errors before the
 * program started: `*exec_errno` is set when it could not be executed. After that it always
 * succeeds, with what went wrong in the summary. */
SJ_MUST_CHECK sj_status sj_recording_run(sj_recording *recording, const sj_recording_link *link,
                                         sj_recording_summary *summary, int *exec_errno,
                                         sj_error *error);

/* sj_recording_free removes the runtime directory, and the program when it was never let go. */
void sj_recording_free(sj_recording *recording);

#endif
