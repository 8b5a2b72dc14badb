#include "collector-server/http/route.h"

#include "collector-server/forward/cluster_mirror.h"
#include "collector-server/http/context.h"
#include "collector-server/query/json_rows.h"
#include "schema/queries/http/health.h"

#include <stdio.h>
#include <string.h>

enum { ENGINE_BYTES = 512, DEADLINE_MS = 5000 };

/* Adds the engine that answers, whether changes are accepted, who asks, and the token's file. */
static sj_status add_engine(const sj_request *request, json_t *body)
{
    char line[ENGINE_BYTES];
    struct sj_cluster_mirror *mirror = request->context->mirror;
    if (mirror != NULL) {
        sj_cluster_mirror_engine(mirror, line, sizeof(line));
    } else {
        const char *slash = strrchr(request->context->database_path, '/');
        snprintf(line, sizeof(line), "answered by SQLite %s: %s", sqlite3_libversion(),
                 slash != NULL ? slash + 1 : request->context->database_path);
    }
    return json_object_set_new(body, "engine", json_string(line)) == 0 &&
                   json_object_set_new(body, "is_cluster", json_boolean(mirror != NULL)) == 0 &&
                   json_object_set_new(body, "accepts_changes", json_boolean(mirror == NULL)) ==
                       0 &&
                   json_object_set_new(body, "who", json_string(request->visitor.who)) == 0 &&
                   json_object_set_new(body, "role",
                                       json_string(sj_role_name(request->visitor.role))) == 0 &&
                   json_object_set_new(body, "token_file",
                                       json_string(request->context->login.file)) == 0
               ? SJ_OK
               : SJ_ENOMEM;
}

static sj_status answer_health(sj_request *request, json_t **body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(request->database, sj_health_sql, &statement, error));
    sqlite3_bind_text(statement, 1, SJ_VERSION, -1, SQLITE_STATIC);
    SJ_TRY(sj_rows_read(statement, 1, &rows, NULL, error));
    *body = json_incref(json_array_get(rows, 0));
    json_decref(rows);
    if (add_engine(request, *body) != SJ_OK) {
        json_decref(*body);
        *body = NULL;
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    return SJ_OK;
}

const sj_route sj_route_health = {
    .pattern = "/api/v1/health", .role = SJ_ROLE_READER, .run = answer_health};

/* Reads the health from a connection of its own, so that a database that cannot be opened or read
 * is an answer, too. */
static sj_status read_health(sj_request *request, json_t **health, sj_error *error)
{
    sj_database_pool *databases = request->context->databases;
    SJ_TRY(sj_database_pool_borrow(databases, DEADLINE_MS, sj_request_is_wanted, request,
                                   &request->database, error));
    const sj_status status = answer_health(request, health, error);
    sj_database_pool_give(databases, request->database);
    return status;
}

/* For load balancers and supervisors: 200 if the database can be read and frames are stored, else
 * 503 for any error. Clients with the token get the reason, which may name files. Other clients
 * learn nothing about stored data (request_pool.c). */
static sj_status answer_healthz(sj_request *request, json_t **body, sj_error *error)
{
    json_t *health = NULL;
    const sj_http_context *context = request->context;
    sj_status status =
        context->check != NULL ? context->check(context->metrics_context, error) : SJ_OK;
    if (status == SJ_OK) {
        status = read_health(request, &health, error);
    }
    if (status != SJ_OK) {
        return SJ_EAGAIN;
    }
    *body = json_pack("{s:O}", "status", json_object_get(health, "status"));
    json_decref(health);
    return *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

const sj_route sj_route_healthz = {
    .pattern = "/healthz", .is_public = true, .has_own_database = true, .run = answer_healthz};
