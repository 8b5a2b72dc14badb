#include "collector-server/store/verify.h"
#include "proto/base/array.h"
#include "proto/base/progress.h"
#include "proto/base/units.h"

#include "collector-server/store/block_check.h"
#include "collector-server/store/database.h"
#include "collector-server/store/recompute_check.h"
#include "collector-server/store/store_internal.h"
#include "schema/queries/checks/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE_FINDINGS = 20 };

/* Larger sums of calls cannot be real. total() of SQLite returns a double, which is exact up to
 * this number. */
#define MOST_CALLS (1LL << 53)

typedef struct id_list {
    int64_t *ids;
    size_t count, capacity;
} id_list;

typedef struct verify_run {
    sj_store *store;
    const sj_verify_options *options;
    sj_verified *verified;
    id_list *damaged; /* sessions of faulty blocks; a session is listed once per block */
    sj_error *error;
} verify_run;

static sj_status fail(const verify_run *run)
{
    sqlite3 *database = run->store->database;
    return sj_fail(run->error, sj_database_status(sqlite3_errcode(database)),
                   "the database cannot be looked at: %s", sqlite3_errmsg(database));
}

static sj_status prepare(const verify_run *run, const char *sql, sqlite3_stmt **statement)
{
    return sqlite3_prepare_v2(run->store->database, sql, -1, statement, NULL) == SQLITE_OK
               ? SJ_OK
               : fail(run);
}

static void report(const verify_run *run, const sj_finding *finding)
{
    if (run->options->report != NULL) {
        run->options->report(run->options->context, finding);
    }
}

static void report_other(const verify_run *run, int64_t session_id, const char *what)
{
    run->verified->other++;
    report(run, &(sj_finding){.session_id = session_id, .what = what});
}

/* Handles the last result of a query. Reports a damaged database as a finding and returns SJ_OK.
 * Any other error ends the check. */
static sj_status check_end(const verify_run *run, int result)
{
    if (!sj_database_is_damaged(result)) {
        return result == SQLITE_DONE || result == SQLITE_ROW ? SJ_OK : fail(run);
    }
    report_other(run, 0, sqlite3_errmsg(run->store->database));
    return SJ_OK;
}

/* Makes SQLite check its pages, its indexes and all foreign keys. */
static sj_status check_file(const verify_run *run)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(run, "PRAGMA integrity_check(20)", &row));
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(row, 0);
        if (text != NULL && strcmp(text, "ok") != 0) {
            report_other(run, 0, text);
        }
    }
    sj_status status = check_end(run, result);
    sqlite3_finalize(row);
    SJ_TRY(status);
    SJ_TRY(prepare(run, "PRAGMA foreign_key_check", &row));
    for (int i = 0; i < MOST_FILE_FINDINGS && (result = sqlite3_step(row)) == SQLITE_ROW; ++i) {
        char text[160];
        snprintf(text, sizeof(text), "row %lld of %s belongs to no row of %s",
                 (long long)sqlite3_column_int64(row, 1), sqlite3_column_text(row, 0),
                 sqlite3_column_text(row, 2));
        report_other(run, 0, text);
    }
    status = check_end(run, result);
    sqlite3_finalize(row);
    return status;
}

/* Adds the session of a faulty block to `damaged`. If out of memory, the session is not added, so
 * check_recomputed reports differences that the block causes. */
static void note_damaged(const verify_run *run, int64_t session_id)
{
    id_list *list = run->damaged;
    if (sj_array_reserve(&list->ids, &list->capacity, list->count, 1, sizeof(*list->ids)) ==
        SJ_OK) {
        list->ids[list->count++] = session_id;
    }
}

static int compare_ids(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Removes the sessions of `list` from `ids`. Returns the number of sessions that remain. */
static size_t leave_out(const id_list *list, int64_t *ids, size_t count)
{
    size_t kept = 0;
    if (list->count == 0) {
        return count;
    }
    qsort(list->ids, list->count, sizeof(*list->ids), compare_ids);
    for (size_t i = 0; i < count; ++i) {
        if (bsearch(&ids[i], list->ids, list->count, sizeof(*ids), compare_ids) == NULL) {
            ids[kept++] = ids[i];
        }
    }
    return kept;
}

static sj_status check_block(const verify_run *run, sj_block_checker *checker, int64_t block_id)
{
    sj_block_verdict verdict;
    const sj_status status = sj_block_checker_check(checker, block_id, &verdict);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK /* the block was removed meanwhile */
                                      : sj_fail(run->error, status, "no memory for a block");
    }
    run->verified->blocks++;
    if (verdict.fault != NULL) {
        run->verified->bad_blocks++;
        note_damaged(run, verdict.session_id);
        report(run, &(sj_finding){.session_id = verdict.session_id,
                                  .stream_id = verdict.stream_id,
                                  .block_id = block_id,
                                  .calls = verdict.calls,
                                  .what = verdict.fault});
    } else if (verdict.is_marked) {
        run->verified->freed_blocks++;
    }
    if (run->options->check_only || verdict.is_away ||
        (verdict.fault != NULL) == verdict.is_marked) {
        return SJ_OK;
    }
    const sj_status marked = SJ_RUN(&run->store->sql, block_quarantine, run->error,
                                    .block_id = block_id, .quarantined = verdict.fault);
    /* A damaged page can make the row unreadable (session_id is 0) and refuse the mark. */
    return verdict.session_id != 0 ? marked : SJ_OK;
}

