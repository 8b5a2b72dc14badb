/* The read progress of one thread: how far its records were read, and which of them are not in the
 * spool yet. It is stored in the thread's slot, so that a recorder that is killed leaves no loss
 * unreported. The reader and the stages write it, and the thread emitter settles it.
 *
 * Used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_READ_PROGRESS_H
#define SJ_AGENT_DRAIN_READ_PROGRESS_H

#include "agent/abi/arena.h"

typedef struct sj_read_progress {
    sj_thread_slot *slot;
    uint64_t sequence;    /* sequence number of the current chunk, from 1 */
    uint64_t position;    /* number of its records that were read */
    uint64_t noted_calls; /* dropped calls that notes of the thread have reported */
    uint64_t noted_events;
    uint64_t unsent; /* events that were read or lost and that the spool does not account for */
    uint64_t unsent_calls; /* the lost calls among `unsent` */
    /* Records that no assembler has yet. They wait for the time of a later record, or the filter
     * holds them back until their calls have lasted long enough. */
    uint64_t waiting;
    uint64_t waiting_entries; /* the entries among `waiting` */
} sj_read_progress;

/* Starts at the beginning of the slot's records. */
void sj_read_progress_init(sj_read_progress *progress, sj_thread_slot *slot);

/* Continues at the slot's cursor. The offers of a killed consumer are settled (stored_offers.h). */
void sj_read_progress_resume(sj_read_progress *progress);

/* Moves the slot's cursor past all records that were read, so that they are not read again. Call it
 * before any of them goes to the spool, and before their chunk is returned to its thread. */
void sj_read_progress_save(sj_read_progress *progress);

/* Writes to the slot's offer, before a block, a gap or sums are stored, what sj_read_progress_sent
 * will subtract. If the recorder is killed between the two, the next recorder counts no stored
 * event as lost. `number` is as in sj_slot_offer. Call sj_read_progress_sent or
 * sj_read_progress_refused afterwards. */
void sj_read_progress_offer(sj_read_progress *progress, uint64_t number, uint64_t calls,
                            uint64_t events);
void sj_read_progress_refused(sj_read_progress *progress);

/* Reports that `events` of the read events are now stored, and that this accounts for `calls` lost
 * calls. UINT64_MAX stands for all unsent calls or events, also in sj_read_progress_offer. */
void sj_read_progress_sent(sj_read_progress *progress, uint64_t calls, uint64_t events);

/* Sets what the spool does not account for: `calls` lost calls, `events` events and the records
 * that still wait. */
void sj_read_progress_settle(sj_read_progress *progress, uint64_t calls, uint64_t events);

#endif
