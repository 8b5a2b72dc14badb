/* Decides which sessions the writer keeps in memory, and whether with a graph.
 *
 * Design notes. A session costs a few KB. Its call graph and aggregates cost about a KB per call
 * path. So graphs are kept as long as they fit. A session without a graph is *behind*: its blocks
 * are only checked and stored. When its aggregates are due, they are computed from its blocks as
 * after a crash (deferred_aggregates.c). Then the graph is dropped again. That decodes its blocks
 * twice, and bounds the memory of a fleet. Busy sessions, whose blocks hold many calls per path,
 * may take ten times as much memory, because decoding is most of their cost. Dropping a graph is
 * cheap, because it is always known which blocks its rows lack. */
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"

#include <string.h>

enum { FIRST_GRAPH_BYTES = 64 << 10, BUSY_SHARE = 10 };

/* Returns the bucket of an id. Ids are random. Forged ids that are not random cost time, but only
 * while their sessions are in use. */
static sj_session_state **bucket_of(sj_store *store, const sj_session_id *id)
{
    uint64_t halves[2];
    memcpy(halves, id->bytes, sizeof(halves));
    const uint64_t mixed = (halves[0] ^ halves[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return &store->buckets[(mixed >> 32) % SJ_STORE_BUCKETS];
}

/* True if the sender may write the session. With a token, the device decides. Without one, any
 * client may claim to be any device, so the session's secret must match, too. Compares all bytes,
 * so that the time does not show how many agree. */
static bool is_owner(const sj_sender *sender, const sj_session_state *state)
{
    static const uint8_t none[SJ_SENDER_SECRET_BYTES];
    uint8_t difference = 0;
    for (size_t i = 0; i < sizeof(sender->secret); i++) {
        difference |= sender->secret[i] ^ state->owner.secret[i];
    }
    const bool needs_secret =
        !sender->has_token && memcmp(state->owner.secret, none, sizeof(none)) != 0;
    return memcmp(sender->device, state->owner.device, sizeof(sender->device)) == 0 &&
           (!needs_secret || difference == 0);
}

static sj_status check_owner(sj_store *store, const sj_session_state *state, sj_error *error)
{
    if (store->sender == NULL || is_owner(store->sender, state)) {
        return SJ_OK;
    }
    store->foreign_session = state->session_id;
    return sj_fail(error, SJ_EINVAL, "the session %02x%02x%02x%02x... is another recorder's",
                   state->id.bytes[0], state->id.bytes[1], state->id.bytes[2], state->id.bytes[3]);
}

void sj_store_forget_session(sj_store *store, size_t place)
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

static sj_session_state *find_cached(sj_store *store, const sj_session_id *id)
{
    sj_session_state *state = *bucket_of(store, id);
    while (state != NULL && memcmp(&state->id, id, sizeof(*id)) != 0) {
        state = state->next_in_bucket;
    }
    return state;
}

sj_status sj_store_see_session(sj_store *store, sj_session_state *state, sj_error *error)
{
    const sj_slice uuid = {.data = state->id.bytes, .size = sizeof(state->id.bytes)};
    int64_t bytes = 0;
    if (!store->in_batch || state->seen_in_batch == store->batch) {
        return SJ_OK;
    }
    SJ_TRY(SJ_GET(&store->sql, session_is_kept, &bytes, error, .uuid = uuid,
                  .session_id = state->session_id));
    /* another process may have counted the blocks that this state has not written yet */
    if ((uint64_t)bytes != state->row_bytes && (uint64_t)bytes != state->totals.bytes) {
        return sj_fail(error, SJ_ENOTFOUND, "another process has changed the session");
    }
    state->seen_in_batch = store->batch;
    return SJ_OK;
}

static sj_status forget_outdated(sj_store *store, sj_session_state **state, sj_error *error)
{
    const sj_status status = sj_store_see_session(store, *state, error);
    if (status != SJ_ENOTFOUND) {
        return status;
    }
    size_t place = 0;
    while (store->sessions[place] != *state) {
        place++;
    }
    sj_store_forget_session(store, place);
    *state = NULL;
    return SJ_OK;
}

sj_status sj_store_session(sj_store *store, const uint8_t *id, size_t id_bytes,
                           sj_session_state **state, sj_error *error)
{
    sj_session_id wanted;
    if (id_bytes != sizeof(wanted.bytes)) {
        return sj_fail(error, SJ_ECORRUPT, "a session id has %zu bytes, not 16", id_bytes);
    }
    memcpy(wanted.bytes, id, sizeof(wanted.bytes));
    *state = find_cached(store, &wanted);
    if (*state != NULL) {
        SJ_TRY(forget_outdated(store, state, error));
    }
    if (*state != NULL) {
        (*state)->last_used = ++store->use_count;
        store->touched = *state;
        return check_owner(store, *state, error);
    }
    SJ_TRY(sj_array_reserve(&store->sessions, &store->session_capacity, store->session_count, 1,
                            sizeof(sj_session_state *)));
    const sj_status status =
        sj_session_state_load(&store->sql, &wanted, store->most_paths, state, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, SJ_ENOTFOUND, "a session that was not announced: %02x%02x%02x%02x...",
                       id[0], id[1], id[2], id[3]);
    }
    SJ_TRY(status);
    (*state)->last_used = ++store->use_count;
    (*state)->seen_in_batch = store->in_batch ? store->batch : 0;
    store->touched = *state;
    (*state)->is_invalid = (*state)->dirty = (*state)->stored_uncounted_from != 0;
    (*state)->next_in_bucket = *bucket_of(store, &wanted);
    *bucket_of(store, &wanted) = *state;
    store->sessions[store->session_count++] = *state;
    return check_owner(store, *state, error);
}

void sj_store_forget_sessions(sj_store *store, bool only_borrowed)
{
    for (size_t i = store->session_count; i > 0; --i) {
        if (!only_borrowed || store->sessions[i - 1]->is_borrowed) {
            sj_store_forget_session(store, i - 1);
        }
    }
}

static size_t limit_for(const sj_store *store, const sj_session_state *state)
{
    return store->callgraph_memory_bytes * (state->is_busy ? BUSY_SHARE : 1);
}

bool sj_store_may_hold_graph(sj_store *store, const sj_session_state *state)
{
    if (state->is_invalid) {
        return false;
    }
    if (state->graph != NULL || state->write_now) {
        return true;
    }
    const bool fits = store->held_bytes + FIRST_GRAPH_BYTES <= limit_for(store, state);
    store->held_bytes += fits ? FIRST_GRAPH_BYTES : 0; /* the next trim counts the bytes again */
    return fits;
}

void sj_store_forget_graph(sj_store *store, sj_session_state *state)
{
    const size_t before = sj_session_state_bytes(state);
    sj_session_drop_graph(state);
    state->is_invalid = state->is_invalid || state->dirty;
    store->held_bytes -= before - sj_session_state_bytes(state);
}

bool sj_store_holds_too_much(const sj_store *store, const sj_session_state *state)
{
    return store->held_bytes > limit_for(store, state);
}
