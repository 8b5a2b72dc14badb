/* Design notes
 *
 * The work that a killed collector deferred must not keep the next one from listening. It is
 * done between batches, in at most a tenth of the writer's time, or at once when the writer is
 * idle (sj_store_maintain). */
#include "collector-server/store/store_internal.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum {
    VACUUM_PAGES = 256,
    QUIET_S = 5, /* a running collector that is not busy has written all aggregates by then */
    RECOVERY_SLICE_MS = 10,
    IDLE_SLICE_MS = 50, /* maximum wait of a frame that comes while the writer is idle */
    RECOVERY_PAUSE = 9, /* pause for other work, as a multiple of the time that recovery took */
};

bool sj_store_recover_some(sj_store *store, bool is_idle)
{
    const uint64_t slice_ns = (is_idle ? IDLE_SLICE_MS : RECOVERY_SLICE_MS) * UINT64_C(1000000);
    const uint64_t begun_ns = sj_store_now_ns();
    const int64_t before = store->recovered_to;
    sj_error ignored; /* retried after the pause */
    if (sj_store_begin(store, &ignored) != SJ_OK) {
        return false;
    }
    sj_status status;
    do {
        status = sj_store_recover_next(store, &ignored);
    } while (status == SJ_OK && sj_store_now_ns() - begun_ns < slice_ns);
    const bool is_done = status == SJ_ENOTFOUND;
    if (status == SJ_OK || is_done) {
        status = sj_store_commit(store, &ignored);
    } else {
        sj_store_rollback(store);
    }
    if (status == SJ_OK) {
        store->has_leftovers = !is_done;
    } else {
        store->recovered_to = before; /* the rollback removed what was written */
    }
    const uint64_t now = sj_store_now_ns();
    store->next_recovery_ns = now + (now - begun_ns) * RECOVERY_PAUSE;
    return status == SJ_OK;
}

void sj_store_recover(sj_store *store)
{
    if (store->has_leftovers && !store->in_batch && sj_store_now_ns() >= store->next_recovery_ns) {
        (void)sj_store_recover_some(store, false);
    }
    sj_error ignored; /* retried a minute later */
    (void)!sj_store_end_silent(store, &ignored);
}

static bool reader_sees_stale(sqlite3 *reader)
{
    sqlite3_stmt *statement = NULL;
    const bool found =
        sqlite3_prepare_v2(reader,
                           "SELECT 1 FROM sessions WHERE aggregates_valid_before_block IS NOT NULL"
                           " AND quarantine_reason IS NULL",
                           -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW;
    sqlite3_finalize(statement);
    return found;
}

static bool is_quiet(const char *path, const char *suffix)
{
    char name[4096];
    struct stat status;
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &status) != 0 || time(NULL) - status.st_mtime >= QUIET_S;
}

sj_status sj_store_recover_file(const char *path, sqlite3 *reader, sj_error *error)
{
    const sj_store_options options = {.path = path};
    sj_store *store = NULL;
    if (!reader_sees_stale(reader) || !is_quiet(path, "") || !is_quiet(path, "-wal")) {
        return SJ_OK;
    }
    SJ_TRY(sj_store_open(&options, &store, error));
    sj_store_close(store);
    return SJ_OK;
}

bool sj_store_maintain(sj_store *store)
{
    char vacuum[64];
    if (store->in_batch) {
        return false;
    }
    if (store->has_leftovers && sj_store_recover_some(store, true) && store->has_leftovers) {
        return true;
    }
    sj_error ignored; /* retried at the next commit */
    (void)!sj_store_end_silent(store, &ignored);
    if (sj_store_has_stale(store) && sj_store_write_some_aggregates(store, &ignored) == SJ_OK &&
        sj_store_has_stale(store)) {
        return true;
    }
    snprintf(vacuum, sizeof(vacuum), "PRAGMA incremental_vacuum(%d)", (int)VACUUM_PAGES);
    sqlite3_exec(store->database, vacuum, NULL, NULL, NULL);
    sj_store_checkpoint(store, SQLITE_CHECKPOINT_TRUNCATE);
    return false;
}
