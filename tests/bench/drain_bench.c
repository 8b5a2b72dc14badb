/* Measures the speed of the assembler on a recorded program: records in, encoded blocks out.
 *
 *   drain_bench DATABASE [MILLION RECORDS]
 *
 * The bench turns the blocks of a recording's longest stream back into records. A call that ended
 * without an exit gets no exit record. The bench feeds the records to an assembler, chunk by chunk.
 * It fails if the resulting blocks hold another number of calls. */
#include "agent/abi/arena.h"
#include "agent/assembler/assembler.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_DEPTH = 1 << 20, FRAME_BYTES = 64, ROUNDS = 5 };

#define STACK_HIGH UINT64_C(0x7ffc00000000)
#define STACK_LOW (STACK_HIGH - UINT64_C(0x10000000))

typedef struct record_list {
    sj_record *records;
    size_t count;
    size_t capacity;
    uint64_t calls;
    uint64_t last_ticks;
    uint32_t open[MAX_DEPTH]; /* functions of the open calls */
} record_list;

static void fail(const char *what)
{
    fprintf(stderr, "drain_bench: %s\n", what);
    exit(1);
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void add_record(record_list *list, uint64_t ticks, uint32_t depth, uint32_t tag)
{
    const uint64_t stack = STACK_HIGH - FRAME_BYTES * ((uint64_t)depth + 1);
    if (list->count < list->capacity) {
        uint8_t *bytes = list->records[list->count++].bytes;
        memcpy(bytes, &ticks, 6);
        memcpy(bytes + 6, &stack, 6);
        memcpy(bytes + 12, &tag, 4);
        list->last_ticks = ticks;
    }
}

/* Adds the records of one block. The calls that are open at its start have their entries in earlier
 * blocks. */
static void add_block(record_list *list, const sj_block *block)
{
    uint32_t depth = block->header.open_depth;
    size_t ending = 0;
    for (uint32_t i = 0; i < block->frame_count && depth <= MAX_DEPTH; i++) {
        list->open[block->header.stack_frames + i] = block->frames[i].function;
    }
    for (uint32_t event = 0; event < block->header.event_count; event++) {
        const uint32_t symbol =
            block->symbols16 != NULL ? block->symbols16[event] : block->symbols32[event];
        if (symbol != 0) {
            if (depth == MAX_DEPTH) {
                fail("the recording is too deep");
            }
            list->open[depth] = block->functions[symbol - 1];
            list->calls += list->count < list->capacity;
            add_record(list, block->ticks[event], depth, list->open[depth]);
            depth++;
        } else if (ending < block->ending_count && block->endings[ending].event == event) {
            ending++;
            depth--;
        } else {
            depth--;
            const uint32_t leave = (uint32_t)SJ_RECORD_LEAVE << SJ_RECORD_FUNCTION_BITS;
            add_record(list, block->ticks[event], depth, leave | list->open[depth]);
        }
    }
}

static void load(record_list *list, const char *path)
{
    sqlite3 *database;
    sqlite3_stmt *blocks;
    sj_block_decoder *decoder;
    sj_block block;
    if (sj_block_decoder_new(&decoder) != SJ_OK ||
        sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(database,
                           "SELECT data FROM blocks WHERE kind = 1 AND stream_id = (SELECT "
                           "stream_id FROM streams ORDER BY calls DESC LIMIT 1) "
                           "ORDER BY first_event",
                           -1, &blocks, NULL) != SQLITE_OK) {
        fail("the database cannot be read");
    }
    while (list->count < list->capacity && sqlite3_step(blocks) == SQLITE_ROW) {
        const sj_slice bytes = {sqlite3_column_blob(blocks, 0),
                                (size_t)sqlite3_column_bytes(blocks, 0)};
        if (sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block) != SJ_OK) {
            fail("a block cannot be decoded");
        }
        add_block(list, &block);
    }
    sqlite3_finalize(blocks);
    sqlite3_close(database);
    sj_block_decoder_free(decoder);
}

typedef struct block_sums {
    uint64_t calls;
    uint64_t bytes;
} block_sums;

static sj_status handle_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    block_sums *sums = context;
    sums->calls += header->call_count;
    sums->bytes += bytes.size;
    return SJ_OK;
}

static uint32_t open_stream(void *context, uint64_t stack, bool own, uint64_t ticks)
{
    (void)context;
    (void)stack;
    (void)own;
    (void)ticks;
    return 1;
}

static void ignore_mark(void *context, uint32_t mark, bool end, uint64_t ticks)
{
    (void)context;
    (void)mark;
    (void)end;
    (void)ticks;
}

/* Feeds all records. Returns the CPU time in seconds. */
static double drain(const record_list *list, sj_block_encoder *encoder, block_sums *sums)
{
    const sj_assembler_sink sink = {
        .context = sums, .open_stream = open_stream, .block = handle_block, .mark = ignore_mark};
    const sj_assembler_options options = {
        .stack_low = STACK_LOW, .stack_high = STACK_HIGH, .encoder = encoder};
    const uint64_t now = list->last_ticks + (1 << 20);
    sj_assembler *assembler;
    if (sj_assembler_new(&options, &sink, &assembler) != SJ_OK) {
        fail("out of memory");
    }
    const double begin = cpu_s();
    for (size_t at = 0; at < list->count; at += SJ_CHUNK_RECORDS) {
        const size_t left = list->count - at;
        const size_t count = left < SJ_CHUNK_RECORDS ? left : SJ_CHUNK_RECORDS;
        if (sj_assembler_feed(assembler, list->records + at, count, now) != SJ_OK) {
            fail("a chunk was refused");
        }
    }
    if (sj_assembler_end(assembler, now, false, 0) != SJ_OK) {
        fail("the end was refused");
    }
    const double took = cpu_s() - begin;
    sj_assembler_free(assembler);
    return took;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fail("usage: drain_bench DATABASE [MILLION RECORDS]");
    }
    record_list *list = calloc(1, sizeof(*list));
    sj_block_encoder *encoder;
    if (list == NULL || sj_block_encoder_new(&encoder) != SJ_OK) {
        fail("out of memory");
    }
    list->capacity = (argc > 2 ? strtoul(argv[2], NULL, 10) : 20) * 1000000;
    list->records = malloc(list->capacity * sizeof(*list->records));
    if (list->records == NULL) {
        fail("out of memory");
    }
    load(list, argv[1]);
    double best = 1e9;
    block_sums sums = {0};
    for (int round = 0; round < ROUNDS; round++) {
        sums = (block_sums){0};
        const double took = drain(list, encoder, &sums);
        best = took < best ? took : best;
    }
    if (sums.calls != list->calls || sums.calls == 0) {
        fail("the blocks do not hold what was fed");
    }
    printf("%.1f M records, %.1f M calls: %.1f M records/s, %.3f bytes a call in blocks\n",
           (double)list->count / 1e6, (double)sums.calls / 1e6, (double)list->count / best / 1e6,
           (double)sums.bytes / (double)sums.calls);
    sj_block_encoder_free(encoder);
    free(list->records);
    free(list);
    return 0;
}
