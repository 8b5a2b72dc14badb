#include "collector-server/http/session_changes.h"

#include "collector-server/http/rows.h"
#include "collector-server/http/session_columns.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct sj_session_changes {
    int64_t data_version;
    json_t *known; /* id -> row */
};

sj_session_changes *sj_session_changes_new(void)
{
    sj_session_changes *changes = calloc(1, sizeof(*changes));
    if (changes != NULL && (changes->known = json_object()) == NULL) {
        free(changes);
        changes = NULL;
    }
    return changes;
}

void sj_session_changes_free(sj_session_changes *changes)
{
    if (changes != NULL) {
        json_decref(changes->known);
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

static json_t *newest_sessions(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    if (sj_rows_prepare(database, SJ_SESSION_SELECT " ORDER BY s.session_id DESC LIMIT ?1",
                        &statement, NULL) != SJ_OK) {
        return NULL;
    }
    sqlite3_bind_int64(statement, 1, SJ_SESSION_CHANGES_MAX);
    if (sj_rows_take(statement, SJ_SESSION_CHANGES_MAX, &rows, NULL, NULL) != SJ_OK) {
        return NULL;
    }
    return rows;
}

json_t *sj_session_changes_poll(sj_session_changes *changes, sqlite3 *database)
{
    int64_t version = 0;
    if (!read_data_version(database, &version) || version == changes->data_version) {
        return NULL;
    }
    json_t *rows = newest_sessions(database);
    json_t *known = json_object();
    json_t *items = json_array();
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        if (!json_equal(json_object_get(changes->known, id), row)) {
            json_array_append(items, row);
        }
        json_object_set(known, id, row);
    }
    if (rows == NULL || known == NULL || json_array_size(items) == 0) {
        if (rows != NULL) {
            changes->data_version = version;
        }
        json_decref(items);
        json_decref(known);
        json_decref(rows);
        return NULL;
    }
    json_decref(rows);
    json_decref(changes->known);
    changes->known = known;
    changes->data_version = version;
    return json_pack("{s:o}", "items", items);
}
