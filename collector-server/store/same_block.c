/* Compares two blocks of the same events, and quarantines a block that differs.
 *
 * Recovery cuts blocks again from the ring of a recorder that died. The events are the same, but
 * the borders differ, and so do bytes, key-frames and dictionaries. Each event must agree in its
 * number, its time, its function (or that it is a LEAVE), and in how its call ended. Numbers
 * include the events that gaps lost. Depths follow from those, and the decoder checks them. Values
 * are not compared. Blocks without events must agree in their stack frames or in their gaps. */
#include "collector-server/store/same_block.h"

#include "collector-server/store/store_internal.h"

#include <string.h>

static uint32_t function_at(const sj_block *block, size_t event)
{
    const uint32_t symbol =
        block->symbols16 != NULL ? block->symbols16[event] : block->symbols32[event];
    return symbol == 0 ? SJ_EVENT_LEAVE : block->functions[symbol - 1];
}

/* Compares the endings of the events of `repeat` with the endings of `stored` from event `first`
 * on. */
static bool has_same_endings(const sj_block *stored, size_t first, const sj_block *repeat)
{
    size_t at = 0;
    size_t same = 0;
    while (at < stored->ending_count && stored->endings[at].event < first) {
        at++;
    }
    for (; at < stored->ending_count && same < repeat->ending_count; at++, same++) {
        if (stored->endings[at].event - first != repeat->endings[same].event ||
            stored->endings[at].ending != repeat->endings[same].ending) {
            return false;
        }
    }
    return same == repeat->ending_count &&
           (at == stored->ending_count ||
            stored->endings[at].event >= first + repeat->header.event_count);
}

/* True if two times are equal or less than a step apart. Times are stored in steps from the first
 * event of a block, so a block with another first event may round a time to the next step. */
static bool is_same_time(uint64_t left, uint64_t right, uint64_t step)
{
    const uint64_t apart = left > right ? left - right : right - left;
    return apart == 0 || apart < step;
}

/* An event of a block, with its number in the stream. Numbers include the events that gaps lost. */
typedef struct numbered_event {
    const sj_block *block;
    size_t event;
    size_t gap;
    uint64_t number;
} numbered_event;

static void pass_gaps(numbered_event *at)
{
    const sj_block *block = at->block;
    while (at->gap < block->gap_count && block->gaps[at->gap].before_event <= at->event) {
        at->number += block->gaps[at->gap++].events;
    }
}

static numbered_event first_event_of(const sj_block *block)
{
    numbered_event at = {.block = block, .number = block->header.first_event};
    pass_gaps(&at);
    return at;
}

static void go_to_next(numbered_event *at)
{
    at->event++;
    at->number++;
    pass_gaps(at);
}

static bool has_same_events(const sj_block *stored, const sj_block *repeat)
{
    numbered_event left = first_event_of(stored);
    numbered_event right = first_event_of(repeat);
    while (left.event < stored->header.event_count && left.number < right.number) {
        go_to_next(&left);
    }
    const size_t first = left.event;
    const uint64_t step = stored->header.clock_step > repeat->header.clock_step
                              ? stored->header.clock_step
                              : repeat->header.clock_step;
    for (; right.event < repeat->header.event_count; go_to_next(&left), go_to_next(&right)) {
        if (left.event >= stored->header.event_count || left.number != right.number ||
            function_at(stored, left.event) != function_at(repeat, right.event) ||
            !is_same_time(stored->ticks[left.event], repeat->ticks[right.event], step)) {
            return false;
        }
    }
    return has_same_endings(stored, first, repeat);
}

/* True if two DEEP_FRAMES blocks have the same frames. They have no events to compare. */
static bool has_same_frames(const sj_block *stored, const sj_block *repeat)
{
    if (stored->frame_count != repeat->frame_count) {
        return false;
    }
    for (size_t i = 0; i < stored->frame_count; i++) {
        if (stored->frames[i].call_index != repeat->frames[i].call_index ||
            stored->frames[i].function != repeat->frames[i].function ||
            stored->frames[i].start_ticks != repeat->frames[i].start_ticks) {
            return false;
        }
    }
    return true;
}

