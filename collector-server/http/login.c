#include "collector-server/http/login.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static sj_status make_token(const char *path, char token[SJ_SECRET_TEXT_BYTES], sj_error *error)
{
    SJ_TRY(sj_secret_make(token, error));
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const ssize_t size = SJ_SECRET_TEXT_BYTES - 1;
    const bool is_written = file >= 0 && write(file, token, (size_t)size) == size &&
                            write(file, "\n", 1) == 1 && fsync(file) == 0;
    const int problem = errno;
    if (file >= 0) {
        close(file);
    }
    if (file >= 0 && !is_written) {
        unlink(path); /* so that the next start creates a complete one */
    }
    return is_written ? SJ_OK
                      : sj_fail(error, SJ_EIO, "cannot write %s: %s", path, strerror(problem));
}

static sj_status read_token(const char *path, char token[SJ_SECRET_TEXT_BYTES], sj_error *error)
{
    struct stat about = {0};
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const ssize_t got = file >= 0 ? read(file, token, SJ_SECRET_TEXT_BYTES - 1) : -1;
    const bool is_known = file >= 0 && fstat(file, &about) == 0;
    if (file >= 0) {
        close(file);
    }
    if (got != SJ_SECRET_TEXT_BYTES - 1 || !is_known) {
        return sj_fail(error, SJ_EIO, "%s holds no token; remove it to have a new one made", path);
    }
    token[SJ_SECRET_TEXT_BYTES - 1] = '\0';
    if (about.st_uid != geteuid()) {
        return sj_fail(error, SJ_EPERM,
                       "%s belongs to another user, who knows the token; remove the file", path);
    }
    return (about.st_mode & 077) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EPERM, "%s may be read by others; \"chmod 600\" it", path);
}

sj_status sj_login_make(sj_login *login, sj_error *error)
{
    *login = (sj_login){.name = "ui"};
    SJ_TRY(sj_secret_make(login->token, error));
    sj_secret_hash(login->token, login->token_hash);
    snprintf(login->refusal, sizeof(login->refusal),
             "the header \"Authorization: Bearer TOKEN\" is missing or wrong; the token is in the "
             "address that `sojourn ui` has printed");
    return SJ_OK;
}

sj_status sj_login_load(const char *path, sj_login *login, sj_error *error)
{
    *login = (sj_login){.name = "admin"};
    SJ_TRY(access(path, F_OK) == 0 ? read_token(path, login->token, error)
                                   : make_token(path, login->token, error));
    const char *slash = strrchr(path, '/');
    sj_secret_hash(login->token, login->token_hash);
    snprintf(login->file, sizeof(login->file), "%s", slash != NULL ? slash + 1 : path);
    snprintf(login->refusal, sizeof(login->refusal),
             "the header \"Authorization: Bearer TOKEN\" is missing or wrong; the token is in "
             "the file %s beside the database",
             login->file);
    return SJ_OK;
}

/* Fills in the visitor of a token. `text` may be NULL. */
static void find_visitor(const sj_login *login, const char *text, sj_visitor *visitor)
{
    uint8_t presented[SJ_SECRET_HASH_BYTES];
    sj_api_token found = {0};
    if (text == NULL) {
        return;
    }
    sj_secret_hash(text, presented);
    if (sj_secret_equal(presented, login->token_hash)) {
        visitor->role = SJ_ROLE_ADMIN;
        snprintf(visitor->who, sizeof(visitor->who), "token:%s", login->name);
    } else if (login->tokens != NULL && sj_token_reader_find(login->tokens, presented, &found)) {
        visitor->role = found.role;
        visitor->token_id = found.token_id;
        snprintf(visitor->who, sizeof(visitor->who), "token:%s", found.name);
    }
}

/* Finds the visitor by the header Authorization, if it has a valid token. */
static void find_bearer(const sj_login *login, struct MHD_Connection *connection,
                        sj_visitor *visitor)
{
    static const char scheme[] = "Bearer ";
    const char *shown =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (shown != NULL && strncasecmp(shown, scheme, sizeof(scheme) - 1) == 0) {
        find_visitor(login, shown + sizeof(scheme) - 1, visitor);
        visitor->is_bearer = visitor->role != SJ_ROLE_NONE;
    }
}

/* Finds the visitor by the password of HTTP basic authentication, if it is a valid token. */
static void find_password(const sj_login *login, struct MHD_Connection *connection,
                          sj_visitor *visitor)
{
    char *password = NULL;
    char *user = MHD_basic_auth_get_username_password(connection, &password);
    find_visitor(login, password, visitor);
    MHD_free(user);
    MHD_free(password);
}

void sj_login_identify(const sj_login *login, bool is_remote, struct MHD_Connection *connection,
                       sj_visitor *visitor)
{
    *visitor = (sj_visitor){.role = SJ_ROLE_NONE};
    find_bearer(login, connection, visitor);
    if (visitor->role == SJ_ROLE_NONE && is_remote) {
        find_password(login, connection, visitor);
    }
}

bool sj_login_is_valid(const sj_login *login, const sj_visitor *visitor)
{
    return visitor->token_id == 0 || sj_token_reader_is_valid(login->tokens, visitor->token_id);
}
