/* Makes the rows of a block from its outline, if the outline has all wanted calls. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_OUTLINE_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_OUTLINE_H

#include "collector-server/query/block_scan.h"

/* Makes the rows and the dictionary of the current block, in a walk with a minimum duration.
 * Returns SQLITE_ROW; SQLITE_DONE if the block has no such call; SQLITE_NOTFOUND if it must be
 * decoded; else an error. The rows are those of the outline, in order, with times. */
int sj_scan_outline_use(sj_block_scan *scan);

/* Reads the calls that were open at the start of such a block. Returns SQLITE_NOTFOUND if they
 * cannot be read. */
int sj_scan_outline_load_frames(sj_block_scan *scan);

#endif
