/* Returns a session in the formats of `sojourn export`. The route first writes it to an unnamed
 * file beside the database, so that a slow client does not keep a snapshot open. */
#include "collector-server/export/exporter.h"
#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT_BYTES = 40, STEPS_BETWEEN_LOOKS = 10000 };

/* More calls take minutes, and gigabytes as text. */
#define CALLS_MAX INT64_C(20000000)

/* SQLite's progress handler: a result other than 0 interrupts the statement. */
static int keep_going(void *request)
{
    return !sj_request_is_wanted(request);
}

static sj_status check_size(sqlite3 *database, int64_t session, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_require_session(database, session, error));
    SJ_TRY(sj_rows_prepare(database, "SELECT stored_calls FROM sessions WHERE session_id = ?1",
                           &statement, error));
    sqlite3_bind_int64(statement, 1, session);
    const int64_t calls =
        sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return calls <= CALLS_MAX ? SJ_OK
                              : sj_fail(error, SJ_ELIMIT,
                                        "the session has %" PRId64
                                        " calls, too many for a download; use `sojourn export`",
                                        calls);
}

/* Opens a file that is deleted when it is closed. */
static sj_status open_nameless(const char *database_path, FILE **file, sj_error *error)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof(path), "%s.export.XXXXXX", database_path);
    const int descriptor = size < (int)sizeof(path) ? mkostemp(path, O_CLOEXEC) : -1;
    if (descriptor >= 0) {
        unlink(path);
        *file = fdopen(descriptor, "w+");
    }
    if (descriptor >= 0 && *file == NULL) {
        close(descriptor);
    }
    return descriptor >= 0 && *file != NULL
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot write beside the database: %s", strerror(errno));
}

static sj_status write_all(sj_request *request, const sj_exporter *exporter, FILE *file,
                           sj_error *error)
{
    sqlite3 *database = NULL;
    SJ_TRY(sj_database_open_reader(request->context->database_path, &database, error));
    sqlite3_progress_handler(database, STEPS_BETWEEN_LOOKS, keep_going, request);
    sj_status status = check_size(database, request->id, error);
    if (status == SJ_OK) {
        status = exporter->write(database, &(sj_call_part){.session_id = request->id}, file, error);
    }
    if (status == SJ_OK && (fflush(file) != 0 || ferror(file))) {
        status = sj_fail(error, SJ_EIO, "cannot write beside the database: %s", strerror(errno));
    }
    sqlite3_close(database);
    return status;
}

/* Names the downloaded file: "chrome-json" becomes session-3.chrome.json, "function.txt" becomes
 * session-3.function.txt. */
static void name_file(int64_t session, const char *format, char *header, size_t capacity)
{
    char name[FORMAT_BYTES];
    snprintf(name, sizeof(name), "%s", format);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '-' ? '.' : *at;
    }
    snprintf(header, capacity, "attachment; filename=\"session-%" PRId64 ".%s\"", session, name);
}

static sj_status make_response(sj_request *request, const char *format, FILE *file, sj_error *error)
{
    char header[120];
    const off_t size = ftello(file);
    const int descriptor = dup(fileno(file));
    struct MHD_Response *response = size >= 0 && descriptor >= 0
                                        ? MHD_create_response_from_fd64((uint64_t)size, descriptor)
                                        : NULL;
    if (response == NULL) {
        if (descriptor >= 0) {
            close(descriptor);
        }
        return sj_fail(error, SJ_EIO, "cannot send the file");
    }
    name_file(request->id, format, header, sizeof(header));
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/octet-stream");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, header);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    request->file = response;
    return SJ_OK;
}

static sj_status answer_export(sj_request *request, json_t **body, sj_error *error)
{
    const char *format = NULL;
    FILE *file = NULL;
    (void)body;
    SJ_TRY(sj_parameter_text(request, "format", FORMAT_BYTES - 1, &format, error));
    const sj_exporter *exporter = format != NULL ? sj_exporter_find_file(format) : NULL;
    if (exporter == NULL) {
        return sj_fail(
            error, SJ_EINVAL,
            "parameter 'format' must be one that `sojourn export --help` lists as a file");
    }
    SJ_TRY(open_nameless(request->context->database_path, &file, error));
    sj_status status = write_all(request, exporter, file, error);
    if (status == SJ_OK) {
        status = make_response(request, exporter->name, file, error);
    }
    fclose(file);
    return status;
}

const sj_route sj_route_export = {.pattern = "/api/v1/sessions/{id}/export",
                                  .role = SJ_ROLE_READER,
                                  .is_slow = true,
                                  .has_own_database = true,
                                  .run = answer_export};
