/* Design notes
 *
 * A batch has its own version, newer than any version of its sessions that the target or this
 * database knows. If a batch fails, or may have failed, readers never see its rows. Its rows in
 * `sessions` either never arrived or are older than the rows of the next attempt. A batch is
 * therefore retried from its beginning, and the lab does not need to know which rows arrived.
 *
 * Rows are read in one transaction of the database and kept in memory (a few MB). A transaction
 * that waited for the network would keep the collector's write-ahead log from being reset. */
#include "collector-server/forward/forwarder.h"

#include "collector-server/forward/forward_choice.h"
#include "collector-server/forward/forward_commands.h"
#include "collector-server/forward/forward_lab.h"
#include "collector-server/forward/forward_months.h"
#include "collector-server/query/session_clock.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "schema/queries/forward/sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_SESSIONS = 256,
    BATCH_BYTES = 16 << 20, /* the default */
    ID_BYTES = 16,
    CONTENT_BYTES = 4096,
    SKIPPED_MAX = 256
};

typedef struct owed_session {
    int64_t session_id; /* 0: the session was removed */
    uint8_t uuid[ID_BYTES];
    char content[CONTENT_BYTES];
    size_t content_bytes;
    uint64_t version;
    int64_t started_realtime_ns;
    uint64_t rows, bytes;
} owed_session;

struct sj_forwarder {
    sqlite3 *reader, *writer;
    const sj_forward_target_kind *kind;
    sj_forward_target *target;
    sj_forward_choice choice;
    char *name;             /* the target's name in forwarded_sessions */
    sj_native_rows *rows;   /* rows of each table */
    sqlite3_stmt **selects; /* query of each table */
    sj_function_keys *functions;
    owed_session *batch;
    size_t batch_count;
    size_t batch_limit; /* 1 after a failure */
    size_t batch_bytes; /* a batch with more bytes does not get further sessions */
    size_t most_months; /* maximum number of months in a batch; 1 after the target refused more */
    unsigned share, shares;
    _Atomic uint64_t *steps;
    uint8_t skipped[SKIPPED_MAX][ID_BYTES];
    size_t skipped_count;
    bool is_checked;
};

static sj_status fail_sql(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_errcode(database)), "forwarding: %s",
                   sqlite3_errmsg(database));
}

static sj_status name_target(sj_forwarder *forwarder, const sj_forward_options *options)
{
    const char *database = options->database != NULL ? options->database : "sojourn";
    const size_t capacity = strlen(options->url) + strlen(database) + 2;
    forwarder->name = malloc(capacity);
    if (forwarder->name == NULL) {
        return SJ_ENOMEM;
    }
    snprintf(forwarder->name, capacity, "%s/%s", options->url, database);
    return SJ_OK;
}

static sj_status open_parts(sj_forwarder *made, const char *database,
                            const sj_forward_target_kind *kind, const sj_forward_options *options,
                            sj_error *error)
{
    made->kind = kind;
    made->batch_limit = BATCH_SESSIONS;
    made->most_months = SJ_FORWARD_MONTHS;
    made->batch_bytes = options->batch_bytes != 0 ? options->batch_bytes : BATCH_BYTES;
    made->shares = options->shares != 0 ? options->shares : 1;
    made->share = options->share;
    made->steps = options->steps;
    SJ_TRY(sj_forward_choice_read(options->tables, &made->choice, error));
    made->rows = calloc(sj_forward_table_count, sizeof(*made->rows));
    made->selects = calloc(sj_forward_table_count, sizeof(sqlite3_stmt *));
    made->batch = calloc(BATCH_SESSIONS, sizeof(*made->batch));
    if (made->rows == NULL || made->selects == NULL || made->batch == NULL ||
        name_target(made, options) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    SJ_TRY(sj_database_open(database, SJ_DATABASE_WRITE, &made->writer, error));
    SJ_TRY(sj_forward_lab_make(made->writer, error));
    SJ_TRY(sj_database_open(database, SJ_DATABASE_READ, &made->reader, error));
    SJ_TRY(sj_function_keys_new(made->reader, &made->functions, error));
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        SJ_TRY(sj_forward_prepare(made->reader, &sj_forward_tables[i], &made->selects[i], error));
        if (sqlite3_bind_parameter_count(made->selects[i]) > 1) {
            sqlite3_bind_text(made->selects[i], 2, made->choice.left_out, -1, SQLITE_STATIC);
        }
    }
    return kind->open(options, &made->target, error);
}

