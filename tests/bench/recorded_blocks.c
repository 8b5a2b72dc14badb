#include "tests/bench/recorded_blocks.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = SJ_BLOCK_MAX_INLINE_FRAMES, MAX_FUNCTIONS = 1 << 20 };

typedef struct cutter {
    recorded_blocks *all;
    size_t wanted;
    uint32_t events_wanted;
    uint64_t shift_ticks; /* added to the recording's times */
    bool started;
    sj_block_encoder *encoder;
    uint32_t *new_ids; /* index: the recording's function id; 0: not seen yet */
    sj_stack_frame stack[MAX_DEPTH];
    uint32_t depth;
    sj_stack_frame key_frame[MAX_DEPTH];
    uint32_t key_depth;
    sj_event *events;
    uint32_t event_count;
    uint64_t first_event, first_call, next_call;
} cutter;

static void fail(const char *what)
{
    fprintf(stderr, "recorded_blocks: %s\n", what);
    exit(1);
}

static uint32_t rename_function(cutter *cut, uint32_t function)
{
    if (function >= MAX_FUNCTIONS) {
        fail("too many functions");
    }
    if (cut->new_ids[function] == 0) {
        cut->new_ids[function] = ++cut->all->function_count;
    }
    return cut->new_ids[function];
}

static void finish_block(cutter *cut)
{
    sj_block_input input = {.frames = cut->key_frame, .events = cut->events};
    recorded_block *made = &cut->all->blocks[cut->all->count++];
    input.header.version = SJ_BLOCK_VERSION;
    input.header.kind = SJ_BLOCK_CALLS;
    input.header.stream = 1;
    input.header.first_event = cut->first_event;
    input.header.first_call = cut->first_call;
    input.header.event_count = cut->event_count;
    input.header.open_depth = cut->key_depth;
    input.header.first_ticks = cut->events[0].ticks;
    input.header.last_ticks = cut->events[cut->event_count - 1].ticks;
    input.header.clock_step = 1;
    const size_t bound = sj_block_bound(&input);
    made->bytes = malloc(bound);
    made->calls = (uint32_t)(cut->next_call - cut->first_call);
    if (made->bytes == NULL ||
        sj_block_encode(cut->encoder, &input, made->bytes, bound, &made->size) != SJ_OK) {
        fail("a block cannot be encoded");
    }
    cut->first_event += cut->event_count;
    cut->first_call = cut->next_call;
    cut->event_count = 0;
    cut->key_depth = cut->depth;
    memcpy(cut->key_frame, cut->stack, cut->depth * sizeof(*cut->stack));
}

static void enter(cutter *cut, uint32_t function, uint64_t ticks)
{
    if (cut->depth == MAX_DEPTH) {
        fail("the recording is too deep");
    }
    cut->stack[cut->depth++] = (sj_stack_frame){.call_index = cut->next_call++,
                                                .start_ticks = ticks,
                                                .stack = 0x7fff00000000 - cut->depth * UINT64_C(64),
                                                .function = function};
}

static void leave(cutter *cut, uint64_t ticks)
{
    const sj_stack_frame *ended = &cut->stack[--cut->depth];
    if (cut->depth > 0) {
        cut->stack[cut->depth - 1].child_ticks += ticks - ended->start_ticks;
    }
}

/* Leaves out an exit without an open call: that call began before the recording. */
static void add_event(cutter *cut, uint32_t function, uint64_t ticks)
{
    if (function == SJ_EVENT_LEAVE && cut->depth == 0) {
        return;
    }
    if (function == SJ_EVENT_LEAVE) {
        leave(cut, ticks);
    } else {
        enter(cut, function, ticks);
    }
    cut->events[cut->event_count++] = (sj_event){.ticks = ticks, .function = function};
    if (cut->event_count == cut->events_wanted) {
        finish_block(cut);
    }
}

static void add_block(cutter *cut, const sj_block *block)
{
    for (size_t i = 0; i < block->header.event_count && cut->all->count < cut->wanted; i++) {
        const uint32_t symbol =
            block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i];
        if (!cut->started) {
            cut->shift_ticks -= block->ticks[i];
            cut->started = true;
        }
        add_event(cut,
                  symbol == SJ_EVENT_LEAVE ? SJ_EVENT_LEAVE
                                           : rename_function(cut, block->functions[symbol - 1]),
                  block->ticks[i] + cut->shift_ticks);
    }
}

