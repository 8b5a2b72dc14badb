/* The rows of a block from its outline, where that has all calls which the walk looks for. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_OUTLINE_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_OUTLINE_H

#include "collector-server/query/block_scan.h"

/* sj_scan_outline_take makes the rows and the dictionary of the current block of a walk with a
 * least duration: SQLITE_ROW; SQLITE_DONE: the block has no such call; SQLITE_NOTFOUND: it has to
 * be decoded; else an error. Rows are those of the outline, in order, with times. */
int sj_scan_outline_take(sj_block_scan *scan);

/* sj_scan_outline_load_frames reads the calls that were open at the start of such a block.
 * SQLITE_NOTFOUND: they cannot be read. */
int sj_scan_outline_load_frames(sj_block_scan *scan);

#endif
