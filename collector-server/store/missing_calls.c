/* Finds what an ended session sent and the store does not hold. Some frames were refused for
 * good. Others were stored and are gone, for example after a backup was restored during a
 * recording.
 *
 * Design notes. Calls that were sent and are not stored are lost. The device counted some of
 * them itself. The others are missing: they are added to the session's lost calls, and gaps say
 * where. Each hole in the event numbers of a stream is one gap. Calls missing outside holes, for
 * example at the end of a stream, are one gap of the whole session. All gaps are recomputed
 * whenever aggregates are written, so that late blocks fill them. */
#include "collector-server/store/session_state.h"
#include "proto/base/array.h"

#include <stdlib.h>

/* Maximum number of holes with a gap of their own. The last gap has the rest. */
enum { MOST_HOLES = 4096 };

static const char reason[] = "not_stored";

/* A hole in the event numbers of a stream. */
typedef struct event_hole {
    int64_t stream_id;
    int64_t calls;
    int64_t events;
    int64_t start_ns;
    int64_t end_ns;
} event_hole;

typedef struct hole_list {
    event_hole *holes;
    size_t count, capacity;
    event_hole rest; /* sums of the holes beyond the maximum */
} hole_list;

typedef struct session_account {
    bool has_end;          /* the device reported what it sent */
    int64_t calls, blocks; /* sent, but neither stored nor counted as lost by the device */
    int64_t known_to_miss; /* calls and blocks noted as missing before */
    int64_t ended_ns;
} session_account;

static int64_t at_least_zero(int64_t value)
{
    return value > 0 ? value : 0;
}

/* Returns SJ_ENOTFOUND if the session has not ended. */
static sj_status read_account(sj_statements *sql, const sj_session_state *state,
                              session_account *account, sj_error *error)
{
    sj_missing_read_row row;
    SJ_TRY(SJ_FIND(sql, missing_read, &row, error, .session_id = state->session_id));
    *account = (session_account){.has_end = row.has_calls,
                                 .calls = at_least_zero(row.calls),
                                 .blocks = at_least_zero(row.blocks),
                                 .known_to_miss = row.known_to_miss,
                                 .ended_ns = sj_ticks_at_ns(&state->clock, row.ended_ticks)};
    return SJ_OK;
}

static void add_hole(hole_list *list, const event_hole *hole)
{
    if (list->count < MOST_HOLES && sj_array_reserve(&list->holes, &list->capacity, list->count, 1,
                                                     sizeof(*list->holes)) == SJ_OK) {
        list->holes[list->count++] = *hole;
        return;
    }
    list->rest.calls += hole->calls;
    list->rest.events += hole->events;
}

static sj_status list_holes(sj_statements *sql, const sj_session_state *state, hole_list *list,
                            sj_error *error)
{
    SJ_TRY(SJ_START(sql, hole_list, error, .session_id = state->session_id));
    sj_hole_list_row row;
    sj_status status;
    while ((status = sj_next_hole_list(sql, &row, error)) == SJ_OK) {
        add_hole(list, &(event_hole){.stream_id = row.stream_id,
                                     .events = row.events,
                                     .calls = at_least_zero(row.calls),
                                     .start_ns = sj_ticks_at_ns(&state->clock, row.start_ticks),
                                     .end_ns = sj_ticks_at_ns(&state->clock, row.end_ticks)});
    }
    sj_sql_reset(sql, SJ_SQL_HOLE_LIST);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

static sj_status add_gap(sj_statements *sql, const sj_session_state *state, const event_hole *hole,
                         sj_error *error)
{
    return SJ_RUN(sql, gap_add, error, .session_id = state->session_id,
                  .stream_id = hole->stream_id != 0 ? &hole->stream_id : NULL, .reason = reason,
                  .calls = hole->calls, .events = hole->events, .start_ns = hole->start_ns,
                  .end_ns = hole->end_ns);
}

/* Writes a gap for each hole, and one for calls missing outside holes. If the device reported what
 * it sent, the calls of all gaps add up to `account->calls`. Otherwise sets `account->calls` to the
 * calls in the holes. Adds the events to `*events`. */
static sj_status add_gaps(sj_statements *sql, const sj_session_state *state,
                          session_account *account, const hole_list *list, int64_t *events,
                          sj_error *error)
{
    int64_t placed = 0;
    for (size_t i = 0; i < list->count; ++i) {
        event_hole hole = list->holes[i];
        if (account->has_end && hole.calls > account->calls - placed) {
            hole.calls = account->calls - placed;
        }
        placed += hole.calls;
        *events += hole.events;
        SJ_TRY(add_gap(sql, state, &hole, error));
    }
    account->calls = account->has_end ? account->calls : placed + list->rest.calls;
    const event_hole rest = {.calls = account->calls - placed,
                             .events = list->rest.events > account->calls - placed
                                           ? list->rest.events
                                           : account->calls - placed,
                             .end_ns = account->ended_ns};
    *events += rest.events;
    return rest.calls > 0 || rest.events > 0 ? add_gap(sql, state, &rest, error) : SJ_OK;
}

sj_status sj_session_note_missing(sj_statements *sql, const sj_session_state *state,
                                  sj_error *error)
{
    session_account account;
    hole_list list = {0};
    int64_t events = 0;
    sj_status status = read_account(sql, state, &account, error);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    const bool is_whole = account.has_end && account.calls == 0 && account.blocks == 0;
    if (is_whole && account.known_to_miss == 0) {
        return SJ_OK;
    }
    SJ_TRY(SJ_RUN(sql, missing_forget, error, .session_id = state->session_id, .reason = reason));
    status = is_whole ? SJ_OK : list_holes(sql, state, &list, error);
    if (status == SJ_OK) {
        status = add_gaps(sql, state, &account, &list, &events, error);
    }
    free(list.holes);
    SJ_TRY(status);
    return SJ_RUN(sql, missing_note, error, .session_id = state->session_id, .calls = account.calls,
                  .events = events, .blocks = account.blocks);
}
