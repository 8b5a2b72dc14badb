/* Decides about the offers of a killed consumer (agent/abi/arena.h): a block, a gap or sums that it
 * was storing. The next consumer calls these functions before it stores anything, because it reuses
 * the numbers of offers that were not stored. Used by one thread. */
#ifndef SJ_AGENT_DRAIN_STORED_OFFERS_H
#define SJ_AGENT_DRAIN_STORED_OFFERS_H

#include "agent/drain/arena_view.h"

/* The last numbers that the killed consumer has stored. */
typedef struct sj_stored_offers {
    uint64_t blocks; /* number of the session's last block in the spool */
    uint64_t gaps;   /* number of its last gap */
    uint64_t summed_events;
    uint64_t flight_blocks; /* number of the last block that the flight recorder kept in a file */
} sj_stored_offers;

/* If the slot's offer was stored, writes the offer's content to the slot's cursor. Ends the offer
 * in both cases. */
void sj_stored_offers_settle_slot(sj_thread_slot *slot, const sj_stored_offers *stored);

/* Settles all offers in the arena at `path`. Does nothing if there is no arena that this version
 * can read. Returns SJ_ENOMEM if the arena cannot be mapped. */
SJ_MUST_CHECK sj_status sj_stored_offers_settle(const char *path, const sj_stored_offers *stored);

#endif
