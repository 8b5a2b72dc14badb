#include "collector-server/http/session_changes_post.h"

#include "collector-server/http/context.h"
#include "collector-server/maintenance/removal.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/store/database.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS_MAX = 1000, REMOVED_MAX = 50, KEY_BYTES_MAX = 100, VALUE_BYTES_MAX = 1000 };

typedef struct session_change {
    sj_request *request;
    sqlite3 *database;
    const json_t *input;
    const char *key;               /* key of a tag; NULL: none was given */
    const char *value;             /* value of a tag, or text of a note */
    const json_t *from_ns, *to_ns; /* times of a note, or NULL */
} session_change;

typedef struct change_kind {
    const char *name;
    bool needs_key;
    bool needs_value;
    /* ?1 session, ?2 key, ?3 value, ?4 from_ns, ?5 to_ns, ?6 author; NULL: remove the session */
    const char *sql;
} change_kind;

/* SQL expression: tags of a session. An imported session may have anything there. */
#define TAGS "iif(json_valid(tags), tags, '{}')"

static const change_kind kinds[] = {
    {"pin", false, false, "UPDATE sessions SET pinned = 1 WHERE session_id = ?1"},
    {"unpin", false, false, "UPDATE sessions SET pinned = 0 WHERE session_id = ?1"},
    {"tag", true, true,
     "UPDATE sessions SET tags = json_patch(" TAGS ", json_object(?2, ?3)) WHERE session_id = ?1"},
    {"untag", true, false,
     "UPDATE sessions SET tags = json_patch(" TAGS
     ", json_object(?2, NULL)) WHERE session_id = ?1"},
    {"note", false, true,
     "INSERT INTO annotations (session_id, start_ns, end_ns, author, note, created_realtime_ns)"
     " VALUES (?1, ?4, ?5, ?6, ?3, unixepoch() * 1000000000)"},
    {"unnote", false, true,
     "DELETE FROM annotations WHERE annotation_id = (SELECT max(annotation_id) FROM annotations"
     " WHERE session_id = ?1 AND author = ?6 AND note = ?3)"},
    {"remove", false, false, NULL},
};

static const char before_sql[] = "SELECT session_id AS id, pinned AS is_pinned, tags FROM sessions"
                                 " WHERE session_id = ?1 AND state <> 'removing'";

static sj_status find_kind(const json_t *input, const change_kind **kind, sj_error *error)
{
    const char *name = json_string_value(json_object_get(input, "do"));
    for (size_t i = 0; name != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *kind = &kinds[i];
            return SJ_OK;
        }
    }
    return sj_fail(error, SJ_EINVAL,
                   "\"do\" has to be pin, unpin, tag, untag, note, unnote or remove");
}

static sj_status read_text(const json_t *input, const char *name, size_t bytes_max,
                           const char **text, sj_error *error)
{
    *text = json_string_value(json_object_get(input, name));
    if (*text == NULL || strlen(*text) > bytes_max) {
        return sj_fail(error, SJ_EINVAL, "\"%s\" has to be a text of at most %zu bytes", name,
                       bytes_max);
    }
    return SJ_OK;
}

static sj_status read_id(const json_t *value, int64_t *id, sj_error *error)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    *id = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text == NULL || *end != '\0' || strlen(text) > 18 || *id < 1) {
        return sj_fail(error, SJ_EINVAL, "\"sessions\" has to be a list of ids, as texts");
    }
    return SJ_OK;
}

/* Appends the state of a session before it is changed, so that the change can be undone. */
static sj_status append_before(const session_change *change, int64_t id, json_t *before,
                               sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(change->database, before_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, id);
    SJ_TRY(sj_rows_read(statement, 1, &rows, NULL, error));
    const bool is_there = json_array_size(rows) == 1;
    json_array_append(before, json_array_get(rows, 0));
    json_decref(rows);
    return is_there ? SJ_OK : sj_fail(error, SJ_ENOTFOUND, "there is no session %" PRId64, id);
}

/* Checks the times of a note. A note without times is about the whole session. */
static sj_status check_time(const session_change *change, sj_error *error)
{
    const json_int_t from = json_integer_value(change->from_ns);
    const json_int_t to = json_integer_value(change->to_ns);
    const bool is_none = change->from_ns == NULL && change->to_ns == NULL;
    const bool is_time = json_is_integer(change->from_ns) && json_is_integer(change->to_ns) &&
                         from >= 0 && to >= from;
    return is_none || is_time
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL,
                         "\"from_ns\" and \"to_ns\" have to be two numbers in order, or missing");
}

static void bind_time(sqlite3_stmt *statement, int number, const json_t *time_ns)
{
    if (time_ns != NULL) {
        sqlite3_bind_int64(statement, number, json_integer_value(time_ns));
    }
}

