/* Drops sessions that have ended, and sessions and graphs when memory is short (session_cache.c
 * says why). */
#include "collector-server/store/store_internal.h"

/* Finds the session used longest ago that may be dropped. With `with_graph`, considers only
 * sessions with a graph, if memory is over the limit that applies to them. Otherwise considers
 * only sessions without a graph. Skips the session used last, and sessions whose aggregates the
 * next commit must write. Returns session_count if there is none. */
static size_t find_oldest(const sj_store *store, bool with_graph)
{
    size_t oldest = store->session_count;
    for (size_t i = 0; i < store->session_count; ++i) {
        const sj_session_state *state = store->sessions[i];
        if (state->last_used != store->use_count && !state->write_now &&
            (state->graph != NULL) == with_graph &&
            (!with_graph || sj_store_holds_too_much(store, state)) &&
            (oldest == store->session_count ||
             state->last_used < store->sessions[oldest]->last_used)) {
            oldest = i;
        }
    }
    return oldest;
}

/* Updates held_bytes for all sessions. Returns the bytes of sessions without a graph. */
static size_t count_bytes(sj_store *store)
{
    size_t thin = 0;
    store->held_bytes = 0;
    for (size_t i = 0; i < store->session_count; ++i) {
        const size_t bytes = sj_session_state_bytes(store->sessions[i]);
        store->held_bytes += bytes;
        thin += store->sessions[i]->graph == NULL ? bytes : 0;
    }
    return thin;
}

/* Drops the sessions that have ended and whose rows are complete. A later frame loads its session
 * again. */
static void drop_ended(sj_store *store)
{
    for (size_t i = store->session_count; i > 0; --i) {
        const sj_session_state *state = store->sessions[i - 1];
        if (state->has_ended && !state->write_now && !state->dirty && !state->is_quarantined &&
            state->last_used != store->use_count) {
            sj_store_forget_session(store, i - 1);
        }
    }
}

/* Visits all sessions only twice if they fit: this runs for each batch, also with thousands of
 * sessions. */
sj_status sj_store_trim_sessions(sj_store *store, sj_error *error)
{
    size_t oldest;
    drop_ended(store);
    size_t thin = count_bytes(store);
    if (store->held_bytes <= store->callgraph_memory_bytes) {
        return SJ_OK; /* every limit is at least that */
    }
    while ((oldest = find_oldest(store, true)) < store->session_count) {
        sj_store_forget_graph(store, store->sessions[oldest]);
        thin += sj_session_state_bytes(store->sessions[oldest]);
    }
    while (thin > store->callgraph_memory_bytes &&
           (oldest = find_oldest(store, false)) < store->session_count) {
        sj_session_state *state = store->sessions[oldest];
        const size_t bytes = sj_session_state_bytes(state);
        if (state->dirty) {
            SJ_TRY(sj_store_write_or_quarantine(store, state, error));
        }
        thin -= bytes;
        sj_store_forget_session(store, oldest);
    }
    return SJ_OK;
}
