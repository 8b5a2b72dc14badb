/* Reports what a failed drain has not sent as lost. Used by the drain's thread only. Allocates no
 * memory except for frames that wait for space in the spool. */
#ifndef SJ_AGENT_DRAIN_UNSENT_RECORDS_H
#define SJ_AGENT_DRAIN_UNSENT_RECORDS_H

#include "agent/drain/added_processes.h"
#include "agent/drain/process_drain.h"

/* Reports a loss of a thread (0: unknown) by a gap. If the gap cannot be sent, adds the loss to
 * `unreported_calls` and `unreported_events` of the drain's counters. */
void sj_unsent_report(sj_drain_shared *shared, sj_gap_reason reason, uint64_t thread,
                      uint64_t calls, uint64_t events, uint64_t start_ticks);

/* Reports the records of a process that are in its arena, or were read from it, and were not
 * sent. */
void sj_unsent_process_report(sj_process_drain *process);

/* Reports the records in the arena of a process that the drain has not started to read. */
void sj_unsent_added_report(sj_drain_shared *shared, const sj_added_process *added);

#endif
