/* Untimed records: turns the short records of a thread (agent/abi/record.h) into full ones. Records
 * without a clock get estimated times between the timed records around them. Their order is exact.
 *
 * A call between two timed records gets the mean duration of its function's timed calls. The
 * remaining time is divided among the other untimed records. If there is too little time, these
 * calls are shortened in proportion. If a call contains a timed record, each of its ends lies
 * somewhere between the timed records around it.
 *
 * Time that the thread waited for the drain (SJ_NOTE_WAITED) belongs to the caller and does not
 * count in a mean.
 *
 * Entries without a clock get SJ_UNTIMED_ENTRY in their stacks. Exits get SJ_UNTIMED_EXIT if their
 * entries had a clock. One for each thread; used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_UNTIMED_RECORDS_H
#define SJ_AGENT_DRAIN_UNTIMED_RECORDS_H

#include "agent/drain/call_timing.h"

typedef struct sj_untimed_records sj_untimed_records;

/* Creates the state of a thread with these bounds of its own stack. `timing` (borrowed, may be
 * NULL) gets the durations of timed calls. `has_distances` is the member of the arena's view.
 * Returns NULL if out of memory. */
sj_untimed_records *sj_untimed_records_new(sj_call_timing *timing, uint64_t stack_low,
                                           uint64_t stack_high, bool has_distances);
void sj_untimed_records_free(sj_untimed_records *untimed);

/* Reads the records in `count` places. Writes the records whose times are known to `*records`,
 * borrowed until the next call. Keeps the records that wait for the next timed record. `now_ticks`
 * is not earlier than any record.
 *
 * `*undecided` is the number of short records that could not be decoded, because the records before
 * them are unknown. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_untimed_records_read(sj_untimed_records *untimed,
                                                const sj_record *places, size_t count,
                                                uint64_t now_ticks, sj_record **records,
                                                size_t *record_count, uint64_t *undecided);

/* Returns the number of entries among the records that the last sj_untimed_records_read could not
 * decode. */
uint64_t sj_untimed_records_undecided_calls(const sj_untimed_records *untimed);

/* Gives times to the waiting records, because no timed record comes before `now_ticks`. Writes them
 * to `*records`, borrowed until the next call. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_untimed_records_settle(sj_untimed_records *untimed, uint64_t now_ticks,
                                                  sj_record **records, size_t *record_count);

/* True if records wait, or values wait for their record. */
bool sj_untimed_records_are_kept(const sj_untimed_records *untimed);

/* Returns the number of waiting records, and the number of entries among them in `*entries`. */
size_t sj_untimed_records_waiting(const sj_untimed_records *untimed, size_t *entries);

/* Reports that records are missing here. The waiting records must have been settled. */
void sj_untimed_records_lost(sj_untimed_records *untimed);

#endif
