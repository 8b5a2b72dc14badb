/* Runs work in pieces on several threads. */
#ifndef SJ_AGENT_PLANNER_PIECES_H
#define SJ_AGENT_PLANNER_PIECES_H

#include "proto/base/status.h"

#include <stdint.h>

enum { SJ_PIECES_MOST_THREADS = 16 };

/* Returns into how many pieces to divide work for a number of threads: four for each thread, so
 * that threads finish at about the same time. Counts at most SJ_PIECES_MOST_THREADS threads.
 * Returns 1 for 0 or 1 thread. */
uint32_t sj_pieces_count(uint32_t threads);

/* Runs one piece. May return any error; sj_pieces_run returns it. */
typedef sj_status sj_piece_run(void *context, uint32_t piece);

/* Runs the pieces 0 to `count` - 1, each once. Uses the calling thread and up to `threads` - 1 new
 * threads, which block all signals. The order of the pieces is undefined. Returns when all pieces
 * have ended. Returns the status of the failed piece with the lowest number. Uses fewer threads if
 * some cannot be started. */
SJ_MUST_CHECK sj_status sj_pieces_run(uint32_t threads, uint32_t count, sj_piece_run *run,
                                      void *context);

#endif
