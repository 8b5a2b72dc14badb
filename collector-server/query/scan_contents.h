/* Reads the large columns of a scan's current block: its function bitmap and its bytes. They are
 * read only if needed, because the scan's statement `blocks` reads only an index. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_CONTENTS_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_CONTENTS_H

#include "collector-server/query/block_scan.h"

/* sj_scan_contents_read moves the statement scan->contents to the current block's row, if it is not
 * there. Returns an SQLite result code; SQLITE_CORRUPT means that the row is missing.
 * sj_scan_contents_leave resets the statement. */
int sj_scan_contents_read(sj_block_scan *scan);
void sj_scan_contents_leave(sj_block_scan *scan);

/* Returns the bytes of the current block, from its row or its file, in `*bytes`. They are valid
 * until sj_scan_contents_leave. Fails with SJ_ENOMEM, SJ_EIO or the errors of
 * sj_block_files_get_columns. */
SJ_MUST_CHECK sj_status sj_scan_contents_bytes(sj_block_scan *scan, sj_slice *bytes,
                                               sj_error *error);

#endif