/* Compares the gaps. A block without events reports losses, or only the end of its stream. */
static bool has_same_gaps(const sj_block *stored, const sj_block *repeat)
{
    if (repeat->gap_count != 0 && repeat->gap_count != stored->gap_count) {
        return false;
    }
    for (size_t i = 0; i < repeat->gap_count; i++) {
        if (stored->gaps[i].reason != repeat->gaps[i].reason ||
            stored->gaps[i].calls != repeat->gaps[i].calls ||
            stored->gaps[i].events != repeat->gaps[i].events) {
            return false;
        }
    }
    return true;
}

bool sj_block_covers(const sj_block *stored, const sj_block *repeat)
{
    if (repeat->header.event_count == 0) {
        return repeat->header.kind == SJ_BLOCK_DEEP_FRAMES ? has_same_frames(stored, repeat)
                                                           : has_same_gaps(stored, repeat);
    }
    return has_same_events(stored, repeat);
}

sj_status sj_store_compare_block(sj_store *store, int64_t stored_block, sj_slice bytes,
                                 sj_error *error)
{
    sj_statements *sql = &store->sql;
    sj_block repeat;
    sj_block stored;
    SJ_TRY(SJ_START(sql, block_read, error, .block_id = stored_block));
    const sj_status found = sj_sql_step(sql, SJ_SQL_BLOCK_READ, error);
    if (found != SJ_OK) { /* the stored block is quarantined: the new one may be correct */
        return found == SJ_ENOTFOUND ? sj_fail(error, SJ_EEXIST, "the stored block cannot be read")
                                     : found;
    }
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_BLOCK_READ);
    sj_slice old;
    const sj_status fetched = sj_block_files_get_columns(store->files, row, 1, 2, &old, error);
    if (fetched != SJ_OK) {
        sj_sql_reset(sql, SJ_SQL_BLOCK_READ);
        /* The file of the stored block is missing. The block was acknowledged and has the same
         * identity, so it counts as equal. */
        return fetched == SJ_EIO ? SJ_OK : fetched == SJ_ENOMEM ? fetched : SJ_EEXIST;
    }
    if (old.size == bytes.size && memcmp(old.data, bytes.data, bytes.size) == 0) {
        sj_sql_reset(sql, SJ_SQL_BLOCK_READ);
        return SJ_OK;
    }
    sj_status status = sj_block_decode(store->decoder, bytes, SJ_WANT_ALL, &repeat);
    if (status != SJ_OK) {
        sj_sql_reset(sql, SJ_SQL_BLOCK_READ);
        return sj_fail(error, status, "a block cannot be decoded");
    }
    status = sj_block_decode(store->stack_decoder, old, SJ_WANT_ALL, &stored);
    sj_sql_reset(sql, SJ_SQL_BLOCK_READ);
    if (status != SJ_OK) {
        return sj_fail(error, SJ_EEXIST, "the stored block cannot be decoded");
    }
    return sj_block_covers(&stored, &repeat)
               ? SJ_OK
               : sj_fail(error, SJ_EEXIST, "its events are not the stored ones");
}

sj_status sj_store_quarantine(sj_store *store, const sj_session_state *state,
                              const sj_block_header *header, sj_slice bytes, const char *reason,
                              sj_error *error)
{
    int64_t found = 0;
    const sj_slice sender =
        store->sender != NULL
            ? (sj_slice){.data = store->sender->device, .size = sizeof(store->sender->device)}
            : (sj_slice){0};
    const sj_status known =
        SJ_GET(&store->sql, block_is_aside, &found, error, .session_id = state->session_id,
               .stream = header->stream, .first_event = header->first_event,
               .event_count = header->event_count, .data = bytes);
    if (known != SJ_ENOTFOUND) {
        return known;
    }
    return SJ_RUN(&store->sql, block_keep_aside, error, .session_id = state->session_id,
                  .stream = header->stream, .first_event = header->first_event,
                  .event_count = header->event_count, .sender_uuid = sender, .reason = reason,
                  .arrived_realtime_ns = sj_store_realtime_ns(), .data = bytes);
}
