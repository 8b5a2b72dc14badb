/* Work in pieces, on several threads. */
#ifndef SJ_AGENT_PLANNER_PIECES_H
#define SJ_AGENT_PLANNER_PIECES_H

#include "proto/base/status.h"

#include <stdint.h>

enum { SJ_PIECES_MOST_THREADS = 16 };

/* sj_pieces_count is how many pieces work is best cut into for so many threads: more than those, so
 * that none waits long for the last; for one thread (0 or 1) one. */
uint32_t sj_pieces_count(uint32_t threads);

typedef sj_status sj_piece_run(void *context, uint32_t piece);

/* sj_pieces_run has pieces 0 to `count` - 1 run, each once, on the calling thread and up to
 * `threads` - 1 others, which take no signals, and returns when all have ended: the status of the
 * first that failed. Which thread takes which piece when is left open. Threads that cannot be
 * started are done without. */
SJ_MUST_CHECK sj_status sj_pieces_run(uint32_t threads, uint32_t count, sj_piece_run *run,
                                      void *context);

#endif
