/* Design notes. Lists are read in the order of their blocks until all wanted calls are found. Most
 * calls end in the next block. The first search of a stream stores no exits, because many cursors
 * read only one block: storing the 50,000 exits of a deep stack costs ten times as much as reading
 * them. The next search continues with the next list, so a scan reads each list once. A search for
 * calls of an earlier block restarts at that block. A second such search restarts at the first
 * block: else, searches in descending order would read all lists each time. Both statements read
 * only the index blocks_late. */
#include "collector-server/query/late_exits.h"

#include "collector-server/store/deferred_exits.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"

#include <stdlib.h>

static const char lists_sql[] =
    "SELECT late, first_ticks FROM blocks WHERE stream_id = ?1 AND kind = 1 AND late IS NOT NULL "
    "AND first_call >= ?2 ORDER BY first_call, first_event";

static const char search_sql[] =
    "SELECT late, first_ticks FROM blocks WHERE stream_id = ?1 AND kind = 1 AND late IS NOT NULL "
    "AND first_call >= ?2 AND late_first_call <= ?3 AND late_last_call >= ?4 "
    "ORDER BY first_call, first_event";

int sj_late_exits_open(sj_late_exits *late, sqlite3 *database)
{
    late->max_exits = SJ_LATE_EXITS_MAX;
    const int result =
        sqlite3_prepare_v3(database, lists_sql, -1, SQLITE_PREPARE_PERSISTENT, &late->lists, NULL);
    return result != SQLITE_OK ? result
                               : sqlite3_prepare_v3(database, search_sql, -1,
                                                    SQLITE_PREPARE_PERSISTENT, &late->search, NULL);
}

void sj_late_exits_close(sj_late_exits *late)
{
    sqlite3_finalize(late->lists);
    sqlite3_finalize(late->search);
    sj_hash_map_deinit(&late->places);
    free(late->exits);
    *late = (sj_late_exits){0};
}

/* Discards all exits, and restarts at the first block whose first call is `first_call` or later. */
static void restart(sj_late_exits *late, int64_t stream_id, int64_t first_call)
{
    sqlite3_reset(late->lists);
    sqlite3_bind_int64(late->lists, 1, stream_id);
    sqlite3_bind_int64(late->lists, 2, first_call);
    sj_hash_map_deinit(&late->places);
    late->places = (sj_hash_map){0};
    late->stream_id = stream_id;
    late->first_call = first_call;
    late->started = true;
    late->complete = late->full = false;
    late->count = 0;
}

static bool open_list(sqlite3_stmt *row, sj_deferred_exits_reader *reader)
{
    const sj_slice list = {sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0)};
    return sj_deferred_exits_open(list, (uint64_t)sqlite3_column_int64(row, 1), reader) == SJ_OK;
}

