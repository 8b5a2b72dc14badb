#include "collector-server/query/valued_calls.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"

#include <stdlib.h>

static const char calls_sql[] =
    "SELECT DISTINCT call_id FROM arguments WHERE session_id = ?1 AND call_id BETWEEN ?2 AND ?3 "
    "AND (?4 IS NULL OR position = ?4) AND (?5 IS NULL OR value = ?5) "
    "AND (?6 IS NULL OR value >= ?6) AND (?7 IS NULL OR value <= ?7) ORDER BY call_id";

int sj_valued_calls_open(sj_valued_calls *calls, sqlite3 *database, const sj_value_filter *filter)
{
    sqlite3_value *const bounds[] = {filter->position, filter->same, filter->least,
                                     filter->greatest};
    sqlite3_finalize(calls->select);
    int result = sqlite3_prepare_v3(database, calls_sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &calls->select, NULL);
    for (int i = 0; result == SQLITE_OK && i < 4; ++i) {
        result =
            bounds[i] != NULL ? sqlite3_bind_value(calls->select, 4 + i, bounds[i]) : SQLITE_OK;
    }
    return result;
}

void sj_valued_calls_close(sj_valued_calls *calls)
{
    sqlite3_finalize(calls->select);
    free(calls->indexes);
    *calls = (sj_valued_calls){0};
}

static int add_call(void *context, sqlite3_stmt *row)
{
    sj_valued_calls *calls = context;
    if (sj_array_reserve(&calls->indexes, &calls->capacity, calls->count, 1,
                         sizeof(*calls->indexes)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    calls->indexes[calls->count++] =
        (uint64_t)sqlite3_column_int64(row, 0) & ((UINT64_C(1) << SJ_CALL_INDEX_BITS) - 1);
    return SQLITE_OK;
}

int sj_valued_calls_enter(sj_valued_calls *calls, const sj_block_scan *scan)
{
    const sj_block_header *header = &scan->block.header;
    const uint64_t last = header->first_call + header->call_count + header->lost_calls - 1;
    calls->count = calls->next = 0;
    calls->lost = (sj_lost_calls){0};
    sqlite3_bind_int64(calls->select, 1, scan->session.session_id);
    sqlite3_bind_int64(calls->select, 2,
                       (int64_t)sj_call_id_of((uint64_t)scan->stream_id, header->first_call));
    sqlite3_bind_int64(calls->select, 3, (int64_t)sj_call_id_of((uint64_t)scan->stream_id, last));
    return sj_sql_scan(calls->select, add_call, calls);
}

bool sj_valued_calls_has(sj_valued_calls *calls, const sj_block *block, uint32_t row)
{
    const uint64_t index =
        block->header.first_call + row + sj_lost_calls_before(&calls->lost, block, row);
    while (calls->next < calls->count && calls->indexes[calls->next] < index) {
        ++calls->next;
    }
    return calls->next < calls->count && calls->indexes[calls->next] == index;
}