sj_status sj_forwarder_open(const char *database, const sj_forward_target_kind *kind,
                            const sj_forward_options *options, sj_forwarder **forwarder,
                            sj_error *error)
{
    sj_forwarder *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = open_parts(made, database, kind, options, error);
    if (status != SJ_OK) {
        sj_forwarder_close(made);
        return status;
    }
    *forwarder = made;
    return SJ_OK;
}

void sj_forwarder_close(sj_forwarder *forwarder)
{
    if (forwarder == NULL) {
        return;
    }
    for (size_t i = 0; forwarder->rows != NULL && i < sj_forward_table_count; ++i) {
        sj_native_rows_deinit(&forwarder->rows[i]);
    }
    for (size_t i = 0; forwarder->selects != NULL && i < sj_forward_table_count; ++i) {
        sqlite3_finalize(forwarder->selects[i]);
    }
    sj_function_keys_free(forwarder->functions);
    forwarder->kind->close(forwarder->target);
    sqlite3_close(forwarder->reader);
    sqlite3_close(forwarder->writer);
    free(forwarder->rows);
    free(forwarder->selects);
    free(forwarder->batch);
    free(forwarder->name);
    free(forwarder);
}

sj_forward_target *sj_forwarder_target(sj_forwarder *forwarder)
{
    return forwarder->target;
}