static int add_exit(sj_late_exits *late, const sj_deferred_exit *leave)
{
    if (sj_hash_map_find(&late->places, leave->call_index, 1) != NULL) {
        return SQLITE_OK; /* a call ends once: the first list that has it counts */
    }
    if (late->count >= late->max_exits) {
        late->full = true;
        return SQLITE_OK;
    }
    const sj_hash_entry place = {
        .key = leave->call_index, .sub = 1, .first = (uint32_t)late->count};
    if (sj_array_reserve(&late->exits, &late->capacity, late->count, 1, sizeof(*late->exits)) !=
            SJ_OK ||
        sj_hash_map_put(&late->places, &place) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    late->exits[late->count++] = *leave;
    return SQLITE_OK;
}

/* Reads the next list. Returns SQLITE_ROW, SQLITE_DONE after the last list, or an error. */
static int read_list(sj_late_exits *late)
{
    const int result = sqlite3_step(late->lists);
    if (result != SQLITE_ROW) {
        late->complete = result == SQLITE_DONE;
        late->started = result == SQLITE_DONE;
        sqlite3_reset(late->lists);
        return result;
    }
    ++late->lists_read;
    sj_deferred_exits_reader reader;
    sj_deferred_exit leave;
    if (!open_list(late->lists, &reader)) {
        return SQLITE_ROW;
    }
    while (!late->full && sj_deferred_exits_next(&reader, &leave) == SJ_OK) {
        const int kept = add_exit(late, &leave);
        if (kept != SQLITE_OK) {
            late->started = false;
            return kept;
        }
    }
    return SQLITE_ROW;
}

/* The calls whose exits are searched. */
typedef struct exit_search {
    sj_late_exits *late;
    const uint64_t *indexes; /* sorted */
    size_t count;
    size_t left; /* number of calls whose exits were not found yet */
    sj_late_exit_found found;
    void *context;
} exit_search;

/* Calls `found` for the wanted calls in the list of a row, which is sorted, too. */
static int match_list(void *context, sqlite3_stmt *row)
{
    exit_search *search = context;
    sj_deferred_exits_reader reader;
    sj_deferred_exit leave;
    size_t position = 0;
    ++search->late->lists_read;
    if (!open_list(row, &reader)) {
        return SQLITE_OK;
    }
    while (position < search->count && sj_deferred_exits_next(&reader, &leave) == SJ_OK) {
        while (position < search->count && search->indexes[position] < leave.call_index) {
            ++position;
        }
        if (position < search->count && search->indexes[position] == leave.call_index) {
            search->found(search->context, position, &leave);
            search->left -= search->left != 0;
        }
    }
    return search->left != 0 ? SQLITE_OK : SQLITE_DONE;
}

/* Searches the lists that may have one of the calls until all are found, without storing exits. */
static int search_lists(sj_late_exits *late, int64_t stream_id, const uint64_t *indexes,
                        size_t count, sj_late_exit_found found, void *context)
{
    sqlite3_bind_int64(late->search, 1, stream_id);
    sqlite3_bind_int64(late->search, 2, (sqlite3_int64)indexes[count - 1]);
    sqlite3_bind_int64(late->search, 3, (sqlite3_int64)indexes[count - 1]);
    sqlite3_bind_int64(late->search, 4, (sqlite3_int64)indexes[0]);
    exit_search search = {.late = late,
                          .indexes = indexes,
                          .count = count,
                          .left = count,
                          .found = found,
                          .context = context};
    return sj_sql_scan(late->search, match_list, &search);
}

int sj_late_exits_find(sj_late_exits *late, int64_t stream_id, const uint64_t *indexes,
                       size_t count, sj_late_exit_found found, void *context)
{
    if (count == 0) {
        return SQLITE_OK;
    }
    if (!late->searched || late->searched_stream != stream_id) {
        late->searched = true;
        late->searched_stream = stream_id;
        return search_lists(late, stream_id, indexes, count, found, context);
    }
    /* A list that has one of the calls belongs to a later block, whose first call is later. */
    const int64_t after = (int64_t)indexes[count - 1];
    if (!late->started || late->stream_id != stream_id || after < late->first_call) {
        const bool again = late->started && late->stream_id == stream_id;
        const unsigned restarts = again ? late->restarts + 1 : 0;
        restart(late, stream_id, restarts < 2 ? after : 0);
        late->restarts = restarts;
    }
    for (size_t i = 0; i < count && !late->full; ++i) {
        while (sj_hash_map_find(&late->places, indexes[i], 1) == NULL && !late->complete &&
               !late->full) {
            const int result = read_list(late);
            if (result != SQLITE_ROW && result != SQLITE_DONE) {
                return result;
            }
        }
    }
    if (late->full) {
        sqlite3_reset(late->lists);
        return search_lists(late, stream_id, indexes, count, found, context);
    }
    for (size_t i = 0; i < count; ++i) {
        const sj_hash_entry *place = sj_hash_map_find(&late->places, indexes[i], 1);
        if (place != NULL) {
            found(context, i, &late->exits[place->first]);
        }
    }
    return SQLITE_OK;
}
