/* session_set(sessions): a row for each sample of the sessions that a text names
 * (session_set.h). */
#include "collector-server/query/session_set.h"
#include "collector-server/query/table_function.h"

enum { COLUMN_SESSION_ID, COLUMN_FROM_NS, COLUMN_TO_NS, COLUMN_SESSIONS };

typedef struct set_cursor {
    sqlite3_vtab_cursor base;
    sj_session_set set;
    size_t at;
} set_cursor;

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    set_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    sj_session_set_deinit(&((set_cursor *)base)->set);
    sqlite3_free(base);
    return SQLITE_OK;
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    set_cursor *cursor = (set_cursor *)base;
    sj_error error = {0};
    (void)given;
    (void)plan;
    (void)argc;
    sj_session_set_deinit(&cursor->set);
    cursor->at = 0;
    const char *sessions = (const char *)sqlite3_value_text(argv[0]);
    const sj_status status =
        sessions == NULL
            ? sj_fail(&error, SJ_EINVAL, "session_set() needs a set of sessions, as 'last'")
            : sj_session_set_read(sj_table_of(base)->state->database, sessions,
                                  SJ_SESSION_SET_MAX_SAMPLES, &cursor->set, &error);
    if (status == SJ_OK) {
        return SQLITE_OK;
    }
    sqlite3_free(base->pVtab->zErrMsg);
    base->pVtab->zErrMsg = sqlite3_mprintf("%s", error.text);
    return status == SJ_ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    ((set_cursor *)base)->at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const set_cursor *cursor = (const set_cursor *)base;
    return cursor->at >= cursor->set.count;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const set_cursor *cursor = (const set_cursor *)base;
    const sj_sample *sample = &cursor->set.samples[cursor->at];
    if (column == COLUMN_SESSION_ID) {
        sqlite3_result_int64(context, sample->session_id);
    } else if (column == COLUMN_FROM_NS && sample->windowed) {
        sqlite3_result_int64(context, sample->from_ns);
    } else if (column == COLUMN_TO_NS && sample->windowed) {
        sqlite3_result_int64(context, sample->to_ns);
    }
    return SQLITE_OK; /* the column of the argument stays NULL */
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((const set_cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module set_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_session_set(sj_query_state *state)
{
    static const sj_table_kind kind = {.name = "session_set",
                                       .declaration =
                                           "CREATE TABLE session_set(session_id INTEGER, "
                                           "from_ns INTEGER, to_ns INTEGER, sessions HIDDEN)",
                                       .first_argument = COLUMN_SESSIONS,
                                       .argument_count = 1,
                                       .required_count = 1,
                                       .rows = 20,
                                       .cost = 100};
    return sj_table_register(state, &kind, &set_methods);
}
