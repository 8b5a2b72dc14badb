#include "collector-server/query/session_changes.h"

#include "collector-server/query/json_rows.h"
#include "schema/queries/query/session_changes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct sj_session_changes {
    int64_t data_version;
    json_t *known;    /* session rows of the previous poll, by id */
    json_t *recorded; /* ids of the sessions that were being recorded at the previous poll */
};

sj_session_changes *sj_session_changes_new(void)
{
    sj_session_changes *changes = calloc(1, sizeof(*changes));
    if (changes != NULL &&
        ((changes->known = json_object()) == NULL || (changes->recorded = json_array()) == NULL)) {
        sj_session_changes_free(changes);
        changes = NULL;
    }
    return changes;
}

void sj_session_changes_free(sj_session_changes *changes)
{
    if (changes != NULL) {
        json_decref(changes->known);
        json_decref(changes->recorded);
        free(changes);
    }
}

static bool read_data_version(sqlite3 *database, int64_t *version)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (sqlite3_prepare_v2(database, "PRAGMA data_version", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        *version = sqlite3_column_int64(statement, 0);
        found = true;
    }
    sqlite3_finalize(statement);
    return found;
}

/* Returns the rows of the newest sessions, of the sessions being recorded, and of those in
 * `recorded`, because an old session may have just ended. Returns NULL if they cannot be read
 * now. */
static json_t *read_watched_sessions(sqlite3 *database, const json_t *recorded)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    char *ids = json_dumps(recorded, JSON_COMPACT);
    if (ids != NULL &&
        sj_rows_prepare(database, sj_session_changes_watched_sql, &statement, NULL) == SJ_OK) {
        sqlite3_bind_int64(statement, 1, SJ_SESSION_CHANGES_NEWEST);
        sqlite3_bind_text(statement, 2, ids, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 3, SJ_SESSION_CHANGES_MAX);
        if (sj_rows_read(statement, SJ_SESSION_CHANGES_MAX, &rows, NULL, NULL) != SJ_OK) {
            rows = NULL;
        }
    }
    free(ids);
    return rows;
}

/* Returns `value`; if it is of no use, because it is incomplete or empty, frees it and returns
 * NULL.
 */
static json_t *useful_or_null(json_t *value, bool is_useful)
{
    if (!is_useful) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

/* Returns the ids of the sessions that are being recorded. The caller owns the list. Returns NULL
 * if out of memory. */
static json_t *list_recorded(const json_t *rows)
{
    json_t *ids = json_array();
    bool is_whole = true;
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        const char *state = json_string_value(json_object_get(row, "state"));
        if (state != NULL && strcmp(state, "recording") == 0) {
            is_whole = json_array_append(ids, json_object_get(row, "id")) == 0 && is_whole;
        }
    }
    return useful_or_null(ids, is_whole);
}

/* Returns the rows that are new or differ from the known rows. The caller owns the list. NULL: out
 * of memory. */
static json_t *list_changed(const json_t *rows, const json_t *known)
{
    json_t *items = json_array();
    bool is_whole = true;
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        if (!json_equal(json_object_get(known, id), row)) {
            is_whole = json_array_append(items, row) == 0 && is_whole;
        }
    }
    return useful_or_null(items, is_whole);
}

static json_t *index_by_id(const json_t *rows)
{
    json_t *known = json_object();
    bool is_whole = true;
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        is_whole = json_object_set(known, id, row) == 0 && is_whole;
    }
    return useful_or_null(known, is_whole);
}

json_t *sj_session_changes_poll(sj_session_changes *changes, sqlite3 *database)
{
    int64_t version = 0;
    if (!read_data_version(database, &version) || version == changes->data_version) {
        return NULL;
    }
    json_t *rows = read_watched_sessions(database, changes->recorded);
    if (rows == NULL) {
        return NULL;
    }
    json_t *known = index_by_id(rows);
    json_t *recorded = list_recorded(rows);
    json_t *items = list_changed(rows, changes->known);
    json_t *reply = items != NULL ? json_pack("{s:O}", "items", items) : NULL;
    const bool has_changed = json_array_size(items) != 0;
    json_decref(rows);
    json_decref(items);
    if (known == NULL || recorded == NULL || reply == NULL) { /* the next poll finds the changes */
        json_decref(known);
        json_decref(recorded);
        json_decref(reply);
        return NULL;
    }
    json_decref(changes->known);
    json_decref(changes->recorded);
    changes->known = known;
    changes->recorded = recorded;
    changes->data_version = version;
    return useful_or_null(reply, has_changed);
}
