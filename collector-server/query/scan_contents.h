/* Reads the parts of the current block that only its own row has, in addition to its bytes, when
 * they are needed. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_CONTENTS_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_CONTENTS_H

#include "collector-server/query/block_scan.h"

/* sj_scan_contents_read moves the statement `contents` to the current block's row, unless it is
 * there. sj_scan_contents_leave resets it. Return SQLite result codes; SQLITE_CORRUPT: there is no
 * such row. */
int sj_scan_contents_read(sj_block_scan *scan);
void sj_scan_contents_leave(sj_block_scan *scan);

/* Returns the bytes of the current block, from its row or its file. */
SJ_MUST_CHECK sj_status sj_scan_contents_bytes(sj_block_scan *scan, sj_slice *bytes,
                                               sj_error *error);

#endif
