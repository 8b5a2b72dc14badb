/* Imports sessions from a database file that a browser sends. The browser sends the file in pieces
 * of hexadecimal digits, each in a small POST request. The server appends the pieces to a file
 * beside the collector's database. "finish" copies the sessions of that file and removes it, even
 * if a copy fails.
 *
 *   {"do": "begin"}                                         -> {"import": ID}
 *   {"do": "append", "import": ID, "offset": N, "hex": "..."} -> {"bytes": received so far}
 *   {"do": "finish", "import": ID}                          -> {"sessions": [...], "known": N}
 *   {"do": "progress", "import": ID}                        -> {"part": 0 to 1}
 *   {"do": "cancel", "import": ID}                          -> {"cancelled": true or false}
 *
 * "sessions" lists the new ids. "known" counts the sessions that the database had already. "part"
 * is the copied part while "finish" runs, and 0 otherwise. "begin" deletes files of other imports
 * that nothing was appended to for a day. */
#include "collector-server/fleet/secret.h"
#include "collector-server/http/context.h"
#include "collector-server/http/import_progress.h"
#include "collector-server/maintenance/session_copy.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "proto/base/progress.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_BYTES_MAX = 128 << 10, FILES_AT_ONCE = 8, OLD_S = 86400, STEPS_BETWEEN_LOOKS = 10000 };

#define NO_DATABASE "the file is not a database of sessions of this version"
#define FILE_BYTES_MAX (INT64_C(16) << 30)

/* True if `import` has the form of an id from sj_secret_make. */
static bool is_import(const char *import)
{
    return import != NULL && strlen(import) == SJ_SECRET_TEXT_BYTES - 1 &&
           strspn(import, "0123456789abcdef") == SJ_SECRET_TEXT_BYTES - 1;
}

static sj_status path_of(const sj_request *request, const char *import, char path[PATH_MAX],
                         sj_error *error)
{
    const int size = is_import(import) ? snprintf(path, PATH_MAX, "%s.import.%s",
                                                  request->context->database_path, import)
                                       : -1;
    return size > 0 && size < PATH_MAX ? SJ_OK
                                       : sj_fail(error, SJ_ENOTFOUND, "there is no such import");
}

/* Removes a database file, and SQLite's files beside it. Returns false if the database file cannot
 * be removed. */
static bool remove_file(const char *path)
{
    static const char *const beside[] = {"-wal", "-shm", "-journal"};
    char name[PATH_MAX + 16];
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", path, beside[i]);
        unlink(name);
    }
    return unlink(path) == 0;
}

/* Opens the folder of the collector's database. Returns the database's name in the folder, which is
 * a part of `database_path`. Returns NULL if the folder cannot be opened. */
static const char *open_folder(const char *database_path, DIR **folder)
{
    char path[PATH_MAX];
    const char *slash = strrchr(database_path, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - database_path) + 1;
    if (length >= sizeof(path)) {
        return NULL;
    }
    memcpy(path, database_path, length);
    path[length] = '\0';
    *folder = opendir(length == 0 ? "." : path);
    return *folder != NULL ? database_path + length : NULL;
}

/* Returns the id in the name of an import's file. Returns NULL for any other file. */
static const char *import_of(const char *name, const char *database_name)
{
    static const char between[] = ".import.";
    const size_t length = strlen(database_name);
    const char *import = name + length + sizeof(between) - 1;
    return strncmp(name, database_name, length) == 0 &&
                   strncmp(name + length, between, sizeof(between) - 1) == 0 && is_import(import)
               ? import
               : NULL;
}

/* Returns the number of imports that have a file. With `clean`, removes the files that nothing was
 * appended to for OLD_S seconds, and does not count them. */
