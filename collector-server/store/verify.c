#include "collector-server/store/verify.h"
#include "proto/base/array.h"
#include "proto/base/progress.h"
#include "proto/base/units.h"

#include "collector-server/store/database.h"
#include "collector-server/store/recompute_check.h"
#include "collector-server/store/store_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE_FINDINGS = 20 };

#define MOST_CALLS (1LL << 53) /* of a session; total() is exact as far as that */

typedef struct id_list {
    int64_t *ids;
    size_t count, capacity;
} id_list;

typedef struct verify_run {
    sj_store *store;
    const sj_verify_options *options;
    sj_verified *verified;
    id_list *damaged; /* sessions with blocks that cannot be read, each as often */
    sj_error *error;
} verify_run;

/* A row of `blocks` with what is known of its session. */
typedef struct block_row {
    sj_finding finding;
    sj_session_id session;
    uint32_t stream;
    int64_t kind, first_event, event_count, first_call, call_count, lost_calls;
    bool is_marked;
    bool is_away; /* its file is: nothing is known of the block */
    sj_slice data;
    sj_error why; /* there is no data */
} block_row;

static const char row_sql[] =
    "SELECT s.session_id, s.uuid, st.stream_id, st.number, b.kind, b.first_event, b.event_count,"
    " b.first_call, b.call_count, b.lost_calls, b.quarantined IS NOT NULL, b.storage, b.data FROM"
    " blocks b"
    " JOIN streams st USING (stream_id) JOIN sessions s USING (session_id) WHERE b.block_id = ?1";

/* Aggregates count all blocks, or those that are not marked: made when they came, or anew. */
static const char sums_sql[] =
    "WITH stored AS (SELECT st.session_id, count(*) AS blocks, sum(b.quarantined IS NULL) AS sound,"
    "  total(iif(b.kind = 1, b.call_count, 0)) AS calls,"
    "  total(iif(b.kind = 1 AND b.quarantined IS NULL, b.call_count, 0)) AS sound_calls"
    "  FROM streams st JOIN blocks b USING (stream_id) GROUP BY st.session_id),"
    " counted AS (SELECT s.session_id, s.stored_blocks, s.stored_calls - coalesce((SELECT "
    "total(calls)"
    "  FROM profiles p WHERE p.session_id = s.session_id), 0) AS stored_calls, coalesce(t.blocks, "
    "0)"
    "  AS blocks, coalesce(t.calls, 0) AS calls, coalesce(t.sound, 0) AS sound,"
    "  coalesce(t.sound_calls, 0) AS sound_calls FROM sessions s LEFT JOIN stored t"
    "  USING (session_id) WHERE s.aggregates_valid_before_block IS NULL AND s.state <> 'removing')"
    " SELECT session_id, stored_blocks, stored_calls, blocks, calls,"
    " (stored_blocks = blocks AND stored_calls = calls)"
    " OR (stored_blocks = sound AND stored_calls = sound_calls),"
    " coalesce((SELECT total(calls) FROM call_paths c WHERE c.session_id = counted.session_id), 0),"
    " coalesce((SELECT total(calls) FROM function_stats f WHERE f.session_id = "
    "counted.session_id), "
    "0),"
    " coalesce((SELECT total(calls) FROM call_edges e WHERE e.session_id = counted.session_id), 0),"
    " calls > 0 AND NOT EXISTS (SELECT 1 FROM timeline JOIN streams st USING (stream_id)"
    "  WHERE st.session_id = counted.session_id),"
    " (SELECT count(*) FROM function_stats f WHERE f.session_id = counted.session_id"
    "  AND f.untimed_calls > f.calls) FROM counted ORDER BY 1";

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

/* The end of rows: damage is a finding, anything else ends the look. */
static sj_status take_end(const verify_run *run, int result)
{
    if (!sj_database_is_damaged(result)) {
        return result == SQLITE_DONE || result == SQLITE_ROW ? SJ_OK : fail(run);
    }
    report_other(run, 0, sqlite3_errmsg(run->store->database));
    return SJ_OK;
}

/* What SQLite finds in its own pages and indexes. */
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
    sj_status status = take_end(run, result);
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
    status = take_end(run, result);
    sqlite3_finalize(row);
    return status;
}

static sj_status check_identity(const block_row *row, const sj_block_header *header)
{
    const bool same = memcmp(&header->session, &row->session, sizeof(row->session)) == 0 &&
                      header->stream == row->stream && header->kind == row->kind &&
                      (int64_t)header->first_event == row->first_event &&
                      header->event_count == row->event_count;
    const bool counts_alike = (int64_t)header->first_call == row->first_call &&
                              header->call_count == row->call_count &&
                              (int64_t)header->lost_calls == row->lost_calls;
    return same && counts_alike ? SJ_OK : SJ_EINVAL;
}

/* Why a block cannot be read; NULL: it can. */
static const char *find_fault(const verify_run *run, block_row *row)
{
    sj_store *store = run->store;
    sj_block block;
    sj_block_summary summary;
    sj_stack_context stack = {.store = store, .stream_id = row->finding.stream_id};
    if (row->data.size == 0) {
        return row->why.text[0] != '\0' ? row->why.text : "its bytes are missing";
    }
    sj_status status = sj_block_decode(store->decoder, row->data, SJ_WANT_ALL, &block);
    if (status != SJ_OK) {
        return sj_status_text(status);
    }
    if (check_identity(row, &block.header) != SJ_OK) {
        return "its bytes are those of another block";
    }
    if (block.header.kind != SJ_BLOCK_CALLS) {
        return NULL;
    }
    status =
        sj_callgraph_measure(store->scratch_graph, &block, sj_store_stack_frames, &stack, &summary);
    row->is_away = status == SJ_EIO;
    return status == SJ_OK          ? NULL
           : row->is_away           ? "the stack that it refers to is in a file that cannot be read"
           : status == SJ_ENOTFOUND ? "the stack that it refers to is missing"
                                    : "its events contradict each other";
}

