#include "collector-server/http/one_file.h"

#include "collector-server/http/assets.h"
#include "collector-server/http/route.h"
#include "collector-server/http/web_questions.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/store/sql.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIME_BYTES = 32 };

static const char place[] = "{{data}}"; /* marks where the page gets its data */

/* Runs the dashboard's route for the overview of a session. */
static sj_status read_overview(sqlite3 *database, int64_t session_id, json_t **overview,
                               sj_error *error)
{
    int64_t ignored;
    const sj_route *route = sj_route_find("/api/v1/sessions/1", &ignored);
    sj_request request = {.id = session_id, .database = database};
    return route->run(&request, overview, error);
}

static sj_status read_questions(json_t **questions, sj_error *error)
{
    const sj_asset *file = sj_asset_find("/one_file.json");
    *questions = file != NULL ? json_loadb((const char *)file->data, file->size, 0, NULL) : NULL;
    return *questions != NULL ? SJ_OK
                              : sj_fail(error, SJ_ENOTFOUND, "this program has no dashboard");
}

/* Binds the session's id and the integers of `values`. All other parameters select a part of the
 * session and stay NULL. */
static void bind_values(sqlite3_stmt *statement, int64_t session_id, const json_t *values)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        const json_t *value = json_object_get(values, name + 1);
        if (value != NULL || strcmp(name, ":session") == 0) {
            sqlite3_bind_int64(statement, i,
                               value != NULL ? json_integer_value(value) : session_id);
        }
    }
}

/* The rows of a panel, of which only the first ones are read. */
typedef struct panel_rows {
    json_t *rows;
    size_t most;
    bool is_truncated;
} panel_rows;

static sj_status add_row(void *context, sqlite3_stmt *statement)
{
    panel_rows *panel = context;
    if (json_array_size(panel->rows) == panel->most) {
        panel->is_truncated = true;
        return SJ_EEXIST;
    }
    json_t *row = json_array();
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        json_array_append_new(row, sj_rows_plain_value(statement, i));
    }
    return json_array_append_new(panel->rows, row) == 0 ? SJ_OK : SJ_ENOMEM;
}

static sj_status run_panel(sqlite3 *database, int64_t session_id, const json_t *question,
                           const json_t *values, json_t **panel, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    const char *name = json_string_value(json_object_get(question, "name"));
    const sj_web_question *found = sj_web_question_find(name);
    if (found == NULL) {
        return sj_fail(error, SJ_ENOTFOUND, "this program has no question %s", name);
    }
    SJ_TRY(sj_rows_prepare(database, found->sql, &statement, error));
    bind_values(statement, session_id, values);
    panel_rows read = {.rows = json_array(),
                       .most = (size_t)json_integer_value(json_object_get(question, "rows"))};
    json_t *columns = json_array();
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        json_array_append_new(columns, json_string(sqlite3_column_name(statement, i)));
    }
    const sj_status status = sj_sql_each_row(statement, add_row, &read, error);
    sqlite3_finalize(statement);
    *panel = json_pack("{sO so so sb}", "title", json_object_get(question, "title"), "columns",
                       columns, "rows", read.rows, "truncated", read.is_truncated);
    return status == SJ_EEXIST ? SJ_OK : status;
}

static bool holds(const json_t *texts, const char *text)
{
    for (size_t i = 0; i < json_array_size(texts); i++) {
        if (strcmp(json_string_value(json_array_get(texts, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

/* Runs the statements of the page and appends their results. Skips those with "isOfEnded" if the
 * session's state is not in the list "ended". */
static sj_status answer_all(sqlite3 *database, int64_t session_id, const json_t *asked,
                            const char *state, json_t *panels, sj_error *error)
{
    const json_t *questions = json_object_get(asked, "questions");
    const bool is_ended = holds(json_object_get(asked, "ended"), state);
    for (size_t i = 0; i < json_array_size(questions); i++) {
        const json_t *question = json_array_get(questions, i);
        json_t *panel = NULL;
        if (json_is_true(json_object_get(question, "isOfEnded")) && !is_ended) {
            continue;
        }
        const sj_status status = run_panel(database, session_id, question,
                                           json_object_get(asked, "values"), &panel, error);
        json_array_append_new(panels, panel);
        if (status != SJ_OK) {
            return status;
        }
    }
    return SJ_OK;
}

/* Takes ownership of `overview` and `panels`. */
static json_t *pack(json_t *overview, json_t *panels)
{
    char made[TIME_BYTES];
    struct tm calendar;
    const time_t now = time(NULL);
    gmtime_r(&now, &calendar);
    strftime(made, sizeof(made), "%Y-%m-%dT%H:%M:%SZ", &calendar);
    return json_pack("{ss so s[] so}", "made", made, "session", overview, "selection", "panels",
                     panels);
}

/* Writes JSON without "<", so that names of traced programs cannot end the script element. */
static void write_inert(const char *json, FILE *output)
{
    for (const char *rest = json; *rest != '\0';) {
        const size_t plain = strcspn(rest, "<");
        fwrite(rest, 1, plain, output);
        rest += plain;
        if (*rest == '<') {
            fputs("\\u003c", output);
            rest++;
        }
    }
}

static sj_status write_page(const json_t *data, FILE *output, sj_error *error)
{
    const sj_asset *page = sj_asset_find("/one_file.html");
    const uint8_t *found =
        page != NULL ? memmem(page->data, page->size, place, sizeof(place) - 1) : NULL;
    char *json = json_dumps(data, JSON_COMPACT);
    if (found != NULL && json != NULL) {
        const size_t before = (size_t)(found - page->data);
        fwrite(page->data, 1, before, output);
        write_inert(json, output);
        fwrite(found + sizeof(place) - 1, 1, page->size - before - (sizeof(place) - 1), output);
    }
    const sj_status status = found == NULL  ? sj_fail(error, SJ_ENOTFOUND, "there is no such page")
                             : json == NULL ? sj_fail(error, SJ_ENOMEM, "out of memory")
                                            : SJ_OK;
    free(json);
    return status;
}

static sj_status write_session(sqlite3 *database, const sj_call_part *part, FILE *output,
                               sj_error *error)
{
    json_t *asked = NULL;
    json_t *overview = NULL;
    SJ_TRY(read_questions(&asked, error));
    json_t *panels = json_array();
    sj_status status = read_overview(database, part->session_id, &overview, error);
    if (status == SJ_OK) {
        const char *state = json_string_value(json_object_get(overview, "state"));
        status = answer_all(database, part->session_id, asked, state != NULL ? state : "", panels,
                            error);
    }
    json_decref(asked);
    json_t *data = pack(overview, panels);
    if (status == SJ_OK) {
        status = write_page(data, output, error);
    }
    json_decref(data);
    return status;
}

const sj_exporter sj_exporter_html = {
    .name = "html",
    .endings = ".html",
    .summary = "one HTML page that opens without a server",
    .is_whole = true,
    .write = write_session,
};
