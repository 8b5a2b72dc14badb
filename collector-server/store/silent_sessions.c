/* Notes when each session was heard of last, and ends sessions that are silent for long, because
 * their end was lost.
 *
 * Design notes. The time of receipt of a session is noted at most every RECEIPT_STEP_S. A silent
 * session ends as "lost contact". No session ends this way before the store has been open for as
 * long, because the store itself may have been away. When a session ends this way, the holes in
 * its event numbers are counted (missing_calls.c). Its streams stay open, because the device may
 * only have been away. With the next frame, the session is being recorded again. */
#include "collector-server/store/store_internal.h"

#include <string.h>

enum { RECEIPT_STEP_S = 10, CHECK_S = 60, MOST_A_LOOK = 64, NS_A_MS = 1000000 };

sj_status sj_store_note_receipt(sj_store *store, sj_session_state *state, sj_error *error)
{
    const uint64_t now = sj_store_now_ns();
    if (state->receipt_noted_ns != 0 &&
        now - state->receipt_noted_ns < RECEIPT_STEP_S * UINT64_C(1000000000)) {
        return SJ_OK;
    }
    SJ_TRY(SJ_RUN(&store->sql, session_receipt, error, .session_id = state->session_id,
                  .realtime_ns = sj_store_realtime_ns()));
    state->receipt_noted_ns = now;
    return SJ_OK;
}

static sj_status end_next(sj_store *store, int64_t before_ns, sj_error *error)
{
    sj_session_id id = {0};
    sj_session_state *state = NULL;
    sj_statements *sql = &store->sql;
    sj_session_silent_next_row row;
    SJ_TRY(SJ_FIND(sql, session_silent_next, &row, error, .before_realtime_ns = before_ns));
    const int64_t session_id = row.session_id;
    if (row.uuid.size == sizeof(id.bytes)) {
        memcpy(id.bytes, row.uuid.data, sizeof(id.bytes));
    }
    sj_sql_reset(sql, SJ_SQL_SESSION_SILENT_NEXT);
    SJ_TRY(SJ_RUN(sql, session_lose_contact, error, .session_id = session_id));
    sj_error ignored; /* a session that cannot be loaded has ended, too */
    const sj_status status = sj_store_session(store, id.bytes, sizeof(id.bytes), &state, &ignored);
    if (status == SJ_OK) {
        state->dirty = state->write_now = state->has_ended = true;
        state->receipt_noted_ns = 0; /* the next frame is noted at once */
    }
    return status == SJ_OK || sj_store_is_own_fault(status) ? SJ_OK : status;
}

sj_status sj_store_end_silent(sj_store *store, sj_error *error)
{
    const uint64_t now = sj_store_now_ns();
    if (store->lost_after_ms == 0 || store->in_batch || now < store->next_silence_check_ns) {
        return SJ_OK;
    }
    store->next_silence_check_ns = now + CHECK_S * UINT64_C(1000000000);
    const int64_t before_ns = sj_store_realtime_ns() - (int64_t)store->lost_after_ms * NS_A_MS;
    SJ_TRY(sj_store_begin(store, error));
    sj_status status = SJ_OK;
    for (int i = 0; i < MOST_A_LOOK && status == SJ_OK; ++i) {
        status = end_next(store, before_ns, error);
    }
    if (status != SJ_OK && status != SJ_ENOTFOUND) {
        sj_store_rollback(store);
        return status;
    }
    return sj_store_commit(store, error);
}