static size_t count_imports(const sj_request *request, bool clean)
{
    DIR *folder = NULL;
    size_t left = 0;
    const char *name = open_folder(request->context->database_path, &folder);
    const struct dirent *entry;
    while (name != NULL && (entry = readdir(folder)) != NULL) {
        char path[PATH_MAX];
        struct stat about;
        sj_error unsaid = {0};
        const char *import = import_of(entry->d_name, name);
        if (import == NULL || path_of(request, import, path, &unsaid) != SJ_OK) {
            continue;
        }
        const bool is_old =
            clean && lstat(path, &about) == 0 && time(NULL) - about.st_mtime > OLD_S;
        left += is_old && remove_file(path) ? 0 : 1;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return left;
}

static sj_status begin(sj_request *request, json_t **body, sj_error *error)
{
    char import[SJ_SECRET_TEXT_BYTES];
    char path[PATH_MAX];
    if (count_imports(request, true) >= FILES_AT_ONCE) {
        return sj_fail(error, SJ_ELIMIT, "%d imports are under way; finish or cancel one",
                       (int)FILES_AT_ONCE);
    }
    SJ_TRY(sj_secret_make(import, error));
    SJ_TRY(path_of(request, import, path, error));
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
        return sj_fail(error, SJ_EIO, "cannot write beside the database: %s", strerror(errno));
    }
    close(file);
    *body = json_pack("{ss}", "import", import);
    return SJ_OK;
}

static int digit_of(char letter)
{
    return letter >= '0' && letter <= '9'   ? letter - '0'
           : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                                            : -1;
}

/* Decodes 2 * `bytes` lower-case hexadecimal digits. Returns false at the first other
 * character. */
