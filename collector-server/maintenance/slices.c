#include "collector-server/maintenance/slices.h"

#include "collector-server/store/database.h"

#include <time.h>

enum {
    LEAST_PAUSE_NS = 2000000, /* enough for a waiting writer to get the lock */
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

sj_status sj_slices_run(sqlite3 *database, const char *sql, int64_t id, int64_t limit,
                        const char *text, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
    if (result == SQLITE_OK) {
        const int parameters = sqlite3_bind_parameter_count(statement);
        sqlite3_bind_int64(statement, 1, id);
        if (parameters >= 2) {
            sqlite3_bind_int64(statement, 2, limit);
        }
        if (parameters >= 3) {
            sqlite3_bind_text(statement, 3, text, -1, SQLITE_STATIC);
        }
        result = sqlite3_step(statement);
    }
    const sj_status status =
        result == SQLITE_DONE
            ? SJ_OK
            : sj_fail(error, sj_database_status(sqlite3_extended_errcode(database)),
                      "cannot remove the session: %s", sqlite3_errmsg(database));
    sqlite3_finalize(statement);
    return status;
}

sj_status sj_slices_delete(sqlite3 *database, const char *sql, int64_t id, int64_t piece,
                           sj_progress_work work, sj_error *error)
{
    do {
        const int64_t start_ns = sj_slice_begin();
        SJ_TRY(sj_slices_run(database, sql, id, piece, NULL, error));
        sj_progress_step(work);
        sj_slice_pause(start_ns);
    } while (sqlite3_changes(database) >= piece);
    return SJ_OK;
}

static sj_status fail(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_extended_errcode(database)),
                   "cannot give space back: %s", sqlite3_errmsg(database));
}

static sj_status count_free_pages(sqlite3 *database, int64_t *pages, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    const bool is_read =
        sqlite3_prepare_v2(database, "PRAGMA freelist_count", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW;
    *pages = is_read ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return is_read ? SJ_OK : fail(database, error);
}

static sj_status give_slice_back(sqlite3 *database, sj_error *error)
{
    char sql[64];
    const int64_t start_ns = sj_slice_begin();
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA incremental_vacuum(%d)", (int)VACUUM_PAGES_A_SLICE);
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return fail(database, error);
    }
    sj_slice_pause(start_ns);
    return SJ_OK;
}

sj_status sj_slices_give_space_back(sqlite3 *database, sj_error *error)
{
    int64_t first = 0;
    int64_t before = INT64_MAX;
    SJ_TRY(count_free_pages(database, &first, error));
    int64_t left = first;
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin((uint64_t)first);
    /* stops if another writer uses the pages */
    while (status == SJ_OK && left != 0 && left < before) {
        before = left;
        status = give_slice_back(database, error);
        if (status == SJ_OK) {
            status = count_free_pages(database, &left, error);
        }
        sj_progress_reach(work, left < first ? (uint64_t)(first - left) : 0);
    }
    sj_progress_end(work);
    if (status == SJ_OK) {
        sqlite3_wal_checkpoint_v2(database, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    return status;
}
