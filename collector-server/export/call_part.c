#include "collector-server/export/call_part.h"
#include "schema/queries/export/call_part.h"

bool sj_call_part_is_limited(const sj_call_part *part)
{
    return part->selection != NULL || part->functions != NULL || part->levels != 0;
}

/* sj_call_part_sql makes the windows the outer loop, so that the table of calls reads only the
 * blocks of the windows. */
sj_status sj_call_part_prepare(sqlite3 *database, const sj_call_part *part, const char *columns,
                               const char *joins, const char *condition, sqlite3_stmt **statement)
{
    char *sql = part->selection == NULL
                    ? sqlite3_mprintf("SELECT %s FROM calls AS c %s WHERE c.session_id = ?1 %s "
                                      "ORDER BY c.call_id",
                                      columns, joins, condition)
                    : sqlite3_mprintf(sj_call_part_sql, columns, joins, condition);
    if (sql == NULL) {
        return SJ_ENOMEM;
    }
    const int result = sqlite3_prepare_v2(database, sql, -1, statement, NULL);
    sqlite3_free(sql);
    if (result != SQLITE_OK) {
        return SJ_EIO;
    }
    sqlite3_bind_int64(*statement, 1, part->session_id);
    (void)sqlite3_bind_text(*statement, 11, part->selection, -1, SQLITE_STATIC);
    return SJ_OK;
}

void sj_call_part_bind_tree(const sj_call_part *part, sqlite3_stmt *statement)
{
    sqlite3_bind_int64(statement, 1, part->session_id);
    (void)sqlite3_bind_text(statement, 2, part->selection, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 3, part->functions, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 4, part->levels);
}

sj_status sj_call_filter_open(sj_call_filter *filter, sqlite3 *database, const sj_call_part *part)
{
    *filter = (sj_call_filter){.is_open = true,
                               .has_functions = part->functions != NULL,
                               .levels = part->levels,
                               .root_depth = -1};
    if (part->functions == NULL) {
        return SJ_OK;
    }
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database, "SELECT DISTINCT value FROM json_each(?1)", -1, &row, NULL) !=
        SQLITE_OK) {
        return SJ_EIO;
    }
    (void)sqlite3_bind_text(row, 1, part->functions, -1, SQLITE_STATIC);
    sj_status status = SJ_OK;
    while (status == SJ_OK && sqlite3_step(row) == SQLITE_ROW) {
        status = sj_hash_map_put(
            &filter->functions,
            &(sj_hash_entry){.key = (uint64_t)sqlite3_column_int64(row, 0), .sub = 1});
    }
    sqlite3_finalize(row);
    return status;
}

void sj_call_filter_close(sj_call_filter *filter)
{
    sj_hash_map_deinit(&filter->functions);
    *filter = (sj_call_filter){0};
}

bool sj_call_filter_passes(sj_call_filter *filter, int64_t stream_id, int64_t depth,
                           int64_t function_id)
{
    if (stream_id != filter->stream_id) {
        filter->stream_id = stream_id;
        filter->root_depth = -1;
    }
    if (filter->root_depth < 0 || depth <= filter->root_depth) {
        const bool is_root = !filter->has_functions ||
                             sj_hash_map_find(&filter->functions, (uint64_t)function_id, 1) != NULL;
        filter->root_depth = is_root ? depth : -1;
    }
    return filter->root_depth >= 0 &&
           (filter->levels == 0 || depth - filter->root_depth < filter->levels);
}
