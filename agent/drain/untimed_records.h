/* Untimed records: turns the short records of a thread (record.h) into whole ones, and gives those
 * without a clock a time: between the timed ones around them, which are known; order is exact.
 *
 * A call that lies between two timed records lasts as long as the timed calls of its function do on
 * average. What is left of the time between is divided among what else happened there; where there
 * is not as much, all such calls are shortened alike. Calls that reach beyond a timed record have
 * each end somewhere between the timed records around it. Time that the thread waited for the drain
 * (SJ_NOTE_WAITED) is the caller's, and no part of an average.
 *
 * Entries without a clock get SJ_UNTIMED_ENTRY in their stacks, and exits SJ_UNTIMED_EXIT whose
 * entries had one. One a thread; the drain's thread
 * only. */
#ifndef SJ_AGENT_DRAIN_UNTIMED_RECORDS_H
#define SJ_AGENT_DRAIN_UNTIMED_RECORDS_H

#include "agent/drain/call_timing.h"

typedef struct sj_untimed_records sj_untimed_records;

/* sj_untimed_records_new is for the thread of a slot with these bounds of its own stack. `timing`
 * (borrowed) learns from the timed calls; NULL: nobody does. `has_distances`: as the arena's view
 * says. NULL when memory is short. */
sj_untimed_records *sj_untimed_records_new(sj_call_timing *timing, uint64_t stack_low,
                                           uint64_t stack_high, bool has_distances);
void sj_untimed_records_free(sj_untimed_records *untimed);

/* sj_untimed_records_take takes what stands in `count` places and lends the records that have a
 * time now, until its next call: those that wait for the next timed record are kept. `now_ticks` is
 * not earlier than any of them. `*undecided` is how many short records could not be read, as
 * nothing is known of what was before them. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_untimed_records_take(sj_untimed_records *untimed,
                                                const sj_record *places, size_t count,
                                                uint64_t now_ticks, sj_record **records,
                                                size_t *record_count, uint64_t *undecided);

/* sj_untimed_records_undecided_calls is how many of what the last sj_untimed_records_take could not
 * read are entries. */
uint64_t sj_untimed_records_undecided_calls(const sj_untimed_records *untimed);

/* sj_untimed_records_settle lends those that wait: no timed record follows until `now_ticks`.
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_untimed_records_settle(sj_untimed_records *untimed, uint64_t now_ticks,
                                                  sj_record **records, size_t *record_count);

/* sj_untimed_records_are_kept: some wait, or are values of what waits or comes. */
bool sj_untimed_records_are_kept(const sj_untimed_records *untimed);

/* sj_untimed_records_waiting is how many records wait, and how many of them are entries. */
size_t sj_untimed_records_waiting(const sj_untimed_records *untimed, size_t *entries);

/* sj_untimed_records_lost: records are missing here. What waits has been settled. */
void sj_untimed_records_lost(sj_untimed_records *untimed);

#endif
