/* Which sessions the writer holds in memory, and how much of them.
 *
 * Design notes. A session costs a few KB, its call graph and sums about a KB for each call path. So
 * graphs are held as long as they fit; a session that gets none is *behind*: its blocks are only
 * checked and stored, and when its sums are due they are made from its blocks as after a crash
 * (late_sums.c), whereupon its graph goes again. That costs decoding its blocks twice, and bounds
 * the memory of a fleet. Busy sessions, whose blocks hold many calls for each path, may take ten
 * times as much: for them it is the decoding that counts. Forgetting a graph costs nothing at that
 * moment, since what its rows lack is always known. */
#include "collector-server/store/store_internal.h"

#include <string.h>

enum { FIRST_GRAPH_BYTES = 64 << 10, BUSY_SHARE = 10 };

/* Ids are random; a liar's that are not cost time, and only as long as its sessions are used. */
static sj_session_state **bucket_of(sj_store *store, const sj_session_id *id)
{
    uint64_t halves[2];
    memcpy(halves, id->bytes, sizeof(halves));
    const uint64_t mixed = (halves[0] ^ halves[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return &store->buckets[(mixed >> 32) % SJ_STORE_BUCKETS];
}

sj_status sj_store_session(sj_store *store, const uint8_t *id, size_t id_bytes,
                           sj_session_state **state, sj_error *error)
{
    sj_session_id wanted;
    if (id_bytes != sizeof(wanted.bytes)) {
        return sj_fail(error, SJ_ECORRUPT, "a session id has %zu bytes, not 16", id_bytes);
    }
    memcpy(wanted.bytes, id, sizeof(wanted.bytes));
    *state = *bucket_of(store, &wanted);
    while (*state != NULL && memcmp(&(*state)->id, &wanted, sizeof(wanted)) != 0) {
        *state = (*state)->next_in_bucket;
    }
    if (*state != NULL) {
        (*state)->last_used = ++store->use_count;
        return SJ_OK;
    }
    SJ_TRY(sj_array_grow((void **)&store->sessions, &store->session_capacity, store->session_count,
                         sizeof(sj_session_state *)));
    const sj_status status =
        sj_session_state_load(&store->sql, &wanted, store->most_paths, state, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, SJ_ENOTFOUND, "a session that was not announced: %02x%02x%02x%02x...",
                       id[0], id[1], id[2], id[3]);
    }
    SJ_TRY(status);
    (*state)->last_used = ++store->use_count;
    (*state)->is_behind = (*state)->dirty = (*state)->unsummed_in_store != 0;
    (*state)->next_in_bucket = *bucket_of(store, &wanted);
    *bucket_of(store, &wanted) = *state;
    store->sessions[store->session_count++] = *state;
    return SJ_OK;
}

static void forget_session(sj_store *store, size_t place)
{
    sj_session_state *state = store->sessions[place];
    sj_session_state **link = bucket_of(store, &state->id);
    while (*link != state) {
        link = &(*link)->next_in_bucket;
    }
    *link = state->next_in_bucket;
    sj_session_state_free(state);
    store->sessions[place] = store->sessions[--store->session_count];
}

void sj_store_forget_sessions(sj_store *store, bool only_guests)
{
    for (size_t i = store->session_count; i > 0; --i) {
        if (!only_guests || store->sessions[i - 1]->is_guest) {
            forget_session(store, i - 1);
        }
    }
}

static size_t limit_for(const sj_store *store, const sj_session_state *state)
{
    return store->callgraph_memory_bytes * (state->is_busy ? BUSY_SHARE : 1);
}

bool sj_store_may_hold_graph(sj_store *store, const sj_session_state *state)
{
    if (state->is_behind) {
        return false;
    }
    if (state->graph != NULL || state->sum_now) {
        return true;
    }
    const bool fits = store->held_bytes + FIRST_GRAPH_BYTES <= limit_for(store, state);
    store->held_bytes += fits ? FIRST_GRAPH_BYTES : 0; /* counted anew by the next trim */
    return fits;
}

void sj_store_forget_graph(sj_store *store, sj_session_state *state)
{
    const size_t before = sj_session_state_bytes(state);
    sj_session_drop_graph(state);
    state->is_behind = state->is_behind || state->dirty;
    store->held_bytes -= before - sj_session_state_bytes(state);
}

bool sj_store_holds_too_much(const sj_store *store, const sj_session_state *state)
{
    return store->held_bytes > limit_for(store, state);
}

/* The session used longest ago that may go: of those with a graph one beyond what it may take, else
 * any without one. Not the one used last, nor one that must be written first. session_count: there
 * is none. */
static size_t find_oldest(const sj_store *store, bool with_graph)
{
    size_t oldest = store->session_count;
    for (size_t i = 0; i < store->session_count; ++i) {
        const sj_session_state *state = store->sessions[i];
        if (state->last_used != store->use_count && !state->sum_now &&
            (state->graph != NULL) == with_graph &&
            (!with_graph || sj_store_holds_too_much(store, state)) &&
            (oldest == store->session_count ||
             state->last_used < store->sessions[oldest]->last_used)) {
            oldest = i;
        }
    }
    return oldest;
}

/* Counts what is held of sessions, and of those without a graph. */
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

sj_status sj_store_trim_sessions(sj_store *store, sj_error *error)
{
    size_t oldest;
    (void)count_bytes(store);
    while ((oldest = find_oldest(store, true)) < store->session_count) {
        sj_store_forget_graph(store, store->sessions[oldest]);
    }
    size_t thin = count_bytes(store);
    while (thin > store->callgraph_memory_bytes &&
           (oldest = find_oldest(store, false)) < store->session_count) {
        sj_session_state *state = store->sessions[oldest];
        const size_t bytes = sj_session_state_bytes(state);
        if (state->dirty) {
            SJ_TRY(sj_store_write_or_set_apart(store, state, error));
        }
        thin -= bytes;
        forget_session(store, oldest);
    }
    return SJ_OK;
}
