#include "collector-server/http/session_filters.h"

#include "collector-server/http/parameters.h"

enum { TEXT_BYTES_MAX = 200 };

sj_status sj_session_filters_read(const sj_request *request, sj_session_filters *filters,
                                  sj_error *error)
{
    const sj_parameter_range any = {1, INT64_MAX, 0};
    const sj_parameter_range moment = {1, INT64_MAX / 1000000, 0};
    const struct {
        const char *name;
        const char **text;
    } texts[] = {{"search", &filters->search}, {"state", &filters->state},
                 {"app", &filters->app},       {"build", &filters->build},
                 {"tag", &filters->tag},       {"mark", &filters->mark}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        SJ_TRY(sj_parameter_text(request, texts[i].name, TEXT_BYTES_MAX, texts[i].text, error));
    }
    SJ_TRY(sj_parameter_number(request, "device", any, &filters->device, error));
    SJ_TRY(sj_parameter_number(request, "since_ms", moment, &filters->since_ms, error));
    return sj_parameter_number(request, "until_ms", moment, &filters->until_ms, error);
}

static void bind_text(sqlite3_stmt *statement, int number, const char *text)
{
    sqlite3_bind_text(statement, number, text, -1, SQLITE_STATIC); /* NULL is bound as NULL */
}

static void bind_number(sqlite3_stmt *statement, int number, int64_t value)
{
    if (value != 0) {
        sqlite3_bind_int64(statement, number, value);
    }
}

void sj_session_filters_bind(const sj_session_filters *filters, sqlite3_stmt *statement)
{
    bind_text(statement, 1, filters->search);
    bind_number(statement, 2, filters->device);
    bind_text(statement, 3, filters->state);
    bind_text(statement, 4, filters->app);
    bind_text(statement, 5, filters->build);
    bind_text(statement, 6, filters->tag);
    bind_text(statement, 7, filters->mark);
    bind_number(statement, 8, filters->since_ms);
    bind_number(statement, 9, filters->until_ms);
}