static bool is_skipped(const sj_forwarder *forwarder, const void *uuid)
{
    for (size_t i = 0; i < forwarder->skipped_count; ++i) {
        if (memcmp(forwarder->skipped[i], uuid, ID_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static sj_status add_owed(void *context, sqlite3_stmt *row)
{
    sj_forwarder *forwarder = context;
    const void *uuid = sqlite3_column_blob(row, 1);
    if (sqlite3_column_bytes(row, 1) != ID_BYTES || is_skipped(forwarder, uuid)) {
        return SJ_OK;
    }
    if (forwarder->batch_count == forwarder->batch_limit) {
        return SJ_EEXIST;
    }
    owed_session *owed = &forwarder->batch[forwarder->batch_count];
    *owed = (owed_session){.session_id = sqlite3_column_int64(row, 0),
                           .version = (uint64_t)sqlite3_column_int64(row, 3),
                           .started_realtime_ns = sqlite3_column_int64(row, 4)};
    memcpy(owed->uuid, uuid, ID_BYTES);
    const char *content = (const char *)sqlite3_column_text(row, 2);
    const size_t bytes = (size_t)sqlite3_column_bytes(row, 2);
    owed->content_bytes = bytes < CONTENT_BYTES ? bytes : CONTENT_BYTES;
    if (content != NULL) { /* NULL: out of memory */
        memcpy(owed->content, content, owed->content_bytes);
    }
    forwarder->batch_count++;
    return SJ_OK;
}

/* The parameters of the statements in sessions.sql. */
typedef struct owed_binds {
    const char *target;
    int64_t most, shares, share;
    const char *left_out;
} owed_binds;

/* Fills the batch. Sessions beyond its limit are left for the next one. */
static sj_status list_owed(sj_forwarder *forwarder, sj_error *error)
{
    static const sj_sql_field fields[] = {{SJ_BIND_TEXT, offsetof(owed_binds, target)},
                                          {SJ_BIND_INT, offsetof(owed_binds, most)},
                                          {SJ_BIND_INT, offsetof(owed_binds, shares)},
                                          {SJ_BIND_INT, offsetof(owed_binds, share)},
                                          {SJ_BIND_TEXT, offsetof(owed_binds, left_out)}};
    const owed_binds values = {forwarder->name,
                               (int64_t)(forwarder->batch_limit + forwarder->skipped_count),
                               forwarder->shares, forwarder->share, forwarder->choice.left_out};
    forwarder->batch_count = 0;
    const sj_status status =
        sj_sql_each(forwarder->reader, sj_owed_sessions_sql, (sj_sql_binds){fields, 5, &values},
                    add_owed, forwarder, error);
    return status == SJ_EEXIST ? SJ_OK : status;
}

/* Chooses a version that the target has not seen, even if the clock was set back or the database
 * was restored from a copy. */
static sj_status choose_version(sj_forwarder *forwarder, uint64_t *version, sj_error *error)
{
    uint8_t ids[BATCH_SESSIONS * ID_BYTES];
    uint64_t newest = 0;
    for (size_t i = 0; i < forwarder->batch_count; ++i) {
        const owed_session *owed = &forwarder->batch[i];
        memcpy(ids + i * ID_BYTES, owed->uuid, ID_BYTES);
        newest = owed->version > newest ? owed->version : newest;
    }
    uint64_t there = 0;
    SJ_TRY(forwarder->kind->newest_version(
        forwarder->target, &sj_forward_tables[sj_forward_table_count - 1],
        (sj_slice){.data = ids, .size = forwarder->batch_count * ID_BYTES}, &there, error));
    *version = sj_forward_newer_than(there > newest ? there : newest);
    return SJ_OK;
}

static size_t bytes_held(const sj_forwarder *forwarder)
{
    size_t sum = 0;
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        sum += sj_native_rows_bytes(&forwarder->rows[i]);
    }
    return sum;
}

static uint64_t rows_held(const sj_forwarder *forwarder)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        sum += forwarder->rows[i].rows;
    }
    return sum;
}

/* Appends the removal of a session. Its cause is known if `session remove` or retention removed it.
 * The query reads the newest removals first, because owed removals are among them. */
static sj_status collect_removal(sj_forwarder *forwarder, const owed_session *owed,
                                 const sj_forward_place *place, sj_error *error)
{
    static const char sql[] = "SELECT reason FROM removals WHERE session_uuid = ?1"
                              " ORDER BY removal_id DESC LIMIT 1";
    uint8_t lab[ID_BYTES];
    sqlite3_stmt *row = NULL;
    SJ_TRY(sj_forward_lab_read(forwarder->reader, lab, error));
    if (sqlite3_prepare_v2(forwarder->reader, sql, -1, &row, NULL) != SQLITE_OK) {
        return fail_sql(forwarder->reader, error);
    }
    sqlite3_bind_blob(row, 1, owed->uuid, ID_BYTES, SQLITE_STATIC);
    sj_slice cause = {0};
    if (sqlite3_step(row) == SQLITE_ROW) {
        cause.data = sqlite3_column_text(row, 0);
        cause.size = (size_t)sqlite3_column_bytes(row, 0);
    }
    sj_forward_put_removed(place, (sj_slice){.data = lab, .size = ID_BYTES}, cause,
                           &forwarder->rows[sj_forward_table_count - 1]);
    sqlite3_finalize(row);
    return SJ_OK;
}

static sj_status collect_session(sj_forwarder *forwarder, owed_session *owed, uint64_t version,
                                 sj_error *error)
{
    const size_t bytes = bytes_held(forwarder);
    const uint64_t rows = rows_held(forwarder);
    sqlite3_stmt *clock = NULL;
    uint64_t started_ticks = 0;
    sj_forward_place place = {.version = version,
                              .day = sj_forward_day(owed->started_realtime_ns),
                              .functions = forwarder->functions};
    sj_forward_place_own(&place, owed->uuid);
    if (owed->session_id == 0) {
        return collect_removal(forwarder, owed, &place, error);
    }
    const int result = sj_session_clock_read(forwarder->reader, &clock, owed->session_id,
                                             &place.scale, &started_ticks);
    sqlite3_finalize(clock);
    if (result != SQLITE_OK) {
        return sj_fail(error, SJ_ECORRUPT, "session %lld: its clock makes no sense",
                       (long long)owed->session_id);
    }
    SJ_TRY(sj_function_keys_read_paths(forwarder->functions, owed->session_id, error));
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        if (!forwarder->choice.is_left_out[i]) {
            SJ_TRY(sj_forward_collect(forwarder->selects[i], &sj_forward_tables[i],
                                      owed->session_id, &place, &forwarder->rows[i], error));
        }
    }
    owed->bytes = bytes_held(forwarder) - bytes;
    owed->rows = rows_held(forwarder) - rows;
    return SJ_OK;
}

static void count_steps(const sj_forwarder *forwarder, size_t count)
{
    if (forwarder->steps != NULL) {
        atomic_fetch_add(forwarder->steps, count);
    }
}

/* Reads the batch in one transaction. Sessions beyond the batch's bytes and months are left for the
 * next batch. */