static sj_status run_sql(const session_change *change, const char *sql, int64_t id, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_prepare(change->database, sql, &statement, error));
    sqlite3_bind_int64(statement, 1, id);
    if (sqlite3_bind_parameter_count(statement) > 1) {
        sqlite3_bind_text(statement, 2, change->key, -1, SQLITE_STATIC);
    }
    if (sqlite3_bind_parameter_count(statement) > 2) {
        sqlite3_bind_text(statement, 3, change->value, -1, SQLITE_STATIC);
    }
    if (sqlite3_bind_parameter_count(statement) > 4) {
        bind_time(statement, 4, change->from_ns);
        bind_time(statement, 5, change->to_ns);
        sqlite3_bind_text(statement, 6, change->request->visitor.who, -1, SQLITE_STATIC);
    }
    const int step = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return step == SQLITE_DONE ? SJ_OK
                               : sj_fail(error, SJ_EIO, "session %" PRId64 ": %s", id,
                                         sqlite3_errmsg(change->database));
}

static sj_status change_one(const session_change *change, const change_kind *kind, int64_t id,
                            json_t *before, sj_error *error)
{
    SJ_TRY(append_before(change, id, before, error));
    return kind->sql != NULL ? run_sql(change, kind->sql, id, error)
                             : sj_session_remove(change->database, id, "dashboard", false, error);
}

static sj_status check_ids(const json_t *sessions, const change_kind *kind, sj_error *error)
{
    const size_t most = kind->sql != NULL ? SESSIONS_MAX : REMOVED_MAX;
    size_t index;
    json_t *value;
    int64_t id = 0;
    if (!json_is_array(sessions) || json_array_size(sessions) == 0 ||
        json_array_size(sessions) > most) {
        return sj_fail(error, SJ_EINVAL, "\"sessions\" has to be a list of 1 to %zu ids", most);
    }
    json_array_foreach(sessions, index, value)
    {
        SJ_TRY(read_id(value, &id, error));
    }
    return SJ_OK;
}

static sj_status change_each(const session_change *change, const change_kind *kind, json_t *before,
                             sj_error *error)
{
    size_t index;
    json_t *value;
    int64_t id = 0;
    json_array_foreach(json_object_get(change->input, "sessions"), index, value)
    {
        if (!sj_request_is_wanted(change->request)) {
            return sj_fail(error, SJ_ETIMEDOUT, "the client has disconnected");
        }
        SJ_TRY(read_id(value, &id, error));
        SJ_TRY(change_one(change, kind, id, before, error));
    }
    return SJ_OK;
}

static sj_status run_plain(const session_change *change, const char *sql, sj_error *error)
{
    const int result = sqlite3_exec(change->database, sql, NULL, NULL, NULL);
    return result == SQLITE_OK
               ? SJ_OK
               : sj_fail(error, sj_database_status(result), "cannot change the sessions: %s",
                         sqlite3_errmsg(change->database));
}

/* Changes all sessions or none, so that changes can always be undone. Each removal is a
 * transaction. If one is refused, those before it stay removed, and the error names the refused
 * session. */
static sj_status change_all(const session_change *change, const change_kind *kind, json_t *before,
                            sj_error *error)
{
    SJ_TRY(check_ids(json_object_get(change->input, "sessions"), kind, error));
    if (kind->sql == NULL) {
        return change_each(change, kind, before, error);
    }
    SJ_TRY(run_plain(change, "BEGIN IMMEDIATE", error));
    sj_status status = change_each(change, kind, before, error);
    if (status == SJ_OK) {
        status = run_plain(change, "COMMIT", error);
    }
    if (status != SJ_OK) {
        sqlite3_exec(change->database, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

sj_status sj_session_changes_post(sj_request *request, const json_t *input, json_t **body,
                                  sj_error *error)
{
    session_change change = {.request = request,
                             .input = input,
                             .from_ns = json_object_get(input, "from_ns"),
                             .to_ns = json_object_get(input, "to_ns")};
    const change_kind *kind = NULL;
    SJ_TRY(find_kind(input, &kind, error));
    SJ_TRY(kind->sql == NULL ? sj_request_needs(request, SJ_ROLE_ADMIN, error) : SJ_OK);
    if (kind->needs_key) {
        SJ_TRY(read_text(input, "key", KEY_BYTES_MAX, &change.key, error));
    }
    if (kind->needs_value) {
        SJ_TRY(read_text(input, "value", VALUE_BYTES_MAX, &change.value, error));
    }
    SJ_TRY(check_time(&change, error));
    SJ_TRY(sj_database_open(request->context->database_path, SJ_DATABASE_WRITE, &change.database,
                            error));
    json_t *before = json_array();
    const sj_status status = change_all(&change, kind, before, error);
    sqlite3_close(change.database);
    if (status != SJ_OK) {
        json_decref(before);
        return status;
    }
    *body = json_pack("{so}", "before", before);
    return *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}
