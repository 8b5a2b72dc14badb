/* Ends streams whose recorder could not end them. The recorder was killed, or the streams are
 * parts that a flight dump was cut from. When the session ends, the store adds a block that ends
 * their open calls, as open. So every reader counts these calls up to the last known moment.
 *
 * Design notes. Another stream of the same thread may follow: the rest of a killed recorder's
 * stream is salvaged as another stream. Then the earlier stream ends at its own last event,
 * because time would count twice otherwise. Calls deeper than a key-frame can hold stay without
 * an end. */
#include "collector-server/store/store_internal.h"
#include "proto/callgraph/stack_walk.h"

#include <stdlib.h>

/* Decodes the last block of a stream. The block belongs to the store's decoder and is valid until
 * the next decoding. Sets `*has_later` if another stream of the thread follows. */
static sj_status read_last(sj_store *store, int64_t stream_id, sj_block *block, bool *has_later,
                           sj_error *error)
{
    sj_statements *sql = &store->sql;
    SJ_TRY(SJ_START(sql, stream_last_block, error, .stream_id = stream_id));
    SJ_TRY(sj_sql_step(sql, SJ_SQL_STREAM_LAST_BLOCK, error));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_STREAM_LAST_BLOCK);
    sj_slice bytes;
    sj_status status = sj_block_files_get_columns(store->files, row, 0, 1, &bytes, error);
    *has_later = sqlite3_column_int64(row, 2) != 0;
    if (status == SJ_OK) {
        status = sj_block_decode(store->decoder, bytes, SJ_WANT_ALL, block);
    }
    sj_sql_reset(sql, SJ_SQL_STREAM_LAST_BLOCK);
    return status;
}

/* Fills in a block that ends all calls of the walk. `events` and `endings` have space for them. */
static sj_block_input make_input(const sj_block_header *last, const sj_stack_walk *walk,
                                 uint64_t ticks, sj_event *events, sj_block_ending *endings)
{
    sj_block_input input = {
        .header = {.kind = SJ_BLOCK_CALLS,
                   .flags = SJ_BLOCK_LAST,
                   .session = last->session,
                   .stream = last->stream,
                   .first_event = last->first_event + last->event_count,
                   .first_call = walk->next_call,
                   .event_count = (uint32_t)walk->count,
                   .clock_step = last->clock_step,
                   .open_depth = (uint32_t)walk->count,
                   .stack_frames = (uint32_t)walk->kept_frames,
                   .stack_reference = walk->kept_frames > 0 ? last->stack_reference : 0,
                   .gap_depth = walk->trust.gap_depth,
                   .waited_depth = walk->trust.waited_depth,
                   .uncertain_depth = walk->trust.uncertain_depth},
        .frames = walk->frames + walk->kept_frames,
        .events = events,
        .endings = endings,
        .ending_count = walk->count};
    for (size_t i = 0; i < walk->count; ++i) {
        events[i] = (sj_event){.ticks = ticks, .function = SJ_EVENT_LEAVE};
        endings[i] = (sj_block_ending){.event = (uint32_t)i, .ending = SJ_ENDING_OPEN};
    }
    return input;
}

/* Encodes the block into `*bytes`, which the caller frees. The size is 0 if the calls do not fit in
 * a block. */
static sj_status encode_end(const sj_block_header *last, const sj_stack_walk *walk, uint64_t ticks,
                            sj_slice *bytes)
{
    sj_event *events = calloc(walk->count, sizeof(*events));
    sj_block_ending *endings = calloc(walk->count, sizeof(*endings));
    sj_block_encoder *encoder = NULL;
    uint8_t *output = NULL;
    sj_status status =
        events == NULL || endings == NULL ? SJ_ENOMEM : sj_block_encoder_new(&encoder);
    if (status == SJ_OK) {
        const sj_block_input input = make_input(last, walk, ticks, events, endings);
        const size_t bound = sj_block_bound(&input);
        output = malloc(bound);
        status = output == NULL ? SJ_ENOMEM
                                : sj_block_encode(encoder, &input, output, bound, &bytes->size);
        bytes->data = output;
    }
    if (status == SJ_EINVAL || status == SJ_ELIMIT) {
        bytes->size = 0;
        status = SJ_OK;
    }
    sj_block_encoder_free(encoder);
    free(events);
    free(endings);
    return status;
}

/* Stores a block that ends all calls of the walk. Increments `*count` if it was stored. */
static sj_status store_end(sj_store *store, const sj_block_header *last, const sj_stack_walk *walk,
                           uint64_t ticks, uint32_t *count, sj_error *error)
{
    sj_slice bytes = {0};
    sj_status status = encode_end(last, walk, ticks, &bytes);
    if (status == SJ_OK && bytes.size > 0) {
        sj_frame_input frame = {.payload = bytes};
        status = sj_store_apply_block(store, &frame, error);
        *count += status == SJ_OK;
    }
    free((void *)(uintptr_t)bytes.data);
    return status;
}

/* Ends one stream at `known_ticks`, or at its own last event if that is later or another stream
 * follows. Increments `*count` if a block was stored. */
static sj_status end_stream(sj_store *store, int64_t stream_id, uint64_t known_ticks,
                            uint32_t *count, sj_error *error)
{
    sj_block block;
    sj_stack_walk walk = {0};
    bool has_later = false;
    sj_status status = read_last(store, stream_id, &block, &has_later, error);
    if (status == SJ_OK && block.header.end_depth > 0 &&
        block.header.end_depth <= SJ_BLOCK_MAX_STACK_FRAMES) {
        status = sj_store_walk_block(store, stream_id, &block, &walk);
    }
    for (size_t i = 0; i < walk.count; ++i) {
        walk.frames[i].flags = sj_stack_walk_flags(&walk, (uint32_t)i);
    }
    if (status == SJ_OK && walk.count > 0) {
        const uint64_t last_ticks = block.header.last_ticks;
        const uint64_t ticks = has_later || known_ticks < last_ticks ? last_ticks : known_ticks;
        status = store_end(store, &block.header, &walk, ticks, count, error);
    }
    sj_stack_walk_deinit(&walk);
    /* a stream that cannot be ended must not prevent the end of its session */
    return status == SJ_EFULL || sj_store_is_own_fault(status) ? SJ_OK : status;
}

sj_status sj_store_end_streams(sj_store *store, const sj_session_state *state, uint32_t *count,
                               sj_error *error)
{
    sj_status status = SJ_OK;
    size_t left = 0;
    int64_t *streams = calloc(state->stream_count + 1, sizeof(*streams));
    if (streams == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < state->stream_count; ++i) {
        if (!state->streams[i].ended) {
            streams[left++] = state->streams[i].stream_id;
        }
    }
    int64_t known_ticks = 0;
    if (left > 0) {
        status = SJ_GET(&store->sql, session_last_ticks, &known_ticks, error,
                        .session_id = state->session_id);
    }
    for (size_t i = 0; i < left && status == SJ_OK; ++i) {
        status = end_stream(store, streams[i], (uint64_t)known_ticks, count, error);
    }
    free(streams);
    return status;
}
