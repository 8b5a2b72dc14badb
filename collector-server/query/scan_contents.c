#include "collector-server/query/scan_contents.h"

int sj_scan_contents_read(sj_block_scan *scan)
{
    if (scan->has_contents) {
        return SQLITE_OK;
    }
    sqlite3_bind_int64(scan->contents, 1, scan->block_id);
    const int result = sqlite3_step(scan->contents);
    scan->has_contents = result == SQLITE_ROW;
    if (result != SQLITE_ROW) {
        sqlite3_reset(scan->contents);
    }
    return result == SQLITE_ROW ? SQLITE_OK : result == SQLITE_DONE ? SQLITE_CORRUPT : result;
}

void sj_scan_contents_leave(sj_block_scan *scan)
{
    sqlite3_reset(scan->contents);
    scan->has_contents = false;
}

sj_status sj_scan_contents_bytes(sj_block_scan *scan, sj_slice *bytes, sj_error *error)
{
    enum { STORAGE = 1, DATA = 2 }; /* columns of `contents` */
    const int result = sj_scan_contents_read(scan);
    if (result != SQLITE_OK) {
        return sj_fail(error, result == SQLITE_NOMEM ? SJ_ENOMEM : SJ_EIO, "%s",
                       sqlite3_errstr(result));
    }
    return sj_block_files_get_columns(scan->files, scan->contents, STORAGE, DATA, bytes, error);
}