static void read_row(const verify_run *run, sqlite3_stmt *statement, int64_t block_id,
                     block_row *row)
{
    *row = (block_row){
        .finding = {.session_id = sqlite3_column_int64(statement, 0),
                    .stream_id = sqlite3_column_int64(statement, 2),
                    .block_id = block_id,
                    .calls = sqlite3_column_int64(statement, 8)},
        .stream = (uint32_t)sqlite3_column_int64(statement, 3),
        .kind = sqlite3_column_int64(statement, 4),
        .first_event = sqlite3_column_int64(statement, 5),
        .event_count = sqlite3_column_int64(statement, 6),
        .first_call = sqlite3_column_int64(statement, 7),
        .call_count = sqlite3_column_int64(statement, 8),
        .lost_calls = sqlite3_column_int64(statement, 9),
        .is_marked = sqlite3_column_int(statement, 10) != 0,
    };
    row->is_away = sj_block_files_get_columns(run->store->files, statement, 11, 12, &row->data,
                                              &row->why) == SJ_EIO;
    if (sqlite3_column_bytes(statement, 1) == (int)sizeof(row->session.bytes)) {
        memcpy(row->session.bytes, sqlite3_column_blob(statement, 1), sizeof(row->session.bytes));
    }
}

/* A session that finds no room here has its sums compared, in vain. */
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

/* Takes the sessions that the list names out of `ids`; returns how many are left. */
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

static sj_status check_block(const verify_run *run, sqlite3_stmt *statement, int64_t block_id)
{
    block_row row = {.finding.block_id = block_id};
    const char *fault = "the page that it lies on is damaged";
    sqlite3_bind_int64(statement, 1, block_id);
    const int result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        read_row(run, statement, block_id, &row);
        fault = find_fault(run, &row);
    } else if (result == SQLITE_DONE) { /* removed meanwhile */
        sqlite3_reset(statement);
        return SJ_OK;
    }
    sqlite3_reset(statement);
    run->verified->blocks++;
    if (fault != NULL) {
        run->verified->bad_blocks++;
        note_damaged(run, row.finding.session_id);
        row.finding.what = fault;
        report(run, &row.finding);
    } else if (row.is_marked) {
        run->verified->freed_blocks++;
    }
    if (run->options->only_look || row.is_away || (fault != NULL) == row.is_marked) {
        return SJ_OK;
    }
    const sj_status status =
        sj_sql_run(&run->store->sql, SJ_SQL_BLOCK_QUARANTINE, run->error, "it", block_id, fault);
    return result == SQLITE_ROW ? status : SJ_OK; /* a damaged page may take no mark */
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
        status = take_end(run, result);
    }
    sqlite3_finalize(row);
    return status;
}

static sj_status check_blocks(const verify_run *run)
{
    int64_t *ids = NULL;
    size_t count = 0;
    sqlite3_stmt *statement = NULL;
    sj_status status = list_ids(run, "SELECT block_id FROM blocks ORDER BY block_id", &ids, &count);
    if (status == SJ_OK) {
        status = prepare(run, row_sql, &statement);
    }
    const sj_progress_work work = sj_progress_begin(count);
    for (size_t i = 0; i < count && status == SJ_OK; ++i) {
        status = check_block(run, statement, ids[i]);
        sj_progress_step(work);
    }
    sj_progress_end(work);
    sqlite3_finalize(statement);
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
                     "it has no timeline and no slow calls: it was stored by an older version");
    }
}

static sj_status check_sums(const verify_run *run)
{
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(run, sums_sql, &row));
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        check_session(run, row);
    }
    const sj_status status = take_end(run, result);
    sqlite3_finalize(row);
    return status;
}

/* What was sent and is not stored, as the session says or as its figures do. */
static sj_status check_missing(const verify_run *run)
{
    static const char missing_sql[] =
        "SELECT session_id, max(missing_calls, coalesce(sent_calls - stored_calls - lost_calls +"
        " missing_calls, 0)) AS calls,"
        " max(missing_blocks, coalesce(sent_blocks - stored_blocks, 0)) AS blocks"
        " FROM sessions WHERE state NOT IN ('recording', 'removing')"
        " AND aggregates_valid_before_block IS NULL AND (calls > 0 OR blocks > 0) ORDER BY 1";
    sqlite3_stmt *row = NULL;
    SJ_TRY(prepare(run, missing_sql, &row));
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        char text[120];
        snprintf(text, sizeof(text), "%s and %s were sent and are not stored",
                 SJ_COUNTED((uint64_t)sqlite3_column_int64(row, 1), "call"),
                 SJ_COUNTED((uint64_t)sqlite3_column_int64(row, 2), "block"));
        report_other(run, sqlite3_column_int64(row, 0), text);
        run->verified->missing++;
    }
    const sj_status status = take_end(run, result);
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
    const sj_status status = take_end(run, result);
    sqlite3_finalize(row);
    return status;
}

static sj_status check_all(const verify_run *run)
{
    SJ_TRY(check_file(run));
    const bool is_sound_file = run->verified->other == 0; /* else rows may be anything */
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
