/* The stages: what the records of one thread pass on their way from the chunk reader to the
 * assembler. Records move in one direction, from each row of the table in record_stages.c to the
 * next. One for each thread; used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_RECORD_STAGES_H
#define SJ_AGENT_DRAIN_RECORD_STAGES_H

#include "agent/drain/call_filter.h"
#include "agent/drain/read_progress.h"
#include "agent/drain/receiver_rewriter.h"
#include "agent/drain/renamed_functions.h"
#include "agent/drain/unhooked_calls.h"
#include "agent/drain/untimed_records.h"
#include "agent/modes/overhead_governor.h"

/* The thread that the stages belong to. All pointers are borrowed and must outlive the stages. */
typedef struct sj_staged_thread {
    const sj_thread_slot *slot;
    const sj_arena_view *view;
    sj_registry *registry; /* NULL: functions keep their names */
    uint64_t process;
    sj_unhooked_set *freed;        /* NULL: functions stay hooked */
    sj_governed_process *governed; /* NULL without a budget */
    uint64_t number;
    const char *name; /* its content may change */
    uint64_t start_ticks;
} sj_staged_thread;

/* The state of each stage. Zero-initialize it before sj_record_stages_init. */
typedef struct sj_record_stages {
    sj_untimed_records *untimed; /* NULL: not needed until now */
    uint64_t stack_low;          /* bounds of the thread's own stack */
    uint64_t stack_high;
    bool has_distances; /* the member of the arena's view */
    bool keeps_values;  /* the records that wait for a time may include a value */
    sj_renamed_functions renamed;
    sj_receiver_rewriter receivers;
    sj_governed_process *governed; /* counts the calls; NULL without a budget */
    sj_unhooked_calls unhooked;
    sj_call_filter filter;
    sj_assembler *assembler;
    sj_read_progress *progress; /* gets the number of records that the stages hold back */
} sj_record_stages;

/* Initializes the stages before `assembler` (borrowed). */
void sj_record_stages_init(sj_record_stages *stages, const sj_staged_thread *thread,
                           sj_assembler *assembler, sj_read_progress *progress);
void sj_record_stages_deinit(sj_record_stages *stages);

/* Makes the stages report the durations of timed calls to `timing` (borrowed). Returns SJ_ENOMEM if
 * out of memory. */
SJ_MUST_CHECK sj_status sj_record_stages_count(sj_record_stages *stages, sj_call_timing *timing);

/* Replaces the policy. Passes on the calls that the call filter holds back. Returns SJ_ENOMEM if
 * out of memory. */
SJ_MUST_CHECK sj_status sj_record_stages_set_policy(sj_record_stages *stages,
                                                    const sj_policy_judge *judge,
                                                    uint64_t now_ticks);

/* Feeds a batch. Changes its records. Returns SJ_ENOMEM, and errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_record_stages_feed(sj_record_stages *stages,
                                              const sj_record_batch *batch);

/* Passes on all records that are held back, because no record will follow. Reports the functions
 * that were unhooked since the last record, because their calls stay open. Returns the errors of
 * sj_record_stages_feed. */
SJ_MUST_CHECK sj_status sj_record_stages_end(sj_record_stages *stages, uint64_t now_ticks);

#endif
