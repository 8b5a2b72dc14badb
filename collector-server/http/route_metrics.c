/* /metrics in the text format of Prometheus: the collector's counters, then figures from the
 * database. Names and labels are constants, and never contain data from peers. */
#include "collector-server/http/context.h"
#include "collector-server/http/reply.h"
#include "collector-server/http/route.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEADLINE_MS = 2000 };

typedef struct metric {
    const char *name;
    const char *help;
    const char *sql;
} metric;

/* Adds up one number of all devices' status. A missing or negative number counts as 0. */
#define REPORTED(member)                                                                           \
    "SELECT CAST(total(max(0, CAST(status ->> '" member                                            \
    "' AS INTEGER))) AS INTEGER) FROM device_status WHERE json_valid(status)"

static const metric metrics[] = {
    {"sojourn_sessions", "Sessions in the database.", "SELECT count(*) FROM sessions"},
    {"sojourn_sessions_recording", "Sessions that have not ended.",
     "SELECT count(*) FROM sessions WHERE state = 'recording'"},
    {"sojourn_stored_calls", "Calls in the database.",
     "SELECT coalesce(sum(stored_calls), 0) FROM sessions"},
    {"sojourn_lost_calls", "Calls that devices made and could not keep.",
     "SELECT coalesce(sum(lost_calls), 0) FROM sessions"},
    {"sojourn_devices", "Devices that ever reported.", "SELECT count(*) FROM devices"},
    {"sojourn_devices_polling", "Devices that asked for commands in the last two minutes.",
     "SELECT count(*) FROM device_status WHERE polled_realtime_ns >"
     " (unixepoch('now') - 120) * 1000000000"},
    {"sojourn_devices_copied", "Devices whose identity two daemons use at present.",
     "SELECT count(*) FROM copied_devices"},
    {"sojourn_devices_over_quota", "Devices that keep records because their quota is used up.",
     "SELECT count(*) FROM devices_over_quota"},
    {"sojourn_undelivered_sessions", "Ended sessions that devices still hold, as they last said.",
     REPORTED("undelivered")},
    {"sojourn_refused_sessions", "Sessions on devices of which frames were refused for good.",
     REPORTED("refused")},
    {"sojourn_commands_open", "Commands that are not finished.",
     "SELECT count(*) FROM commands WHERE state IN ('queued', 'sent')"},
    {"sojourn_database_bytes", "Size of the database.",
     "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"},
};

static void write_database(FILE *text, sqlite3 *database)
{
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(database, metrics[i].sql, -1, &statement, NULL) == SQLITE_OK &&
            sqlite3_step(statement) == SQLITE_ROW) {
            fprintf(text, "# HELP %s %s\n# TYPE %s gauge\n%s %lld\n", metrics[i].name,
                    metrics[i].help, metrics[i].name, metrics[i].name,
                    (long long)sqlite3_column_int64(statement, 0));
        }
        sqlite3_finalize(statement);
    }
}

static enum MHD_Result respond_metrics(sj_request *request)
{
    char *bytes = NULL;
    size_t size = 0;
    sqlite3 *database = NULL;
    sj_error error = {0};
    const sj_http_context *context = request->context;
    FILE *text = open_memstream(&bytes, &size);
    if (text == NULL) {
        return MHD_NO;
    }
    if (context->write_metrics != NULL) {
        context->write_metrics(context->metrics_context, text);
    }
    fprintf(text,
            "# HELP sojourn_http_answers_cancelled_total Answers given up because their client had"
            " left.\n# TYPE sojourn_http_answers_cancelled_total counter\n"
            "sojourn_http_answers_cancelled_total %llu\n",
            (unsigned long long)sj_request_pool_cancelled(context->requests));
    const bool has_database = sj_database_pool_borrow(context->databases, DEADLINE_MS, NULL, NULL,
                                                      &database, &error) == SJ_OK;
    fprintf(text,
            "# HELP sojourn_database_up Whether the database can be read.\n"
            "# TYPE sojourn_database_up gauge\nsojourn_database_up %d\n",
            has_database);
    if (has_database) {
        write_database(text, database);
        sj_database_pool_give(context->databases, database);
    }
    if (fclose(text) != 0) {
        free(bytes);
        return MHD_NO;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(bytes);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            "text/plain; version=0.0.4; charset=utf-8");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return sj_reply_send(request->connection, MHD_HTTP_OK, response);
}

const sj_route sj_route_metrics = {
    .pattern = "/metrics", .role = SJ_ROLE_READER, .respond = respond_metrics};
