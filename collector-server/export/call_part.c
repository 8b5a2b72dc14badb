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

sj_sql_binds sj_call_part_tree_binds(const sj_call_part *part)
{
    static const sj_sql_field fields[] = {{SJ_BIND_INT, offsetof(sj_call_part, session_id)},
                                          {SJ_BIND_TEXT, offsetof(sj_call_part, selection)},
                                          {SJ_BIND_TEXT, offsetof(sj_call_part, functions)},
                                          {SJ_BIND_INT, offsetof(sj_call_part, levels)}};
    return (sj_sql_binds){fields, sizeof(fields) / sizeof(fields[0]), part};
}

static sj_status add_function(void *functions, sqlite3_stmt *row)
{
    return sj_hash_map_put(
        functions, &(sj_hash_entry){.key = (uint64_t)sqlite3_column_int64(row, 0), .sub = 1});
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
    static const sj_sql_field fields[] = {{SJ_BIND_TEXT, offsetof(sj_call_part, functions)}};
    sj_error ignored;
    return sj_sql_each(database, "SELECT DISTINCT value FROM json_each(?1)",
                       (sj_sql_binds){fields, 1, part}, add_function, &filter->functions, &ignored);
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
