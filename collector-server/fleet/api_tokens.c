#include "collector-server/fleet/api_tokens.h"

#include "collector-server/fleet/fleet_internal.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "schema/queries/fleet/api_tokens.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sj_token_reader {
    sqlite3 *database;
    sqlite3_stmt *valid; /* every valid token */
    pthread_mutex_t lock;
};

static sj_status failed(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_errcode(database)),
                   "the tokens cannot be changed: %s", sqlite3_errmsg(database));
}

/* True if a token may have this name. Lists and the audit print it as one word. "admin" and "ui"
 * are reserved. */
static bool is_name(const char *name)
{
    const size_t length = strlen(name);
    return length > 0 && length < SJ_API_TOKEN_NAME_BYTES && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@") ==
               length &&
           strcmp(name, "admin") != 0 && strcmp(name, "ui") != 0;
}

/* Runs a statement that changes one row at most. Returns SJ_ENOTFOUND if it changes none. Finalizes
 * the statement. */
static sj_status change_one(sqlite3 *database, sqlite3_stmt *statement, sj_error *error)
{
    const int step = sqlite3_step(statement);
    sqlite3_finalize(statement);
    if (step != SQLITE_DONE) {
        return failed(database, error);
    }
    return sqlite3_changes(database) == 1 ? SJ_OK : SJ_ENOTFOUND;
}

sj_status sj_api_token_add(sqlite3 *database, const char *name, sj_role role, int64_t lifetime_ns,
                           char text[SJ_SECRET_TEXT_BYTES], sj_error *error)
{
    uint8_t hash[SJ_SECRET_HASH_BYTES];
    sqlite3_stmt *statement = NULL;
    const int64_t now_ns = sj_fleet_now_ns();
    if (!is_name(name)) {
        return sj_fail(error, SJ_EINVAL,
                       "a token's name has 1 to %d letters, digits, '.', '_', '-' or '@', and is "
                       "neither \"admin\" nor \"ui\"",
                       SJ_API_TOKEN_NAME_BYTES - 1);
    }
    SJ_TRY(sj_secret_make(text, error));
    if (sqlite3_prepare_v2(database, sj_api_token_add_sql, -1, &statement, NULL) != SQLITE_OK) {
        return failed(database, error);
    }
    sj_secret_hash(text, hash);
    sqlite3_bind_int64(statement, 1, now_ns);
    sqlite3_bind_text(statement, 2, name, -1, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 3, hash, sizeof(hash), SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, sj_role_name(role), -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 5, lifetime_ns != 0 ? now_ns + lifetime_ns : 0);
    const sj_status status = change_one(database, statement, error);
    return status == SJ_ENOTFOUND
               ? sj_fail(error, SJ_EEXIST, "the token \"%s\" is valid; revoke it first", name)
               : status;
}

sj_status sj_api_token_revoke(sqlite3 *database, const char *name, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sj_api_token_revoke_sql, -1, &statement, NULL) != SQLITE_OK) {
        return failed(database, error);
    }
    sqlite3_bind_int64(statement, 1, sj_fleet_now_ns());
    sqlite3_bind_text(statement, 2, name, -1, SQLITE_STATIC);
    const sj_status status = change_one(database, statement, error);
    return status == SJ_ENOTFOUND
               ? sj_fail(error, SJ_ENOTFOUND, "no valid token has the name \"%.100s\"", name)
               : status;
}

sj_status sj_token_reader_open(sqlite3 *database, sj_token_reader **reader, sj_error *error)
{
    sj_token_reader *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        sqlite3_close(database);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    made->database = database;
    if (sqlite3_prepare_v3(made->database, sj_api_tokens_valid_sql, -1, SQLITE_PREPARE_PERSISTENT,
                           &made->valid, NULL) != SQLITE_OK) {
        const sj_status status =
            sj_fail(error, SJ_EIO, "the tokens cannot be read: %s", sqlite3_errmsg(database));
        sj_token_reader_close(made);
        return status;
    }
    *reader = made;
    return SJ_OK;
}

void sj_token_reader_close(sj_token_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    sqlite3_finalize(reader->valid);
    sqlite3_close(reader->database);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

/* Copies the token of a row. Returns false if this version does not know its role. */
static bool read_token(sqlite3_stmt *row, sj_api_token *token)
{
    const char *name = (const char *)sqlite3_column_text(row, 1);
    const char *role = (const char *)sqlite3_column_text(row, 2);
    token->token_id = sqlite3_column_int64(row, 0);
    snprintf(token->name, sizeof(token->name), "%s", name != NULL ? name : "");
    return role != NULL && sj_role_parse(role, &token->role);
}

static bool has_hash(sqlite3_stmt *row, const uint8_t hash[SJ_SECRET_HASH_BYTES])
{
    return sqlite3_column_bytes(row, 3) == SJ_SECRET_HASH_BYTES &&
           sj_secret_equal(sqlite3_column_blob(row, 3), hash);
}

typedef struct token_search {
    const uint8_t *hash; /* NULL: search `token_id` */
    int64_t token_id;
    sj_api_token *found;
    bool is_found;
} token_search;

static int compare_token(void *context, sqlite3_stmt *row)
{
    token_search *search = context;
    if (search->hash == NULL) {
        search->is_found |= sqlite3_column_int64(row, 0) == search->token_id;
    } else if (has_hash(row, search->hash)) {
        search->is_found = read_token(row, search->found);
    }
    return SQLITE_OK;
}

/* Reads all valid tokens, so that the time does not depend on the token. */
static bool find_token(sj_token_reader *reader, token_search search)
{
    pthread_mutex_lock(&reader->lock);
    sqlite3_bind_int64(reader->valid, 1, sj_fleet_now_ns());
    const int result = sj_sql_scan(reader->valid, compare_token, &search);
    pthread_mutex_unlock(&reader->lock);
    return result == SQLITE_OK && search.is_found;
}

bool sj_token_reader_find(sj_token_reader *reader, const uint8_t hash[SJ_SECRET_HASH_BYTES],
                          sj_api_token *found)
{
    return find_token(reader, (token_search){.hash = hash, .found = found});
}

bool sj_token_reader_is_valid(sj_token_reader *reader, int64_t token_id)
{
    return find_token(reader, (token_search){.token_id = token_id});
}
