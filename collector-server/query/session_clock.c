#include "collector-server/query/session_clock.h"

int sj_session_clock_read(sqlite3 *database, sqlite3_stmt **statement, int64_t session_id,
                          sj_tick_scale *scale, uint64_t *started_ticks)
{
    if (*statement == NULL) {
        const int prepared =
            sqlite3_prepare_v3(database,
                               "SELECT tick_ns_numerator, tick_ns_denominator, started_ticks "
                               "FROM sessions WHERE session_id = ?1",
                               -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
        if (prepared != SQLITE_OK) {
            return prepared;
        }
    }
    sqlite3_bind_int64(*statement, 1, session_id);
    int result = sqlite3_step(*statement);
    if (result == SQLITE_ROW) {
        *started_ticks = (uint64_t)sqlite3_column_int64(*statement, 2);
        result = sj_tick_scale_init(scale, sqlite3_column_int64(*statement, 0),
                                    sqlite3_column_int64(*statement, 1))
                     ? SQLITE_OK
                     : SJ_SCAN_NO_CLOCK;
    } else if (result == SQLITE_DONE) {
        result = SQLITE_NOTFOUND;
    }
    sqlite3_reset(*statement);
    return result;
}
