#include "collector-server/fleet/fleet_internal.h"

#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "collector-server/store/stored_text.h"
#include "collector-server/store/tags.h"
#include "proto/base/ids.h"
#include "schema/queries/fleet/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TAGS = 256 };

static const int64_t ns_per_hour = INT64_C(3600) * 1000000000;

int64_t sj_fleet_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

sj_status sj_fleet_open(const char *path, sj_fleet **fleet, sj_error *error)
{
    sj_fleet *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = sj_database_open(path, SJ_DATABASE_WRITE, &made->database, error);
    if (status != SJ_OK) {
        free(made);
        return status;
    }
    *fleet = made;
    return SJ_OK;
}

void sj_fleet_close(sj_fleet *fleet)
{
    if (fleet != NULL) {
        sqlite3_close(fleet->database);
        free(fleet);
    }
}

sqlite3 *sj_fleet_database(const sj_fleet *fleet)
{
    return fleet->database;
}

sj_status sj_fleet_failed(const sj_fleet *fleet, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_errcode(fleet->database)),
                   "the fleet's tables: %s", sqlite3_errmsg(fleet->database));
}

sj_status sj_fleet_prepare(const sj_fleet *fleet, const char *sql, sqlite3_stmt **statement,
                           sj_error *error)
{
    return sqlite3_prepare_v2(fleet->database, sql, -1, statement, NULL) == SQLITE_OK
               ? SJ_OK
               : sj_fleet_failed(fleet, error);
}

sj_status sj_fleet_finish_statement(const sj_fleet *fleet, sqlite3_stmt *statement, sj_error *error)
{
    const sj_status status = sj_sql_each_row(statement, NULL, NULL, NULL) == SJ_OK
                                 ? SJ_OK
                                 : sj_fleet_failed(fleet, error);
    sqlite3_finalize(statement);
    return status;
}

sj_status sj_fleet_read_number(const sj_fleet *fleet, sqlite3_stmt *statement, int64_t *number,
                               sj_error *error)
{
    const int result = sqlite3_step(statement);
    sj_status status = SJ_ENOTFOUND;
    if (result == SQLITE_ROW) {
        *number = sqlite3_column_int64(statement, 0);
        return sj_fleet_finish_statement(fleet, statement, error);
    }
    if (result != SQLITE_DONE) {
        status = sj_fleet_failed(fleet, error);
    }
    sqlite3_finalize(statement);
    return status;
}

sj_status sj_fleet_invite(sj_fleet *fleet, unsigned hours, int64_t for_device,
                          char token[SJ_SECRET_TEXT_BYTES], sj_error *error)
{
    uint8_t hash[SJ_SECRET_HASH_BYTES];
    sqlite3_stmt *statement;
    SJ_TRY(sj_secret_make(token, error));
    SJ_TRY(sj_fleet_prepare(fleet,
                            "INSERT INTO enrolment_tokens (token_hash, created_realtime_ns,"
                            " expires_realtime_ns, for_device_id) VALUES (?1, ?2, ?3,"
                            " nullif(?4, 0))",
                            &statement, error));
    sj_secret_hash(token, hash);
    sqlite3_bind_blob(statement, 1, hash, sizeof(hash), SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 2, sj_fleet_now_ns());
    sqlite3_bind_int64(statement, 3, sj_fleet_now_ns() + (int64_t)hours * ns_per_hour);
    sqlite3_bind_int64(statement, 4, for_device);
    return sj_fleet_finish_statement(fleet, statement, error);
}

/* Inserts or updates the row of the device that sent the HELLO. */
static sj_status put_device(sj_fleet *fleet, const Sojourn__Hello *hello, int64_t *device_id,
                            sj_error *error)
{
    sqlite3_stmt *statement;
    if (hello->device_id.len != SJ_DEVICE_ID_BYTES) {
        return sj_fail(error, SJ_ECORRUPT, "a device id has 16 bytes");
    }
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_device_put_sql, &statement, error));
    char *tags = sj_tags_json(hello->tags, hello->n_tags);
    sqlite3_bind_blob(statement, 1, hello->device_id.data, SJ_DEVICE_ID_BYTES, SQLITE_TRANSIENT);
    const char *const texts[] = {hello->device_name,     hello->model, hello->os, hello->machine,
                                 hello->product_version, hello->build, tags};
    for (int i = 0; i < 7; i++) {
        sqlite3_bind_text(statement, 2 + i, texts[i], -1, SQLITE_TRANSIENT);
    }
    sqlite3_free(tags);
    sqlite3_bind_int64(statement, 9, sj_fleet_now_ns());
    return sj_fleet_read_number(fleet, statement, device_id, error);
}

