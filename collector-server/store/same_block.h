/* Compares two blocks that should hold the same events. */
#ifndef SJ_COLLECTOR_SERVER_STORE_SAME_BLOCK_H
#define SJ_COLLECTOR_SERVER_STORE_SAME_BLOCK_H

#include "proto/block/block.h"

#include <stdbool.h>

/* True if `stored` has all events of `repeat`, with equal contents. If `repeat` has no events, true
 * if the stack frames or gaps agree. Both blocks are of the same stream and kind, and decoded with
 * SJ_WANT_ALL. Thread-safe. */
bool sj_block_covers(const sj_block *stored, const sj_block *repeat);

#endif
