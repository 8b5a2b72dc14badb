#include "collector-server/cli/zombie_json.h"

#include "collector-server/query/json_rows.h"
#include "collector-server/query/shipped_queries.h"
#include "schema/queries/cli/zombies.h"

#include <stdlib.h>

enum { ROWS_MAX = 10000 };

/* A list of the finding: a statement, and the text of its parameter besides the report. */
typedef struct finding_list {
    const char *name;
    const char *sql;
    const char *parameter; /* NULL: the statement has none */
    const char *text;
} finding_list;

static const finding_list lists[] = {{"use", sj_zombies_frames_sql, ":stack", "use"},
                                     {"free", sj_zombies_frames_sql, ":stack", "free"},
                                     {"allocation", sj_zombies_frames_sql, ":stack", "allocation"},
                                     {"ancestors", sj_zombies_object_sql, ":list", "ancestors"},
                                     {"values", sj_zombies_object_sql, ":list", "values"},
                                     {"history", sj_zombies_history_sql, NULL, NULL}};

static sj_status add_rows(json_t *finding, const char *name, sqlite3_stmt *statement,
                          sj_error *error)
{
    json_t *rows = NULL;
    SJ_TRY(sj_rows_read(statement, ROWS_MAX, &rows, NULL, error));
    return json_object_set_new(finding, name, rows) == 0
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status add_list(sqlite3 *database, int64_t report, const finding_list *list,
                          json_t *finding, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_prepare(database, list->sql, &statement, error));
    if (list->parameter != NULL) {
        sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":report_id"),
                           report);
        sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, list->parameter),
                          list->text, -1, SQLITE_STATIC);
    } else {
        sqlite3_bind_int64(statement, 1, report);
    }
    return add_rows(finding, list->name, statement, error);
}

static sj_status add_calls(sqlite3 *database, int64_t id, int calls_before, json_t *finding,
                           sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    char number[32];
    snprintf(number, sizeof(number), "%lld", (long long)id);
    SJ_TRY(
        sj_rows_prepare(database, sj_shipped_query_find("zombie_calls")->text, &statement, error));
    sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, ":zombie"), number, -1,
                      SQLITE_TRANSIENT);
    sqlite3_bind_int(statement, sqlite3_bind_parameter_index(statement, ":calls"), calls_before);
    return add_rows(finding, "calls", statement, error);
}

static sj_status read_finding(sqlite3 *database, int64_t id, json_t **finding, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(database, sj_zombies_show_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, id);
    SJ_TRY(sj_rows_read(statement, 1, &rows, NULL, error));
    *finding = json_incref(json_array_get(rows, 0));
    json_decref(rows);
    return *finding != NULL ? SJ_OK
                            : sj_fail(error, SJ_ENOTFOUND, "there is no finding %lld with a report",
                                      (long long)id);
}

sj_status sj_zombie_json_read(sqlite3 *database, int64_t id, int calls_before, json_t **finding,
                              sj_error *error)
{
    json_t *read = NULL;
    SJ_TRY(read_finding(database, id, &read, error));
    const char *report_text = json_string_value(json_object_get(read, "report_id"));
    const int64_t report = report_text != NULL ? strtoll(report_text, NULL, 10) : 0;
    sj_status status = SJ_OK;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && status == SJ_OK; i++) {
        status = add_list(database, report, &lists[i], read, error);
    }
    if (status == SJ_OK) {
        status = add_calls(database, id, calls_before, read, error);
    }
    if (status == SJ_OK) {
        *finding = json_incref(read);
    }
    json_decref(read);
    return status;
}
