/* Makes the rows of a block from its outline (store/block_outline.h), which lists the longest
 * calls. So the scan does not decode the block. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_OUTLINE_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_OUTLINE_H

#include "collector-server/query/block_scan.h"

/* Makes a row with times for each call of the current block's outline, in order, and the block's
 * dictionary. The scan must have a minimum duration. Returns SQLITE_ROW; SQLITE_DONE if the outline
 * has no call; SQLITE_NOTFOUND if the scan must decode the block, because the outline is missing,
 * invalid, or lacks wanted calls; else SQLite's error. */
int sj_scan_outline_use(sj_block_scan *scan);

/* Reads the calls that were open at the start of a block with rows from its outline. Returns
 * SQLITE_OK, or SQLITE_NOTFOUND if the block cannot be read or decoded. */
int sj_scan_outline_load_frames(sj_block_scan *scan);

#endif
