#include "collector-server/maintenance/slices.h"

#include "collector-server/store/database.h"

#include <time.h>

enum {
    LEAST_PAUSE_NS = 2000000, /* lets a waiting writer in */
    VACUUM_PAGES_A_SLICE = 64 /* 1 MB */
};

int64_t sj_slice_begin(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void sj_slice_pause(int64_t begun_ns)
{
    const int64_t spent = sj_slice_begin() - begun_ns;
    const int64_t pause_ns = spent > LEAST_PAUSE_NS ? spent : LEAST_PAUSE_NS;
    const struct timespec pause = {.tv_sec = pause_ns / 1000000000,
                                   .tv_nsec = pause_ns % 1000000000};
    nanosleep(&pause, NULL);
}

static sj_status fail(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_extended_errcode(database)),
                   "cannot give space back: %s", sqlite3_errmsg(database));
}

sj_status sj_slices_give_space_back(sqlite3 *database, sj_error *error)
{
    char sql[64];
    int64_t before = INT64_MAX;
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA incremental_vacuum(%d)", (int)VACUUM_PAGES_A_SLICE);
    for (;;) {
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(database, "PRAGMA freelist_count", -1, &statement, NULL) !=
                SQLITE_OK ||
            sqlite3_step(statement) != SQLITE_ROW) {
            sqlite3_finalize(statement);
            return fail(database, error);
        }
        const int64_t free_pages = sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
        if (free_pages == 0 || free_pages >= before) { /* no progress: another writer took them */
            break;
        }
        before = free_pages;
        const int64_t start_ns = sj_slice_begin();
        if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
            return fail(database, error);
        }
        sj_slice_pause(start_ns);
    }
    sqlite3_wal_checkpoint_v2(database, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SJ_OK;
}