/* Finds the invitation of this token. Returns SJ_EPERM if there is none, or if it does not admit
 * a device with this UUID. `*is_takeover` is true if the device has had a token before. */
static sj_status find_invitation(sj_fleet *fleet, const Sojourn__Hello *hello,
                                 int64_t *enrolment_id, bool *is_takeover, sj_error *error)
{
    uint8_t hash[SJ_SECRET_HASH_BYTES];
    sqlite3_stmt *statement;
    bool is_found = false;
    bool is_allowed = false;
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_invitation_sql, &statement, error));
    sj_secret_hash(hello->token, hash);
    sqlite3_bind_blob(statement, 1, hash, sizeof(hash), SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 2, sj_fleet_now_ns());
    sqlite3_bind_blob(statement, 3, hello->device_id.data, (int)hello->device_id.len,
                      SQLITE_TRANSIENT);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        is_found = true;
        *enrolment_id = sqlite3_column_int64(statement, 0);
        *is_takeover = sqlite3_column_int(statement, 1) != 0;
        is_allowed = sqlite3_column_int(statement, 2) != 0;
    }
    SJ_TRY(sj_fleet_finish_statement(fleet, statement, error));
    if (!is_found) {
        return sj_fail(error, SJ_EPERM,
                       "the enrolment token is unknown, used or expired; make a new one on the "
                       "collector's machine with `sojourn device invite`");
    }
    return is_allowed ? SJ_OK
                      : sj_fail(error, SJ_EPERM,
                                "the invitation is for another device, or this one is enrolled "
                                "already: to enrol it again, name it when you invite it "
                                "(`sojourn device invite FILE DEVICE`)");
}

static sj_status use_invitation(sj_fleet *fleet, int64_t enrolment_id, int64_t device_id,
                                sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet,
                            "UPDATE enrolment_tokens SET device_id = ?1, used_realtime_ns = ?2"
                            " WHERE enrolment_id = ?3",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_int64(statement, 2, sj_fleet_now_ns());
    sqlite3_bind_int64(statement, 3, enrolment_id);
    return sj_fleet_finish_statement(fleet, statement, error);
}

static sj_status put_token(sj_fleet *fleet, int64_t device_id, const char *token, sj_error *error)
{
    uint8_t hash[SJ_SECRET_HASH_BYTES];
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_token_put_sql, &statement, error));
    sj_secret_hash(token, hash);
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_blob(statement, 2, hash, sizeof(hash), SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 3, sj_fleet_now_ns());
    return sj_fleet_finish_statement(fleet, statement, error);
}

static sj_status run_simple(const sj_fleet *fleet, const char *sql, sj_error *error)
{
    return sqlite3_exec(fleet->database, sql, NULL, NULL, NULL) == SQLITE_OK
               ? SJ_OK
               : sj_fleet_failed(fleet, error);
}

sj_status sj_fleet_begin(const sj_fleet *fleet, sj_error *error)
{
    return run_simple(fleet, "BEGIN IMMEDIATE", error);
}

