/* Runs work in pieces on several threads. */
#ifndef SJ_AGENT_PLANNER_PIECES_H
#define SJ_AGENT_PLANNER_PIECES_H

#include "proto/base/status.h"

#include <stdint.h>

enum { SJ_PIECES_MOST_THREADS = 16 };

/* Returns the best number of pieces for a number of threads: more than the threads, so that none
 * waits long for the last piece. One thread (0 or 1) gets one piece. */
uint32_t sj_pieces_count(uint32_t threads);

typedef sj_status sj_piece_run(void *context, uint32_t piece);

/* Runs the pieces 0 to `count` - 1, each once, on the calling thread and up to `threads` - 1
 * others, which block all signals. Returns when all have ended, with the status of the first that
 * failed. The order of the pieces is undefined. Works with fewer threads if some cannot be
 * started. */
SJ_MUST_CHECK sj_status sj_pieces_run(uint32_t threads, uint32_t count, sj_piece_run *run,
                                      void *context);

#endif
