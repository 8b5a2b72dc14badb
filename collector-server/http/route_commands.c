/* Commands to devices: giving them, and their results. */
#include "collector-server/fleet/control.h"
#include "collector-server/fleet/export_jobs.h"
#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/http/reply.h"
#include "collector-server/http/route.h"
#include "collector-server/query/json_rows.h"
#include "schema/queries/http/commands.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_DEFAULT = 200, LIMIT_MAX = 500 };

/* Lists commands, newest first. `before` continues a list. */
static sj_status list(sj_request *request, json_t **body, sj_error *error)
{
    int64_t limit;
    int64_t before;
    int64_t device;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &limit, error));
    SJ_TRY(sj_parameter_number(request, "before", (sj_parameter_range){1, INT64_MAX, INT64_MAX},
                               &before, error));
    SJ_TRY(sj_parameter_number(request, "device", (sj_parameter_range){1, INT64_MAX, 0}, &device,
                               error));
    SJ_TRY(sj_rows_prepare(request->database, sj_commands_list_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, before);
    sqlite3_bind_int64(statement, 2, device);
    sqlite3_bind_int64(statement, 3, limit + 1);
    return sj_rows_list(statement, (size_t)limit, body, error);
}

static sj_status show(sj_request *request, json_t **body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(request->database, sj_commands_show_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, request->id);
    SJ_TRY(sj_rows_read(statement, 1, &rows, NULL, error));
    *body = json_incref(json_array_get(rows, 0));
    json_decref(rows);
    return *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOTFOUND, "there is no such command");
}

/* Converts the ids of the given commands to decimal strings, as everywhere in this API. */
static void as_strings(json_t *given)
{
    static const char *const keys[] = {"command", "device_id"};
    size_t index;
    json_t *one;
    json_array_foreach(given, index, one)
    {
        for (size_t i = 0; i < 2; i++) {
            const json_int_t id = json_integer_value(json_object_get(one, keys[i]));
            json_object_set_new(one, keys[i], json_sprintf("%" JSON_INTEGER_FORMAT, id));
        }
    }
}

static sj_status read_text(const json_t *input, const char *key, const char **text, sj_error *error)
{
    *text = json_string_value(json_object_get(input, key));
    return *text != NULL ? SJ_OK
                         : sj_fail(error, SJ_EINVAL, "the body's \"%s\" has to be a text", key);
}

/* Handles {"devices": WHICH, "kind": NAME, "arguments": {...}, "timeout_ms": N}. */
static sj_status give(sj_request *request, const json_t *input, json_t **body, sj_error *error)
{
    sj_fleet *fleet = NULL;
    json_t *given = NULL;
    const json_t *timeout = json_object_get(input, "timeout_ms");
    sj_control_request wanted = {.arguments = json_object_get(input, "arguments"),
                                 .requested_by = request->visitor.who,
                                 .timeout_ms = json_integer_value(timeout)};
    SJ_TRY(read_text(input, "devices", &wanted.devices, error));
    SJ_TRY(read_text(input, "kind", &wanted.kind, error));
    if (timeout != NULL && (!json_is_integer(timeout) || wanted.timeout_ms < 1)) {
        return sj_fail(error, SJ_EINVAL, "\"timeout_ms\" has to be a whole number from 1");
    }
    SJ_TRY(sj_fleet_open(request->context->database_path, &fleet, error));
    const sj_status status = sj_control_give(fleet, &wanted, &given, error);
    sj_fleet_close(fleet);
    SJ_TRY(status);
    as_strings(given);
    *body = json_pack("{so}", "commands", given);
    return SJ_OK;
}

/* Sends the file that an export has made. */
static enum MHD_Result send_file(sj_request *request)
{
    char path[PATH_MAX];
    struct stat about;
    sj_command_file_path(request->context->database_path, (uint64_t)request->id, path,
                         sizeof(path));
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        if (file >= 0) {
            close(file);
        }
        return sj_reply_error(request->connection, MHD_HTTP_NOT_FOUND,
                              "this command has no file, or it is older than a day");
    }
    struct MHD_Response *response = MHD_create_response_from_fd64((uint64_t)about.st_size, file);
    if (response == NULL) {
        close(file);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/octet-stream");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, "attachment");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return sj_reply_send(request->connection, MHD_HTTP_OK, response);
}

const sj_route sj_route_commands = {.pattern = "/api/v1/commands",
                                    .role = SJ_ROLE_READER,
                                    .run = list,
                                    .post_role = SJ_ROLE_OPERATOR,
                                    .action = "command",
                                    .post = give};
const sj_route sj_route_command = {
    .pattern = "/api/v1/commands/{id}", .role = SJ_ROLE_READER, .run = show};
const sj_route sj_route_command_file = {
    .pattern = "/api/v1/commands/{id}/file", .role = SJ_ROLE_READER, .respond = send_file};
