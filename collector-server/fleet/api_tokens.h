/* Tokens of people and programs that ask the collector over HTTP: the table `api_tokens`. Only the
 * SHA-256 of a token is stored. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_API_TOKENS_H
#define SJ_COLLECTOR_SERVER_FLEET_API_TOKENS_H

#include "collector-server/fleet/role.h"
#include "collector-server/fleet/secret.h"

#include <sqlite3.h>

enum { SJ_API_TOKEN_NAME_BYTES = 64 };

typedef struct sj_api_token {
    int64_t token_id;
    sj_role role;
    char name[SJ_API_TOKEN_NAME_BYTES];
} sj_api_token;

/* Creates a token and writes it to `text`, its only copy. A name may be used again if its token was
 * revoked or has expired. The token expires after `lifetime_ns`; 0: never. Returns
 * SJ_EINVAL for an invalid name, SJ_EEXIST if a valid token has the name, or the error of the
 * database. Waits for other writers. */
SJ_MUST_CHECK sj_status sj_api_token_add(sqlite3 *database, const char *name, sj_role role,
                                         int64_t lifetime_ns, char text[SJ_SECRET_TEXT_BYTES],
                                         sj_error *error);

/* Ends a token at once. Returns SJ_ENOTFOUND if no valid token has the name, or the error of the
 * database. Waits for other writers. */
SJ_MUST_CHECK sj_status sj_api_token_revoke(sqlite3 *database, const char *name, sj_error *error);

/* Reads the valid tokens of a database over its own connection. Thread-safe, except for opening and
 * closing. */
typedef struct sj_token_reader sj_token_reader;

/* Creates a reader, which the caller closes. Takes ownership of the connection `database`, also on
 * failure. Returns SJ_EIO if the table cannot be read, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_token_reader_open(sqlite3 *database, sj_token_reader **reader,
                                             sj_error *error);
void sj_token_reader_close(sj_token_reader *reader);

/* Finds the valid token with this hash, as the database is now. Compares with each valid token in
 * constant time. Returns false if there is none, or if the table cannot be read. */
bool sj_token_reader_find(sj_token_reader *reader, const uint8_t hash[SJ_SECRET_HASH_BYTES],
                          sj_api_token *found);

/* True if the token is still valid. */
bool sj_token_reader_is_valid(sj_token_reader *reader, int64_t token_id);

#endif
