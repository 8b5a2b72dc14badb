/* Design notes
 *
 * Large pages suit a collector, which appends blocks of some 10 KB. But each of 90 tables and
 * indexes takes a page. That is most of a small recording: 1.5 MB for one call. A finished
 * recording is seldom written again, so it is packed into smaller pages. It gets large pages when
 * calls are stored in it again. Both use SQLite's own VACUUM, which survives a crash. While another
 * connection has the file open, SQLite refuses VACUUM, and nothing changes.
 *
 * A finished recording also has no log. A reader of a file with a log creates two files beside it,
 * and leaves them there if it may only read. */
#include "collector-server/store/page_size.h"

#include "collector-server/store/database.h"

#include <stdio.h>
#include <sys/stat.h>

enum {
    SMALL_PAGE = 512,
    SMALL_FILE = 4 << 20, /* size with large pages */
    MEDIUM_PAGE = 4096,
    MEDIUM_FILE = 32 << 20
};

static bool run(sqlite3 *database, const char *sql)
{
    return sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Rewrites the database with another page size, which SQLite allows only without a log. 0: keep
 * the page size, and only remove the log. */
static void rewrite(sqlite3 *database, int page_bytes, bool with_log)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA page_size=%d; VACUUM", page_bytes);
    sj_database_set_patience(database, false);
    if (run(database, "PRAGMA journal_mode=DELETE") && page_bytes != 0) {
        (void)run(database, sql);
    }
    if (with_log) {
        (void)run(database, "PRAGMA journal_mode=WAL");
    }
    sj_database_set_patience(database, true);
}

static int page_bytes_of(sqlite3 *database)
{
    sqlite3_stmt *row = NULL;
    int bytes = 0;
    if (sqlite3_prepare_v2(database, "PRAGMA page_size", -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW) {
        bytes = sqlite3_column_int(row, 0);
    }
    sqlite3_finalize(row);
    return bytes;
}

void sj_database_pack(const char *path)
{
    struct stat file;
    sqlite3 *database = NULL;
    sj_error ignored;
    if (stat(path, &file) != 0 ||
        sj_database_open(path, SJ_DATABASE_WRITE, &database, &ignored) != SJ_OK) {
        return;
    }
    const int page_bytes = file.st_size <= SMALL_FILE    ? SMALL_PAGE
                           : file.st_size <= MEDIUM_FILE ? MEDIUM_PAGE
                                                         : 0;
    rewrite(database, page_bytes, false);
    sqlite3_close(database);
}

void sj_database_unpack(sqlite3 *database)
{
    if (page_bytes_of(database) != SJ_DATABASE_PAGE_BYTES) {
        rewrite(database, SJ_DATABASE_PAGE_BYTES, true);
    }
}