static sj_status list_ids(const verify_run *run, const char *sql, int64_t **ids, size_t *count)
{
    size_t capacity = 0;
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(run, sql, &row));
    sj_status status = SJ_OK;
    int result = SQLITE_ROW;
    while (status == SJ_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        status = sj_array_reserve(ids, &capacity, *count, 1, sizeof(**ids));
        if (status == SJ_OK) {
            (*ids)[(*count)++] = sqlite3_column_int64(row, 0);
        }
    }
    if (status == SJ_OK) {
        status = check_end(run, result);
    }
    sqlite3_finalize(row);
    return status;
}

static sj_status check_blocks(const verify_run *run)
{
    int64_t *ids = NULL;
    size_t count = 0;
    sj_block_checker *checker = NULL;
    sj_status status = list_ids(run, "SELECT block_id FROM blocks ORDER BY block_id", &ids, &count);
    if (status == SJ_OK) {
        status = sj_block_checker_new(run->store->database, "main", &checker, run->error);
    }
    const sj_progress_work work = sj_progress_begin(count);
    for (size_t i = 0; i < count && status == SJ_OK; ++i) {
        status = check_block(run, checker, ids[i]);
        sj_progress_step(work);
    }
    sj_progress_end(work);
    sj_block_checker_free(checker);
    free(ids);
    return status;
}

static void check_session(const verify_run *run, sqlite3_stmt *row)
{
    char text[200];
    const int64_t session_id = sqlite3_column_int64(row, 0);
    long long of[11];
    for (int i = 1; i < 11; ++i) {
        of[i] = sqlite3_column_int64(row, i);
    }
    run->verified->sessions++;
    if (of[5] == 0) {
        snprintf(text, sizeof(text),
                 "its aggregates count %lld blocks and %lld calls, stored are %lld and %lld", of[1],
                 of[2], of[3], of[4]);
        report_other(run, session_id, text);
    } else if (of[6] > MOST_CALLS || of[7] > MOST_CALLS || of[8] > MOST_CALLS) {
        report_other(run, session_id, "its aggregates count more calls than there can be");
    } else if (of[6] != of[7] || of[7] != of[8]) {
        snprintf(text, sizeof(text),
                 "%lld calls by call path, %lld by function and %lld by caller differ", of[6],
                 of[7], of[8]);
        report_other(run, session_id, text);
    } else if (of[10] != 0) {
        snprintf(text, sizeof(text), "%lld functions have more calls without a clock than calls",
                 of[10]);
        report_other(run, session_id, text);
    } else if (of[9] != 0) {
        report_other(run, session_id,
                     "it has no timeline and no slow calls; `sojourn verify --rebuild` makes them");
    }
}

static sj_status check_sums(const verify_run *run)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(run, sj_verify_sums_sql, &row));
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        check_session(run, row);
    }
    const sj_status status = check_end(run, result);
    sqlite3_finalize(row);
    return status;
}

/* Reports sessions whose sent calls or blocks are not all stored. The missing numbers are noted in
 * the session or computed from its totals. */
static sj_status check_missing(const verify_run *run)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(run, sj_verify_missing_sql, &row));
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        char text[120];
        snprintf(text, sizeof(text), "%s and %s were sent and are not stored",
                 SJ_COUNTED((uint64_t)sqlite3_column_int64(row, 1), "call"),
                 SJ_COUNTED((uint64_t)sqlite3_column_int64(row, 2), "block"));
        report_other(run, sqlite3_column_int64(row, 0), text);
        run->verified->missing++;
    }
    const sj_status status = check_end(run, result);
    sqlite3_finalize(row);
    return status;
}

static void report_recomputed(void *context, int64_t session_id, const char *what)
{
    report_other(context, session_id, what);
}

static sj_status check_recomputed(const verify_run *run)
{
    int64_t *ids = NULL;
    size_t count = 0;
    sj_status status = list_ids(run, "SELECT session_id FROM sessions ORDER BY 1", &ids, &count);
    if (status == SJ_OK) {
        count = leave_out(run->damaged, ids, count);
        status = sj_store_check_recomputed(run->store, ids, count, report_recomputed,
                                           (void *)(uintptr_t)run, run->error);
    }
    free(ids);
    return status;
}

static sj_status check_apart(const verify_run *run)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(
        prepare(run,
                "SELECT session_id, aggregates_valid_before_block, quarantine_reason FROM sessions"
                " WHERE quarantine_reason IS NOT NULL AND state <> 'removing' ORDER BY 1",
                &row));
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        char text[400];
        snprintf(text, sizeof(text),
                 "its aggregates lack its blocks from %lld on, as %s (--rebuild rebuilds them)",
                 (long long)sqlite3_column_int64(row, 1), sqlite3_column_text(row, 2));
        run->verified->sessions++;
        report_other(run, sqlite3_column_int64(row, 0), text);
    }
    const sj_status status = check_end(run, result);
    sqlite3_finalize(row);
    return status;
}

static sj_status check_all(const verify_run *run)
{
    SJ_TRY(check_file(run));
    /* Rows of a damaged file can be wrong, so they are not recomputed. */
    const bool is_sound_file = run->verified->other == 0;
    SJ_TRY(check_blocks(run));
    SJ_TRY(check_sums(run));
    SJ_TRY(check_missing(run));
    if (is_sound_file) {
        SJ_TRY(check_recomputed(run));
    }
    return check_apart(run);
}

sj_status sj_store_verify(sj_store *store, const sj_verify_options *options, sj_verified *verified,
                          sj_error *error)
{
    id_list damaged = {0};
    const verify_run run = {.store = store,
                            .options = options,
                            .verified = verified,
                            .damaged = &damaged,
                            .error = error};
    *verified = (sj_verified){0};
    const sj_status status = check_all(&run);
    free(damaged.ids);
    return status;
}
