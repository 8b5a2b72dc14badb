/* Checks the server's token, which is in a file beside its database, or made for one run.
 *
 * Programs and the dashboard send `Authorization: Bearer TOKEN`. Beyond the loopback, browsers ask
 * their user for a name and a password (RFC 7617); the password is the token. Browsers then send it
 * with each request, even if the page did not ask for that. So a password only permits reading, and
 * never changes. Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_LOGIN_H
#define SJ_COLLECTOR_SERVER_HTTP_LOGIN_H

#include "collector-server/fleet/secret.h"
#include "proto/base/error.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_LOGIN_FILE_BYTES = 256, SJ_LOGIN_REFUSAL_BYTES = SJ_LOGIN_FILE_BYTES + 128 };

typedef struct sj_login {
    char token[SJ_SECRET_TEXT_BYTES];
    uint8_t token_hash[SJ_SECRET_HASH_BYTES];
    /* name of the token's file beside the database; "": it is in no file */
    char file[SJ_LOGIN_FILE_BYTES];
    char refusal[SJ_LOGIN_REFUSAL_BYTES]; /* text of the response to a request without the token */
} sj_login;

/* Reads the token file, or creates it (mode 0600) with a new token. Returns SJ_EIO, or SJ_EPERM if
 * other users may read the file. */
SJ_MUST_CHECK sj_status sj_login_load(const char *path, sj_login *login, sj_error *error);

/* Makes a token that is in no file. Returns SJ_EIO if there are no random bytes. */
SJ_MUST_CHECK sj_status sj_login_make(sj_login *login, sj_error *error);

/* True if a request has the token as Bearer or, beyond the loopback, as password. Browsers send
 * passwords by themselves, and the loopback has no TLS, so it accepts none. */
bool sj_login_is_shown(const sj_login *login, bool is_remote, struct MHD_Connection *connection);

/* True if a request has the token as Bearer. The time does not depend on how much of a wrong token
 * is correct. */
bool sj_login_bears_token(const sj_login *login, struct MHD_Connection *connection);

/* True if a request has the token as password. */
bool sj_login_bears_password(const sj_login *login, struct MHD_Connection *connection);

#endif