/* Returns a statement whose rows are the bytes of the CALLS blocks of the stream with most calls.
 */
static sqlite3_stmt *open_busiest_stream(const char *database, sqlite3 **opened)
{
    static const char sql[] =
        "SELECT data FROM blocks WHERE kind = ?1 AND stream_id = (SELECT stream_id FROM streams"
        " ORDER BY calls DESC LIMIT 1) ORDER BY first_event";
    sqlite3_stmt *row = NULL;
    if (sqlite3_open_v2(database, opened, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(*opened, sql, -1, &row, NULL) != SQLITE_OK) {
        fail(sqlite3_errmsg(*opened));
    }
    sqlite3_bind_int(row, 1, SJ_BLOCK_CALLS);
    return row;
}

static uint32_t highest_function(const sj_block *block, uint32_t highest)
{
    for (size_t i = 0; i < block->function_count; i++) {
        highest = block->functions[i] > highest ? block->functions[i] : highest;
    }
    return highest;
}

void recorded_blocks_load_whole(const char *database, size_t most, recorded_blocks *all)
{
    sqlite3 *opened = NULL;
    sj_block_decoder *decoder = NULL;
    *all = (recorded_blocks){.blocks = calloc(most, sizeof(*all->blocks))};
    if (all->blocks == NULL || sj_block_decoder_new(&decoder) != SJ_OK) {
        fail("no memory");
    }
    sqlite3_stmt *row = open_busiest_stream(database, &opened);
    while (all->count < most && sqlite3_step(row) == SQLITE_ROW) {
        const sj_slice bytes = {.data = sqlite3_column_blob(row, 0),
                                .size = (size_t)sqlite3_column_bytes(row, 0)};
        recorded_block *kept = &all->blocks[all->count++];
        sj_block block;
        *kept = (recorded_block){.bytes = malloc(bytes.size), .size = bytes.size};
        if (kept->bytes == NULL ||
            sj_block_decode(decoder, bytes, SJ_WANT_STRUCTURE, &block) != SJ_OK ||
            block.header.stream != 1) {
            fail("a block cannot be decoded, or is none of the first stream");
        }
        memcpy(kept->bytes, bytes.data, bytes.size);
        kept->calls = block.header.call_count;
        all->function_count = highest_function(&block, all->function_count);
    }
    sqlite3_finalize(row);
    sqlite3_close(opened);
    sj_block_decoder_free(decoder);
}

void recorded_blocks_load(const char *database, uint32_t events, size_t count, uint64_t start_ticks,
                          recorded_blocks *all)
{
    sqlite3 *opened = NULL;
    sqlite3_stmt *row = NULL;
    sj_block_decoder *decoder = NULL;
    cutter *cut = calloc(1, sizeof(*cut));
    *all = (recorded_blocks){.blocks = calloc(count, sizeof(*all->blocks))};
    if (cut == NULL || all->blocks == NULL || sj_block_decoder_new(&decoder) != SJ_OK ||
        sj_block_encoder_new(&cut->encoder) != SJ_OK ||
        (cut->new_ids = calloc(MAX_FUNCTIONS, sizeof(*cut->new_ids))) == NULL ||
        (cut->events = calloc(events, sizeof(*cut->events))) == NULL) {
        fail("no memory");
    }
    cut->all = all;
    cut->wanted = count;
    cut->events_wanted = events;
    cut->shift_ticks = start_ticks;
    row = open_busiest_stream(database, &opened);
    while (all->count < count && sqlite3_step(row) == SQLITE_ROW) {
        sj_block block;
        const sj_slice bytes = {.data = sqlite3_column_blob(row, 0),
                                .size = (size_t)sqlite3_column_bytes(row, 0)};
        if (sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block) != SJ_OK) {
            fail("a block of the recording cannot be decoded");
        }
        add_block(cut, &block);
    }
    if (all->count < count) {
        fail("the recording is too short");
    }
    sqlite3_finalize(row);
    sqlite3_close(opened);
    sj_block_decoder_free(decoder);
    sj_block_encoder_free(cut->encoder);
    free(cut->new_ids);
    free(cut->events);
    free(cut);
}
