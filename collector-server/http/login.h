/* Who a request comes from: the server's token, in a file beside its database or made for one run.
 *
 * Programs and the dashboard show `Authorization: Bearer TOKEN`. Beyond the loopback, browsers ask
 * their user for a name and a password (RFC 7617), send them with each request to this server, and
 * the token is the password. It is enough to read, never to change something: a browser sends it
 * without being asked by the page. Any thread. */
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
    char file[SJ_LOGIN_FILE_BYTES]; /* name of the token's file beside the database; "": none */
    char refusal[SJ_LOGIN_REFUSAL_BYTES]; /* the answer to a request without the token */
} sj_login;

/* sj_login_load reads the token file, or makes it (mode 0600) with a new token. SJ_EIO; SJ_EPERM:
 * others may read the file. */
SJ_MUST_CHECK sj_status sj_login_load(const char *path, sj_login *login, sj_error *error);

/* sj_login_make makes a token that no file holds. SJ_EIO: no random bytes. */
SJ_MUST_CHECK sj_status sj_login_make(sj_login *login, sj_error *error);

/* sj_login_is_shown returns whether a request shows the token: as Bearer or, beyond the loopback,
 * as password. A password is sent by the browser itself, so the loopback, which has no TLS, takes
 * none. */
bool sj_login_is_shown(const sj_login *login, bool is_remote, struct MHD_Connection *connection);

/* sj_login_bears_token returns whether a request shows the token as Bearer. The time that it takes
 * does not depend on how much of a wrong token is right. */
bool sj_login_bears_token(const sj_login *login, struct MHD_Connection *connection);

/* sj_login_bears_password returns whether a request shows the token as password. */
bool sj_login_bears_password(const sj_login *login, struct MHD_Connection *connection);

#endif
