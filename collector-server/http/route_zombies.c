/* Findings about freed memory, and the stacks of a finding's last report. */
#include "collector-server/http/route.h"

#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/store/database.h"
#include "collector-server/store/zombie_change.h"
#include "schema/queries/http/zombies.h"

#include <string.h>

enum { LIMIT_DEFAULT = 200, LIMIT_MAX = 1000, FRAMES_MAX = 1000 };

#define FINDING_SELECT                                                                             \
    "SELECT z.zombie_id AS id, z.kind, z.class, z.selector, z.state, z.used_in, z.freed_in,"       \
    " z.allocated_in, z.reports, z.sessions, z.devices, z.builds, z.first_seen_realtime_ns,"       \
    " z.last_seen_realtime_ns, z.note FROM zombie_findings z"

static const char list_sql[] =
    FINDING_SELECT " ORDER BY z.last_seen_realtime_ns DESC, z.zombie_id DESC LIMIT ?1 OFFSET ?2";

static const char frames_sql[] =
    "SELECT f.stack, f.depth, f.tid, f.function, f.module, f.offset, f.is_own FROM zombie_frames f"
    " WHERE f.report_id = (SELECT max(report_id) FROM zombie_reports WHERE zombie_id = ?1)"
    " ORDER BY f.stack = 'use' DESC, f.stack = 'free' DESC, f.depth";

/* Adds the share of the heap that was watched: an empty list says little if few blocks were
 * watched. */
static sj_status add_coverage(sqlite3 *database, json_t *body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(database, sj_zombies_coverage_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, 0);
    SJ_TRY(sj_rows_read(statement, 1, &rows, NULL, error));
    const int failed = json_object_set_new(body, "coverage", json_incref(json_array_get(rows, 0)));
    json_decref(rows);
    return failed == 0 ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status answer_zombies(sj_request *request, json_t **body, sj_error *error)
{
    int64_t limit;
    int64_t offset;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &limit, error));
    SJ_TRY(sj_parameter_number(request, "offset", (sj_parameter_range){0, INT32_MAX, 0}, &offset,
                               error));
    SJ_TRY(sj_rows_prepare(request->database, list_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, limit + 1);
    sqlite3_bind_int64(statement, 2, offset);
    SJ_TRY(sj_rows_list(statement, (size_t)limit, body, error));
    const sj_status status = add_coverage(request->database, *body, error);
    if (status != SJ_OK) {
        json_decref(*body);
        *body = NULL;
    }
    return status;
}

static sj_status answer_frames(sj_request *request, json_t **body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_prepare(request->database, frames_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, request->id);
    SJ_TRY(sj_rows_list(statement, FRAMES_MAX, body, error));
    if (json_array_size(json_object_get(*body, "items")) != 0) {
        return SJ_OK;
    }
    json_decref(*body);
    *body = NULL;
    return sj_fail(error, SJ_ENOTFOUND, "there is no finding %lld with a report",
                   (long long)request->id);
}

static sj_status show(sj_request *request, json_t **body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(request->database, FINDING_SELECT " WHERE z.zombie_id = ?1", &statement,
                           error));
    sqlite3_bind_int64(statement, 1, request->id);
    SJ_TRY(sj_rows_read(statement, 1, &rows, NULL, error));
    *body = json_incref(json_array_get(rows, 0));
    json_decref(rows);
    return *body != NULL
               ? SJ_OK
               : sj_fail(error, SJ_ENOTFOUND, "there is no finding %lld", (long long)request->id);
}

/* Handles {"state": "resolved", "note": TEXT}; one of the two is enough. */
static sj_status change(sj_request *request, const json_t *input, json_t **body, sj_error *error)
{
    sqlite3 *database = NULL;
    const json_t *note = json_object_get(input, "note");
    const json_t *state = json_object_get(input, "state");
    const sj_zombie_change wanted = {.is_resolved = state != NULL, .note = json_string_value(note)};
    if ((note == NULL && state == NULL) || (note != NULL && wanted.note == NULL) ||
        (state != NULL &&
         (!json_is_string(state) || strcmp(json_string_value(state), "resolved") != 0))) {
        return sj_fail(error, SJ_EINVAL, "say \"state\": \"resolved\", a text \"note\", or both");
    }
    SJ_TRY(sj_database_open(request->context->database_path, SJ_DATABASE_WRITE, &database, error));
    const sj_status status = sj_zombie_change_apply(database, request->id, &wanted, error);
    sqlite3_close(database);
    SJ_TRY(status);
    *body = json_pack("{so}", "id", json_sprintf("%lld", (long long)request->id));
    return SJ_OK;
}

const sj_route sj_route_zombie = {.pattern = "/api/v1/zombies/{id}",
                                  .role = SJ_ROLE_READER,
                                  .run = show,
                                  .post_role = SJ_ROLE_OPERATOR,
                                  .action = "finding",
                                  .post = change};
const sj_route sj_route_zombies = {
    .pattern = "/api/v1/zombies", .role = SJ_ROLE_READER, .run = answer_zombies};
const sj_route sj_route_zombie_frames = {
    .pattern = "/api/v1/zombies/{id}/frames", .role = SJ_ROLE_READER, .run = answer_frames};