static sj_status collect(sj_forwarder *forwarder, uint64_t version, sj_error *error)
{
    size_t taken = 0;
    sj_forward_months months = {0};
    sj_status status = SJ_OK;
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        sj_native_rows_clear(&forwarder->rows[i]);
    }
    if (sqlite3_exec(forwarder->reader, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return fail_sql(forwarder->reader, error);
    }
    while (status == SJ_OK && taken < forwarder->batch_count &&
           bytes_held(forwarder) < forwarder->batch_bytes &&
           sj_forward_months_add(&months,
                                 sj_forward_day(forwarder->batch[taken].started_realtime_ns),
                                 forwarder->most_months)) {
        status = collect_session(forwarder, &forwarder->batch[taken++], version, error);
        count_steps(forwarder, 1);
    }
    sqlite3_exec(forwarder->reader, "COMMIT", NULL, NULL, NULL);
    sj_function_keys_forget(forwarder->functions);
    forwarder->batch_count = taken;
    return status;
}

static sj_status note_one(sj_forwarder *forwarder, sqlite3_stmt *insert, const owed_session *owed,
                          uint64_t version)
{
    sqlite3_reset(insert);
    sqlite3_bind_text(insert, 1, forwarder->name, -1, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 2, owed->uuid, ID_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 3, (sqlite3_int64)version);
    sqlite3_bind_text(insert, 4, owed->content, (int)owed->content_bytes, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 5, (sqlite3_int64)owed->rows);
    sqlite3_bind_int64(insert, 6, (sqlite3_int64)owed->bytes);
    sqlite3_bind_int64(insert, 7, (sqlite3_int64)sj_forward_newer_than(0));
    return sqlite3_step(insert) == SQLITE_DONE ? SJ_OK : SJ_EIO;
}

