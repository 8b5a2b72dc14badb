#include "collector-server/http/post.h"

#include "collector-server/http/guard.h"

#include <errno.h>
#include <fcntl.h>
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
    return (about.st_mode & 077) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EPERM, "%s may be read by others; \"chmod 600\" it", path);
}

sj_status sj_post_token_load(const char *path, sj_post_gate *gate, sj_error *error)
{
    char token[SJ_SECRET_TEXT_BYTES];
    SJ_TRY(access(path, F_OK) == 0 ? read_token(path, token, error)
                                   : make_token(path, token, error));
    sj_secret_hash(token, gate->token_hash);
    gate->is_open = true;
    return SJ_OK;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool has_token(const sj_post_gate *gate, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    uint8_t presented[SJ_SECRET_HASH_BYTES];
    const bool is_bearer =
        authorization != NULL && strncasecmp(authorization, scheme, sizeof(scheme) - 1) == 0;
    sj_secret_hash(is_bearer ? authorization + sizeof(scheme) - 1 : "", presented);
    return sj_secret_equal(presented, gate->token_hash) && is_bearer;
}

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    return type != NULL && strncasecmp(type, json, sizeof(json) - 1) == 0 &&
           (type[sizeof(json) - 1] == '\0' || type[sizeof(json) - 1] == ';');
}

const char *sj_post_refusal(const sj_post_gate *gate, struct MHD_Connection *connection,
                            unsigned *code)
{
    const char *site = header_of(connection, "Sec-Fetch-Site");
    const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    *code = MHD_HTTP_FORBIDDEN;
    if (!gate->is_open) {
        return "this server takes no commands; sojournd does";
    }
    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) {
        return "requests of other sites are refused";
    }
    if (!has_token(gate, header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION))) {
        *code = MHD_HTTP_UNAUTHORIZED;
        return "the header \"Authorization: Bearer TOKEN\" is missing or wrong; the token is in "
               "the file DATABASE.token beside the lab's database";
    }
    if (!is_json(header_of(connection, MHD_HTTP_HEADER_CONTENT_TYPE))) {
        *code = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
        return "the body has to be application/json";
    }
    if (length == NULL || header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) {
        *code = MHD_HTTP_LENGTH_REQUIRED;
        return "the length of the body has to be told";
    }
    if (strlen(length) > 6 || strtoul(length, NULL, 10) > SJ_POST_MAX_BYTES) {
        *code = MHD_HTTP_CONTENT_TOO_LARGE;
        return "the body is longer than 256 KiB";
    }
    return NULL;
}

void sj_post_body_add(sj_post_body *body, const char *piece, size_t size)
{
    char *grown = !body->is_too_long && size <= SJ_POST_MAX_BYTES - body->size
                      ? realloc(body->bytes, body->size + size)
                      : NULL;
    if (grown == NULL) {
        body->is_too_long = true;
        return;
    }
    memcpy(grown + body->size, piece, size);
    body->bytes = grown;
    body->size += size;
}

void sj_post_body_free(sj_post_body *body)
{
    if (body != NULL) {
        free(body->bytes);
        free(body);
    }
}

sj_status sj_post_parse(const sj_post_body *body, json_t **object, sj_error *error)
{
    json_error_t problem = {0};
    if (body->is_too_long || body->size == 0) {
        return sj_fail(error, SJ_EINVAL, "the body is %s",
                       body->is_too_long ? "too long" : "empty; it has to be a JSON object");
    }
    json_t *read = json_loadb(body->bytes, body->size, JSON_REJECT_DUPLICATES, &problem);
    if (!json_is_object(read)) {
        json_decref(read);
        return read != NULL ? sj_fail(error, SJ_EINVAL, "the body is no JSON object")
                            : sj_fail(error, SJ_EINVAL, "the body, line %d, column %d: %s",
                                      problem.line, problem.column, problem.text);
    }
    *object = read;
    return SJ_OK;
}
