#include "collector-server/query/cost_lookup.h"

void sj_cost_lookup_deinit(sj_cost_lookup *lookup)
{
    sqlite3_finalize(lookup->row);
    lookup->row = NULL;
}

int64_t sj_cost_lookup_find(sj_cost_lookup *lookup, const sj_block_scan *scan, int64_t call_id,
                            int place)
{
    static const char sql[] =
        "SELECT cpu_ns, cpu_self_ns, allocations, allocated_bytes, frees, freed_bytes, "
        "allocated_bytes - freed_bytes, allocated_self_bytes FROM call_costs "
        "WHERE session_id = ?1 AND call_id = ?2";
    if (lookup->row == NULL &&
        sqlite3_prepare_v2(lookup->database, sql, -1, &lookup->row, NULL) != SQLITE_OK) {
        return INT64_MIN;
    }
    sqlite3_bind_int64(lookup->row, 1, scan->session.session_id);
    sqlite3_bind_int64(lookup->row, 2, call_id);
    const bool is_known = sqlite3_step(lookup->row) == SQLITE_ROW &&
                          sqlite3_column_type(lookup->row, place) != SQLITE_NULL;
    const int64_t cost = is_known ? sqlite3_column_int64(lookup->row, place) : INT64_MIN;
    sqlite3_reset(lookup->row);
    return cost;
}