static sj_status note_given(sj_forwarder *forwarder, uint64_t version, sj_error *error)
{
    sqlite3_stmt *insert = NULL;
    sj_status status = SJ_OK;
    if (sqlite3_exec(forwarder->writer, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(
            forwarder->writer,
            "INSERT OR REPLACE INTO forwarded_sessions VALUES (?1,?2,?3,?4,?5,?6,?7)", -1, &insert,
            NULL) != SQLITE_OK) {
        status = SJ_EIO;
    }
    for (size_t i = 0; status == SJ_OK && i < forwarder->batch_count; ++i) {
        status = note_one(forwarder, insert, &forwarder->batch[i], version);
    }
    if (status != SJ_OK) {
        status = fail_sql(forwarder->writer, error);
    }
    sqlite3_finalize(insert);
    if (status == SJ_OK &&
        sqlite3_exec(forwarder->writer, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        status = fail_sql(forwarder->writer, error);
    }
    if (sqlite3_get_autocommit(forwarder->writer) == 0) {
        sqlite3_exec(forwarder->writer, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

/* Sends one batch. The rows of `sessions` are sent last. */
static sj_status give_batch(sj_forwarder *forwarder, sj_error *error)
{
    uint64_t version = 0;
    SJ_TRY(choose_version(forwarder, &version, error));
    SJ_TRY(collect(forwarder, version, error));
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        if (forwarder->rows[i].rows != 0) {
            SJ_TRY(forwarder->kind->write(forwarder->target, &sj_forward_tables[i],
                                          &forwarder->rows[i], error));
        }
    }
    return note_given(forwarder, version, error);
}

/* True if another session may succeed although this one fails. */
static bool is_own_fault(sj_status status)
{
    return status == SJ_ECORRUPT || status == SJ_EINVAL || status == SJ_EVERSION ||
           status == SJ_ENOMEM;
}

static sj_status give_commands(sj_forwarder *forwarder, sj_error *error)
{
    const sj_forward_way way = {.reader = forwarder->reader,
                                .writer = forwarder->writer,
                                .kind = forwarder->kind,
                                .target = forwarder->target,
                                .name = forwarder->name,
                                .most_months = forwarder->most_months};
    uint64_t given = 0;
    return sj_forward_commands_send(&way, &given, error);
}

static sj_status send_owed(sj_forwarder *forwarder, uint64_t *sent, sj_error *error)
{
    *sent = 0;
    if (!forwarder->is_checked) {
        SJ_TRY(forwarder->kind->check(forwarder->target, error));
        forwarder->is_checked = true;
    }
    if (forwarder->share == 0 && !forwarder->choice.without_commands) {
        SJ_TRY(give_commands(forwarder, error));
    }
    SJ_TRY(list_owed(forwarder, error));
    if (forwarder->batch_count == 0) {
        forwarder->batch_limit = BATCH_SESSIONS;
        return SJ_OK;
    }
    const sj_status status = give_batch(forwarder, error);
    if (status == SJ_OK) {
        *sent = forwarder->batch_count;
        count_steps(forwarder, forwarder->batch_count);
        return SJ_OK;
    }
    forwarder->is_checked = false; /* the tables may have been changed */
    if (is_own_fault(status) && forwarder->batch_limit > 1) {
        forwarder->batch_limit = 1; /* to find the session that fails */
        return send_owed(forwarder, sent, error);
    }
    if (is_own_fault(status) && forwarder->skipped_count < SKIPPED_MAX) {
        memcpy(forwarder->skipped[forwarder->skipped_count++], forwarder->batch[0].uuid, ID_BYTES);
    }
    return status;
}

sj_status sj_forwarder_round(sj_forwarder *forwarder, uint64_t *sent, sj_error *error)
{
    const sj_status status = send_owed(forwarder, sent, error);
    if (status != SJ_ELIMIT || forwarder->most_months == 1) {
        return status;
    }
    forwarder->most_months = 1; /* the target accepts fewer months in one insert */
    return send_owed(forwarder, sent, error);
}

static sj_status count_all(sj_forwarder *forwarder, const char *sql, uint64_t *numbers,
                           sj_error *error)
{
    sqlite3_stmt *row = NULL;
    sj_status status = SJ_OK;
    if (sqlite3_prepare_v2(forwarder->reader, sql, -1, &row, NULL) != SQLITE_OK) {
        return fail_sql(forwarder->reader, error);
    }
    sqlite3_bind_text(row, 1, forwarder->name, -1, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(row) >= 5) {
        sqlite3_bind_text(row, 5, forwarder->choice.left_out, -1, SQLITE_STATIC);
    }
    if (sqlite3_step(row) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(row); ++i) {
            numbers[i] = (uint64_t)sqlite3_column_int64(row, i);
        }
    } else {
        status = fail_sql(forwarder->reader, error);
    }
    sqlite3_finalize(row);
    return status;
}

sj_status sj_forwarder_left_out(sj_forwarder *forwarder, char *list, size_t capacity,
                                sj_error *error)
{
    sqlite3_stmt *row = NULL;
    list[0] = '\0';
    if (sqlite3_prepare_v2(forwarder->reader, sj_left_out_sql, -1, &row, NULL) != SQLITE_OK) {
        return fail_sql(forwarder->reader, error);
    }
    sqlite3_bind_text(row, 1, forwarder->name, -1, SQLITE_STATIC);
    if (sqlite3_step(row) == SQLITE_ROW) {
        snprintf(list, capacity, "%s", (const char *)sqlite3_column_text(row, 0));
    }
    return sqlite3_finalize(row) == SQLITE_OK ? SJ_OK : fail_sql(forwarder->reader, error);
}

sj_status sj_forwarder_account(sj_forwarder *forwarder, sj_forward_account *account,
                               sj_error *error)
{
    uint64_t changed = 0, gone = 0;
    uint64_t given[4] = {0};
    *account = (sj_forward_account){0};
    SJ_TRY(count_all(forwarder, sj_count_changed_sql, &changed, error));
    SJ_TRY(count_all(forwarder, sj_count_gone_sql, &gone, error));
    SJ_TRY(count_all(forwarder, sj_count_unready_sql, &account->unready, error));
    SJ_TRY(count_all(forwarder, sj_count_forwarded_sql, given, error));
    account->owed = changed + gone;
    account->forwarded = given[0];
    account->rows = given[1];
    account->bytes = given[2];
    account->last_realtime_ns = (int64_t)given[3];
    uint8_t lab[ID_BYTES];
    SJ_TRY(sj_forward_lab_read(forwarder->reader, lab, error));
    for (size_t i = 0; i < ID_BYTES; ++i) {
        snprintf(account->lab + 2 * i, sizeof(account->lab) - 2 * i, "%02x", lab[i]);
    }
    return SJ_OK;
}