static bool decode(const char *hex, size_t bytes, uint8_t *piece)
{
    for (size_t i = 0; i < bytes; i++) {
        const int high = digit_of(hex[2 * i]);
        const int low = digit_of(hex[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        piece[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

static sj_status write_piece(const char *path, int64_t offset, const uint8_t *piece, size_t bytes,
                             sj_error *error)
{
    struct stat about;
    const int file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    sj_status status = SJ_OK;
    if (file < 0 || fstat(file, &about) != 0) {
        status = sj_fail(error, SJ_ENOTFOUND, "there is no such import");
    } else if (about.st_size != offset) {
        status = sj_fail(error, SJ_EINVAL, "the next \"offset\" is %lld", (long long)about.st_size);
    } else if (offset + (int64_t)bytes > FILE_BYTES_MAX) {
        status = sj_fail(error, SJ_ELIMIT, "the file is longer than 16 GiB");
    } else if (pwrite(file, piece, bytes, offset) != (ssize_t)bytes) {
        status = sj_fail(error, SJ_EFULL, "cannot write beside the database: %s", strerror(errno));
    }
    if (file >= 0) {
        close(file);
    }
    return status;
}

static sj_status append(const char *path, const json_t *input, json_t **body, sj_error *error)
{
    const json_t *offset = json_object_get(input, "offset");
    const char *hex = json_string_value(json_object_get(input, "hex"));
    const size_t digits = hex != NULL ? strlen(hex) : 0;
    if (!json_is_integer(offset) || json_integer_value(offset) < 0 || digits == 0 ||
        digits % 2 != 0 || digits / 2 > PIECE_BYTES_MAX) {
        return sj_fail(error, SJ_EINVAL,
                       "\"offset\" has to be a number, and \"hex\" at most %d bytes as digits",
                       (int)PIECE_BYTES_MAX);
    }
    uint8_t *piece = malloc(digits / 2);
    if (piece == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const int64_t at = json_integer_value(offset);
    const sj_status status =
        decode(hex, digits / 2, piece)
            ? write_piece(path, at, piece, digits / 2, error)
            : sj_fail(error, SJ_EINVAL, "\"hex\" has characters that are not hexadecimal digits");
    free(piece);
    if (status == SJ_OK) {
        *body = json_pack("{sI}", "bytes", (json_int_t)(at + (int64_t)(digits / 2)));
    }
    return status;
}

static int stop_when_left(void *request)
{
    return !sj_request_is_wanted(request);
}

/* Copies the sessions that `target` does not have yet, and adds the number of the others to
 * `*known`. Stops at the first session that cannot be copied; earlier copies stay. */
static sj_status copy_all(const char *path, sqlite3 *source, sqlite3 *target, json_t *copied,
                          int64_t *known, sj_error *error)
{
    sj_sql_numbers sessions = {0};
    sj_status status = sj_sql_list_numbers(source,
                                           "SELECT session_id FROM sessions"
                                           " WHERE state <> 'removing'"
                                           " ORDER BY started_realtime_ns",
                                           (sj_sql_binds){0}, &sessions, NULL);
    if (status != SJ_OK) {
        sj_fail(error, status == SJ_ENOMEM ? status : SJ_EINVAL, "cannot read the file: %s",
                sqlite3_errmsg(source));
        status = status == SJ_ENOMEM ? status : SJ_EINVAL;
    }
    const sj_progress_work work = sj_progress_begin_list(sessions.count);
    for (size_t i = 0; status == SJ_OK && i < sessions.count; i++) {
        sj_copied_session session;
        status = sj_session_copy(path, sessions.values[i], target, &session, error);
        if (status == SJ_OK) {
            json_array_append_new(copied, json_sprintf("%" PRId64, session.session_id));
        } else if (status == SJ_EEXIST) {
            ++*known;
            status = SJ_OK;
        }
        sj_progress_step(work);
    }
    sj_progress_end(work);
    free(sessions.values);
    return status;
}

/* Opens the sent file and the collector's database, and checks the tables of the sent file. Queries
 * on both are interrupted when the client disconnects or the server stops. On failure, the caller
 * closes whichever was opened. */
static sj_status open_both(sj_request *request, const char *path, sqlite3 **source,
                           sqlite3 **target, sj_error *error)
{
    sj_error unsaid = {0};
    if (sj_database_open(path, SJ_DATABASE_READ, source, &unsaid) != SJ_OK) {
        return sj_fail(error, SJ_EINVAL, NO_DATABASE);
    }
    SJ_TRY(sj_database_open(request->context->database_path, SJ_DATABASE_WRITE, target, error));
    sqlite3_progress_handler(*source, STEPS_BETWEEN_LOOKS, stop_when_left, request);
    sqlite3_progress_handler(*target, STEPS_BETWEEN_LOOKS, stop_when_left, request);
    return sj_session_copy_check(path, *target, error);
}

static sj_status finish(sj_request *request, const char *import, const char *path, json_t **body,
                        sj_error *error)
{
    sqlite3 *source = NULL;
    sqlite3 *target = NULL;
    int64_t known = 0;
    json_t *copied = json_array();
    sj_status status = open_both(request, path, &source, &target, error);
    if (status == SJ_OK) {
        sj_import_progress_watch(import);
        status = copy_all(path, source, target, copied, &known, error);
        sj_import_progress_leave();
    }
    sqlite3_close(source);
    sqlite3_close(target);
    remove_file(path);
    if (status != SJ_OK) {
        json_decref(copied);
        return status;
    }
    *body = json_pack("{so sI}", "sessions", copied, "known", (json_int_t)known);
    return SJ_OK;
}

static sj_status tell_progress(const char *import, const char *path, json_t **body, sj_error *error)
{
    const double part = sj_import_progress_of(import);
    if (part < 0 && access(path, F_OK) != 0) {
        return sj_fail(error, SJ_ENOTFOUND, "there is no such import");
    }
    *body = json_pack("{sf}", "part", part < 0 ? 0 : part);
    return SJ_OK;
}

static sj_status handle_import(sj_request *request, const json_t *input, json_t **body,
                               sj_error *error)
{
    char path[PATH_MAX];
    const char *what = json_string_value(json_object_get(input, "do"));
    const char *import = json_string_value(json_object_get(input, "import"));
    if (what == NULL || strcmp(what, "finish") != 0) {
        request->action = NULL; /* not audited, because the database is unchanged */
    }
    if (what != NULL && strcmp(what, "begin") == 0) {
        return begin(request, body, error);
    }
    SJ_TRY(path_of(request, import, path, error));
    if (what != NULL && strcmp(what, "append") == 0) {
        return append(path, input, body, error);
    }
    if (what != NULL && strcmp(what, "finish") == 0) {
        return finish(request, import, path, body, error);
    }
    if (what != NULL && strcmp(what, "progress") == 0) {
        return tell_progress(import, path, body, error);
    }
    if (what != NULL && strcmp(what, "cancel") == 0) {
        *body = json_pack("{sb}", "cancelled", remove_file(path));
        return SJ_OK;
    }
    return sj_fail(error, SJ_EINVAL, "\"do\" has to be begin, append, finish, progress or cancel");
}

/* Returns the number of unfinished imports. Counts abandoned imports, too. */
static sj_status list_imports(sj_request *request, json_t **body, sj_error *error)
{
    *body = json_pack("{sI}", "under_way", (json_int_t)count_imports(request, false));
    return *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

const sj_route sj_route_imports = {.pattern = "/api/v1/imports",
                                   .role = SJ_ROLE_READER,
                                   .is_slow = true,
                                   .has_own_database = true,
                                   .run = list_imports,
                                   .post_role = SJ_ROLE_ADMIN,
                                   .action = "import",
                                   .post = handle_import};
