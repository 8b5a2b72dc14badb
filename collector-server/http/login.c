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
        return sj_fail(error, SJ_EPERM, "%s belongs to another user, who knows it; remove it",
                       path);
    }
    return (about.st_mode & 077) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EPERM, "%s may be read by others; \"chmod 600\" it", path);
}

sj_status sj_login_make(sj_login *login, sj_error *error)
{
    *login = (sj_login){0};
    SJ_TRY(sj_secret_make(login->token, error));
    sj_secret_hash(login->token, login->token_hash);
    snprintf(login->refusal, sizeof(login->refusal),
             "the header \"Authorization: Bearer TOKEN\" is missing or wrong; the token is in the "
             "address that `sojourn ui` has printed");
    return SJ_OK;
}

sj_status sj_login_load(const char *path, sj_login *login, sj_error *error)
{
    *login = (sj_login){0};
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

static bool is_token(const sj_login *login, const char *text)
{
    uint8_t presented[SJ_SECRET_HASH_BYTES];
    sj_secret_hash(text != NULL ? text : "", presented);
    return sj_secret_equal(presented, login->token_hash) && text != NULL;
}

bool sj_login_bears_token(const sj_login *login, struct MHD_Connection *connection)
{
    static const char scheme[] = "Bearer ";
    const char *shown =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    const bool is_bearer = shown != NULL && strncasecmp(shown, scheme, sizeof(scheme) - 1) == 0;
    return is_token(login, is_bearer ? shown + sizeof(scheme) - 1 : NULL);
}

bool sj_login_bears_password(const sj_login *login, struct MHD_Connection *connection)
{
    char *password = NULL;
    char *user = MHD_basic_auth_get_username_password(connection, &password);
    const bool is_known = is_token(login, password);
    MHD_free(user);
    MHD_free(password);
    return is_known;
}

bool sj_login_is_shown(const sj_login *login, bool is_remote, struct MHD_Connection *connection)
{
    return sj_login_bears_token(login, connection) ||
           (is_remote && sj_login_bears_password(login, connection));
}