sj_status sj_fleet_end(const sj_fleet *fleet, sj_status status, sj_error *error)
{
    if (status == SJ_OK) {
        status = run_simple(fleet, "COMMIT", error);
    }
    if (status != SJ_OK) {
        sqlite3_exec(fleet->database, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

void sj_fleet_bind_text(sqlite3_stmt *statement, int place, const char *text)
{
    (void)sj_stored_text_bind(statement, place, text, text != NULL ? strlen(text) : 0);
}

/* Stores that a device was admitted or revoked. */
static sj_status note_event(sj_fleet *fleet, int64_t device_id, const char *what, const char *by,
                            sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet,
                            "INSERT INTO token_events (device_id, what, done_by, realtime_ns)"
                            " VALUES (?1, ?2, ?3, ?4)",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sj_fleet_bind_text(statement, 2, what);
    sj_fleet_bind_text(statement, 3, by);
    sqlite3_bind_int64(statement, 4, sj_fleet_now_ns());
    return sj_fleet_finish_statement(fleet, statement, error);
}

sj_status sj_fleet_enrol(sj_fleet *fleet, const Sojourn__Hello *hello,
                         char token[SJ_SECRET_TEXT_BYTES], int64_t *namesakes, sj_error *error)
{
    int64_t device_id = 0;
    int64_t enrolment_id = 0;
    bool is_takeover = false;
    sqlite3_stmt *statement;
    if (hello->n_tags > MAX_TAGS) {
        return sj_fail(error, SJ_ELIMIT, "a device has at most %d tags", (int)MAX_TAGS);
    }
    SJ_TRY(sj_secret_make(token, error));
    SJ_TRY(sj_fleet_begin(fleet, error));
    sj_status status = find_invitation(fleet, hello, &enrolment_id, &is_takeover, error);
    if (status == SJ_OK) {
        status = put_device(fleet, hello, &device_id, error);
    }
    if (status == SJ_OK) {
        status = use_invitation(fleet, enrolment_id, device_id, error);
    }
    if (status == SJ_OK) {
        status = put_token(fleet, device_id, token, error);
    }
    if (status == SJ_OK) {
        status = note_event(fleet, device_id, is_takeover ? "taken over" : "enrolled", "", error);
    }
    if (status == SJ_OK) {
        status = sj_fleet_prepare(
            fleet, "SELECT count(*) FROM devices WHERE name = ?1 AND device_id <> ?2", &statement,
            error);
    }
    if (status == SJ_OK) {
        sj_fleet_bind_text(statement, 1, hello->device_name);
        sqlite3_bind_int64(statement, 2, device_id);
        status = sj_fleet_read_number(fleet, statement, namesakes, error);
    }
    return sj_fleet_end(fleet, status, error);
}

sj_status sj_fleet_check(sj_fleet *fleet, const ProtobufCBinaryData *uuid, const char *token,
                         int64_t *device_id, sj_error *error)
{
    uint8_t presented[SJ_SECRET_HASH_BYTES];
    uint8_t known[SJ_SECRET_HASH_BYTES] = {0};
    bool is_valid = false;
    sqlite3_stmt *statement;
    SJ_TRY(
        sj_fleet_prepare(fleet,
                         "SELECT t.token_hash, d.device_id FROM devices d JOIN device_tokens t"
                         " USING (device_id) WHERE d.uuid = ?1 AND t.revoked_realtime_ns IS NULL",
                         &statement, error));
    sqlite3_bind_blob(statement, 1, uuid->data, (int)uuid->len, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW &&
        sqlite3_column_bytes(statement, 0) == SJ_SECRET_HASH_BYTES) {
        memcpy(known, sqlite3_column_blob(statement, 0), sizeof(known));
        *device_id = sqlite3_column_int64(statement, 1);
        is_valid = true;
    }
    SJ_TRY(sj_fleet_finish_statement(fleet, statement, error));
    /* Hashes and compares in every case, so that an unknown device takes as long as a wrong
     * token. */
    sj_secret_hash(token, presented);
    is_valid &= sj_secret_equal(presented, known);
    return is_valid ? SJ_OK
                    : sj_fail(error, SJ_EPERM,
                              "the device's token is not valid here; enrol the device again");
}

sj_status sj_fleet_revoke(sj_fleet *fleet, int64_t device_id, const char *by, sj_error *error)
{
    sqlite3_stmt *statement;
    int64_t changed = 0;
    SJ_TRY(sj_fleet_begin(fleet, error));
    sj_status status =
        sj_fleet_prepare(fleet,
                         "UPDATE device_tokens SET revoked_realtime_ns = ?2 WHERE device_id = ?1"
                         " AND revoked_realtime_ns IS NULL RETURNING device_id",
                         &statement, error);
    if (status == SJ_OK) {
        sqlite3_bind_int64(statement, 1, device_id);
        sqlite3_bind_int64(statement, 2, sj_fleet_now_ns());
        status = sj_fleet_read_number(fleet, statement, &changed, error);
    }
    if (status == SJ_ENOTFOUND) {
        sj_fail(error, status, "the device has no token that could be revoked");
    }
    if (status == SJ_OK) {
        status = note_event(fleet, device_id, "revoked", by, error);
    }
    return sj_fleet_end(fleet, status, error);
}
