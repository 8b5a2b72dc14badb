/* Flight mode: sealed blocks are kept in memory, bounded in bytes and in time; a trigger ships
 * those of the seconds before and after it as a child session with its cause. Used by the drain's
 * thread only. */
#ifndef SJ_AGENT_MODES_FLIGHT_RECORDER_H
#define SJ_AGENT_MODES_FLIGHT_RECORDER_H

#include "agent/session/frame_writer.h"

typedef struct sj_flight_recorder sj_flight_recorder;

typedef struct sj_flight_recorder_options {
    sj_frame_writer *writer; /* borrowed; keeps metadata frames (sj_frame_writer_options) */
    uint64_t before_ticks;
    uint64_t after_ticks;
    uint64_t max_bytes;
    const char *directory; /* blocks are kept in files there, which outlive a killed recorder;
                              borrowed; NULL: in memory */
} sj_flight_recorder_options;

SJ_MUST_CHECK sj_status sj_flight_recorder_new(const sj_flight_recorder_options *options,
                                               sj_flight_recorder **flight);
void sj_flight_recorder_free(sj_flight_recorder *flight);

/* sj_flight_recorder_load takes over the blocks that a killed recorder left in `directory`; they
 * are removed as they are given up. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_flight_recorder_load(sj_flight_recorder *flight, const char *directory);

/* sj_flight_recorder_block keeps a copy of a block; the oldest give way. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_flight_recorder_block(sj_flight_recorder *flight,
                                                 const sj_block_header *header, sj_slice bytes);

/* sj_flight_recorder_dump asks for a dump around `ticks`; `child` is its session. SJ_EAGAIN: one is
 * due already. SJ_EIO: no random numbers. */
SJ_MUST_CHECK sj_status sj_flight_recorder_dump(sj_flight_recorder *flight, uint64_t ticks,
                                                const char *cause, sj_session_id *child);

/* sj_flight_recorder_is_due returns whether the time after the trigger has passed: the threads are
 * to be flushed and sj_flight_recorder_ship called. `at_end`: there is no more time. */
bool sj_flight_recorder_is_due(const sj_flight_recorder *flight, uint64_t now_ticks, bool at_end);

/* sj_flight_recorder_ship sends the child session whose dump is due. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_flight_recorder_ship(sj_flight_recorder *flight, uint64_t now_ticks);

#endif
