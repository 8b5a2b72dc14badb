/* Flight mode: sealed blocks are kept in memory, bounded in bytes and in time; a trigger ships
 * those of the seconds before and after it as a child session with its cause. Used by the drain's
 * thread only. */
#ifndef SJ_AGENT_CONTROL_FLIGHT_H
#define SJ_AGENT_CONTROL_FLIGHT_H

#include "agent/control/emitter.h"

typedef struct sj_flight sj_flight;

typedef struct sj_flight_options {
    sj_emitter *emitter; /* borrowed; keeps control frames (sj_emitter_options) */
    uint64_t before_ticks;
    uint64_t after_ticks;
    uint64_t max_bytes;
    const char *directory; /* blocks are kept in files there, which outlive a killed recorder;
                              borrowed; NULL: in memory */
} sj_flight_options;

SJ_MUST_CHECK sj_status sj_flight_new(const sj_flight_options *options, sj_flight **flight);
void sj_flight_free(sj_flight *flight);

/* sj_flight_load takes over the blocks that a killed recorder left in `directory`; they are removed
 * as they are given up. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_flight_load(sj_flight *flight, const char *directory);

/* sj_flight_block keeps a copy of a block; the oldest give way. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_flight_block(sj_flight *flight, const sj_block_header *header,
                                        sj_slice bytes);

/* sj_flight_dump asks for a dump around `ticks`; `child` is its session. SJ_EAGAIN: one is due
 * already. SJ_EIO: no random numbers. */
SJ_MUST_CHECK sj_status sj_flight_dump(sj_flight *flight, uint64_t ticks, const char *cause,
                                       sj_session_id *child);

/* sj_flight_is_due tells that the time after the trigger has passed: the threads are to be flushed
 * and sj_flight_ship called. `at_end`: there is no more time. */
bool sj_flight_is_due(const sj_flight *flight, uint64_t now_ticks, bool at_end);

/* sj_flight_ship sends the child session whose dump is due. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_flight_ship(sj_flight *flight, uint64_t now_ticks);

#endif
