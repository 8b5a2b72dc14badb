/* Finds who sends a request, by the token that it shows. This is either the server's own token or a
 * token of the table `api_tokens`. The server's own token has the role admin. It is in a file
 * beside the database, or was made for one run of the server.
 *
 * Programs and the dashboard send `Authorization: Bearer TOKEN`. Beyond the loopback, browsers ask
 * their user for a name and a password (RFC 7617); the password is the token. Browsers then send it
 * with each request, even with those that pages of other sites make. So a request with a password
 * may only read data, and not change any. Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_LOGIN_H
#define SJ_COLLECTOR_SERVER_HTTP_LOGIN_H

#include "collector-server/fleet/api_tokens.h"
#include "collector-server/fleet/secret.h"
#include "proto/base/error.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SJ_LOGIN_FILE_BYTES = 256,
    SJ_LOGIN_REFUSAL_BYTES = SJ_LOGIN_FILE_BYTES + 128,
    SJ_LOGIN_WHO_BYTES = SJ_API_TOKEN_NAME_BYTES + 8
};

/* The sender of a request. */
typedef struct sj_visitor {
    sj_role role;     /* SJ_ROLE_NONE: no valid token was shown */
    bool is_bearer;   /* the token was in a header that no page of another site can set */
    int64_t token_id; /* in `api_tokens`; 0: the server's own token */
    char who[SJ_LOGIN_WHO_BYTES]; /* "token:NAME" */
} sj_visitor;

typedef struct sj_login {
    const char *name;        /* name of the server's own token: "admin" or "ui" */
    sj_token_reader *tokens; /* borrowed; NULL: only the server's own token is valid */
    char token[SJ_SECRET_TEXT_BYTES];
    uint8_t token_hash[SJ_SECRET_HASH_BYTES];
    /* name of the file of the server's own token, beside the database; "": no file has it */
    char file[SJ_LOGIN_FILE_BYTES];
    char refusal[SJ_LOGIN_REFUSAL_BYTES]; /* text of the response to a request without the token */
} sj_login;

/* Reads the token file, or creates it (mode 0600) with a new token. Returns SJ_EIO, or SJ_EPERM
 * if another user owns the file, or if group or others may access it. */
SJ_MUST_CHECK sj_status sj_login_load(const char *path, sj_login *login, sj_error *error);

/* Makes a token for one run, without a file. Returns SJ_EIO if the system gives no random bytes. */
SJ_MUST_CHECK sj_status sj_login_make(sj_login *login, sj_error *error);

/* Finds who sends a request. If `is_remote` (the server listens beyond the loopback), the token may
 * be a password. Else passwords are ignored, because browsers send them by themselves, and the
 * loopback has no TLS. Revoked and expired tokens are unknown at once. The time does not depend on
 * how much of a wrong token is correct. */
void sj_login_identify(const sj_login *login, bool is_remote, struct MHD_Connection *connection,
                       sj_visitor *visitor);

/* True if the token of a visitor is still valid. */
bool sj_login_is_valid(const sj_login *login, const sj_visitor *visitor);

#endif
