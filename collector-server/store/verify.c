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

/* Larger sums of calls cannot be real. total() of SQLite returns a double, which is exact up to
 * this number. */
#define MOST_CALLS (1LL << 53)

typedef struct verify_run {
    sj_store *store;
    const sj_verify_options *options;
    sj_verified *verified;
    sj_sql_numbers *damaged; /* sessions of faulty blocks; a session is listed once per block */
    sj_error *error;
} verify_run;

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

/* Handles the status of a query. Reports a damaged database as a finding and returns SJ_OK. Any
 * other error ends the check. */
static sj_status check_end(const verify_run *run, sj_status status)
{
    if (status != SJ_ECORRUPT) {
        return status;
    }
    report_other(run, 0, sqlite3_errmsg(run->store->database));
    return SJ_OK;
}

/* Reads the rows of a query that has no parameters. */
static sj_status check_rows(const verify_run *run, const char *sql, sj_sql_row_reader *read_row)
{
    return check_end(run, sj_sql_each(run->store->database, sql, (sj_sql_binds){0}, read_row,
                                      (void *)(uintptr_t)run, run->error));
}

static sj_status report_integrity(void *run, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 0);
    if (text != NULL && strcmp(text, "ok") != 0) {
        report_other(run, 0, text);
    }
    return SJ_OK;
}

static sj_status report_foreign_key(void *run, sqlite3_stmt *row)
{
    char text[160];
    snprintf(text, sizeof(text), "row %lld of %s belongs to no row of %s",
             (long long)sqlite3_column_int64(row, 1), sqlite3_column_text(row, 0),
             sqlite3_column_text(row, 2));
    report_other(run, 0, text);
    return SJ_OK;
}

/* Makes SQLite check its pages, its indexes and all foreign keys. */
static sj_status check_file(const verify_run *run)
{
    SJ_TRY(check_rows(run, "PRAGMA integrity_check(20)", report_integrity));
    return check_rows(run, "SELECT * FROM pragma_foreign_key_check LIMIT 20", report_foreign_key);
}

/* Adds the session of a faulty block to `damaged`. If out of memory, the session is not added, so
 * check_recomputed reports differences that the block causes. */
static void note_damaged(const verify_run *run, int64_t session_id)
{
    sj_sql_numbers *list = run->damaged;
    if (sj_array_reserve(&list->values, &list->capacity, list->count, 1, sizeof(*list->values)) ==
        SJ_OK) {
        list->values[list->count++] = session_id;
    }
}

static int compare_ids(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Removes the sessions of `list` from `ids`. */
static void leave_out(const sj_sql_numbers *list, sj_sql_numbers *ids)
{
    size_t kept = 0;
    if (list->count == 0) {
        return;
    }
    qsort(list->values, list->count, sizeof(*list->values), compare_ids);
    for (size_t i = 0; i < ids->count; ++i) {
        if (bsearch(&ids->values[i], list->values, list->count, sizeof(*ids->values),
                    compare_ids) == NULL) {
            ids->values[kept++] = ids->values[i];
        }
    }
    ids->count = kept;
}

static sj_status check_block(const verify_run *run, sj_block_checker *checker, int64_t block_id)
{
    sj_block_verdict verdict;
    const sj_status status = sj_block_checker_check(checker, block_id, &verdict);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND
                   ? SJ_OK /* the block was removed meanwhile */
                   : sj_fail(run->error, status, "cannot read a block: %s", sj_status_text(status));
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

static sj_status list_ids(const verify_run *run, const char *sql, sj_sql_numbers *ids)
{
    return check_end(
        run, sj_sql_list_numbers(run->store->database, sql, (sj_sql_binds){0}, ids, run->error));
}

static sj_status check_blocks(const verify_run *run)
{
    sj_sql_numbers ids = {0};
    sj_block_checker *checker = NULL;
    sj_status status = list_ids(run, "SELECT block_id FROM blocks ORDER BY block_id", &ids);
    if (status == SJ_OK) {
        status = sj_block_checker_new(run->store->database, "main", &checker, run->error);
    }
    const sj_progress_work work = sj_progress_begin(ids.count);
    for (size_t i = 0; i < ids.count && status == SJ_OK; ++i) {
        status = check_block(run, checker, ids.values[i]);
        sj_progress_step(work);
    }
    sj_progress_end(work);
    sj_block_checker_free(checker);
    free(ids.values);
    return status;
}

static sj_status check_session(void *context, sqlite3_stmt *row)
{
    const verify_run *run = context;
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
    return SJ_OK;
}

/* Reports a session whose sent calls or blocks are not all stored. The missing numbers are noted in
 * the session or computed from its totals. */
static sj_status report_missing(void *context, sqlite3_stmt *row)
{
    const verify_run *run = context;
    char text[120];
    snprintf(text, sizeof(text), "%s and %s were sent and are not stored",
             SJ_COUNTED((uint64_t)sqlite3_column_int64(row, 1), "call"),
             SJ_COUNTED((uint64_t)sqlite3_column_int64(row, 2), "block"));
    report_other(run, sqlite3_column_int64(row, 0), text);
    run->verified->missing++;
    return SJ_OK;
}

static void report_recomputed(void *context, int64_t session_id, const char *what)
{
    report_other(context, session_id, what);
}

static sj_status check_recomputed(const verify_run *run)
{
    sj_sql_numbers ids = {0};
    sj_status status = list_ids(run, "SELECT session_id FROM sessions ORDER BY 1", &ids);
    if (status == SJ_OK) {
        leave_out(run->damaged, &ids);
        status = sj_store_check_recomputed(run->store, ids.values, ids.count, report_recomputed,
                                           (void *)(uintptr_t)run, run->error);
    }
    free(ids.values);
    return status;
}

static sj_status report_quarantined(void *context, sqlite3_stmt *row)
{
    const verify_run *run = context;
    char text[400];
    snprintf(text, sizeof(text),
             "its aggregates lack its blocks from %lld on, as %s (--rebuild rebuilds them)",
             (long long)sqlite3_column_int64(row, 1), sqlite3_column_text(row, 2));
    run->verified->sessions++;
    report_other(run, sqlite3_column_int64(row, 0), text);
    return SJ_OK;
}

static sj_status check_all(const verify_run *run)
{
    SJ_TRY(check_file(run));
    /* Rows of a damaged file can be wrong, so they are not recomputed. */
    const bool is_sound_file = run->verified->other == 0;
    SJ_TRY(check_blocks(run));
    SJ_TRY(check_rows(run, sj_verify_sums_sql, check_session));
    SJ_TRY(check_rows(run, sj_verify_missing_sql, report_missing));
    if (is_sound_file) {
        SJ_TRY(check_recomputed(run));
    }
    return check_rows(run,
                      "SELECT session_id, aggregates_valid_before_block, quarantine_reason FROM "
                      "sessions WHERE quarantine_reason IS NOT NULL AND state <> 'removing' "
                      "ORDER BY 1",
                      report_quarantined);
}

sj_status sj_store_verify(sj_store *store, const sj_verify_options *options, sj_verified *verified,
                          sj_error *error)
{
    sj_sql_numbers damaged = {0};
    const verify_run run = {.store = store,
                            .options = options,
                            .verified = verified,
                            .damaged = &damaged,
                            .error = error};
    *verified = (sj_verified){0};
    const sj_status status = check_all(&run);
    free(damaged.values);
    return status;
}
