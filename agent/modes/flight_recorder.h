/* Flight mode: keeps finished blocks in memory, limited in bytes and in time. A trigger sends the
 * blocks of the seconds before and after it as a child session with its cause. Only the drain's
 * thread uses it. */
#ifndef SJ_AGENT_MODES_FLIGHT_RECORDER_H
#define SJ_AGENT_MODES_FLIGHT_RECORDER_H

#include "agent/session/frame_writer.h"

typedef struct sj_flight_recorder sj_flight_recorder;

typedef struct sj_flight_recorder_options {
    sj_frame_writer *writer; /* borrowed; keeps metadata frames (sj_frame_writer_options) */
    uint64_t before_ticks;
    uint64_t after_ticks;
    uint64_t max_bytes;
    /* Blocks are kept in files in this directory, which outlive a killed recorder. Borrowed. NULL:
     * blocks are kept in memory. */
    const char *directory;
} sj_flight_recorder_options;

/* Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_flight_recorder_new(const sj_flight_recorder_options *options,
                                               sj_flight_recorder **flight);
/* Frees the flight recorder, and deletes the files of its blocks. */
void sj_flight_recorder_free(sj_flight_recorder *flight);

/* Frees the flight recorder. The files of its blocks stay for a later recovery. */
void sj_flight_recorder_leave(sj_flight_recorder *flight);

/* Loads the blocks that a killed recorder left in `directory`. Deleting such a block deletes its
 * file. Deletes the file of an incomplete block. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_flight_recorder_load(sj_flight_recorder *flight, const char *directory);

/* Keeps a copy of a block. Before that, deletes blocks of calls that are too old for a dump, and
 * the oldest blocks if all would exceed max_bytes. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_flight_recorder_block(sj_flight_recorder *flight,
                                                 const sj_block_header *header, sj_slice bytes);

/* Returns the number of the last block that got a file or was loaded; the next block has the next
 * number. Returns 0 if there was none. */
uint64_t sj_flight_recorder_last_number(const sj_flight_recorder *flight);

/* Requests a dump of the time around `ticks`. Writes the id of its session to `*child`. Returns
 * SJ_EAGAIN if a dump is pending, or SJ_EIO if the kernel gives no random numbers. */
SJ_MUST_CHECK sj_status sj_flight_recorder_dump(sj_flight_recorder *flight, uint64_t ticks,
                                                const char *cause, sj_session_id *child);

/* True if a dump is pending, and `after_ticks` have passed since its trigger or `at_end` is true.
 * The caller must then flush the threads and call sj_flight_recorder_ship. */
bool sj_flight_recorder_is_due(const sj_flight_recorder *flight, uint64_t now_ticks, bool at_end);

/* Sends the child session of the pending dump. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_flight_recorder_ship(sj_flight_recorder *flight, uint64_t now_ticks);

#endif
