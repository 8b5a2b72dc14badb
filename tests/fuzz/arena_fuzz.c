/* Reads an arena as a crashed or hostile program might leave it. The input is a list of words to
 * write into the header, the slots, the chunk headers and the records. The rest is valid. Every
 * record must be accounted for. */
#include "agent/drain/chunk_reader.h"
#include "agent/drain/record_stages.h"
#include "agent/drain/stored_offers.h"
#include "agent/host/clock.h"
#include "proto/base/cursor.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bits of the input's first byte. */
enum { RESUMES = 1, CUTS = 2, COUNTS = 4 };

enum { THREADS = 2, CHUNKS = 2, STACK_LOW = 0x80000, STACK_HIGH = 0x100000, CALLS = 40 };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static uint64_t chunk_at(uint32_t thread, uint32_t chunk)
{
    return sj_arena_chunk_offset(THREADS, CHUNKS, thread, chunk);
}

/* In the second thread, every third place holds short records: two calls without a time. */
static sj_record place_at(uint32_t thread, uint32_t i)
{
    if (thread == 1 && i % 3 == 2) {
        sj_record place;
        for (uint32_t part = 0; part < SJ_SHORTS; part++) {
            const uint64_t stack = (STACK_HIGH - 128) / SJ_STACK_ALIGNMENT & 0xfff;
            const uint32_t word = SJ_SHORT_FILLER | (part % 2) << SJ_SHORT_EXIT_BIT |
                                  (uint32_t)stack << SJ_SHORT_STACK_BIT | (2 + part / 2);
            memcpy(place.bytes + (size_t)part * SJ_SHORT_BYTES, &word, sizeof(word));
        }
        return place;
    }
    const uint32_t number = thread == 1 ? i - i / 3 : i;
    const sj_record_kind kind = number % 2 == 0 ? SJ_RECORD_ENTER : SJ_RECORD_LEAVE;
    return trace_record(kind, 1 + number / 2 % 5, STACK_HIGH - 64, 1001 + i);
}

/* Each thread has a closed chunk and an open one. */
static void fill_thread(int file, uint32_t thread)
{
    const sj_thread_slot slot = {.state = SJ_THREAD_LIVE,
                                 .tid = thread + 1,
                                 .start_ticks = 1000,
                                 .stack_low = STACK_LOW,
                                 .stack_high = STACK_HIGH,
                                 .chunk_sequence = CHUNKS,
                                 .name = "fuzz"};
    must(pwrite(file, &slot, sizeof(slot),
                SJ_ARENA_HEADER_BYTES + (off_t)(thread * sizeof(slot))) == sizeof(slot));
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        const sj_chunk_header header = {.sequence = chunk + 1,
                                        .closed_records = chunk == 0 ? 2 * CALLS : UINT32_MAX,
                                        .thread_slot = thread,
                                        .opened_ticks = 1000};
        const off_t at = (off_t)chunk_at(thread, chunk);
        must(pwrite(file, &header, sizeof(header), at) == sizeof(header));
        for (uint32_t i = 0; i < 2 * CALLS; i++) {
            const sj_record record = place_at(thread, i);
            must(pwrite(file, &record, sizeof(record),
                        at + SJ_CHUNK_HEADER_BYTES + (off_t)(i * sizeof(record))) ==
                 sizeof(record));
        }
    }
}

/* Writes the words of the input. Before each word, one byte selects a region and two bytes the
 * offset in it. */
static void spoil(int file, sj_reader *input)
{
    while (!input->bad && sj_reader_left(input) > 0) {
        const uint8_t where = sj_read_u8(input);
        const uint64_t place = sj_read_u16(input);
        const uint64_t word = sj_read_u64(input);
        const uint32_t thread = where >> 4 & 1;
        const uint64_t chunk = chunk_at(thread, where >> 5 & 1);
        const uint64_t regions[] = {place % sizeof(sj_arena_header),
                                    SJ_ARENA_HEADER_BYTES + thread * sizeof(sj_thread_slot) +
                                        place % sizeof(sj_thread_slot),
                                    chunk + place % SJ_CHUNK_HEADER_BYTES,
                                    chunk + SJ_CHUNK_HEADER_BYTES + place};
        must(input->bad || pwrite(file, &word, sizeof(word), (off_t)regions[where & 3]) > 0);
    }
}

static void read_thread(const sj_arena_view *view, uint32_t slot_number, sj_block_encoder *encoder,
                        uint8_t how)
{
    static sj_record buffer[SJ_CHUNK_RECORDS];
    sj_thread_slot *slot = sj_arena_view_slot(view, slot_number);
    block_store store = {0};
    const sj_assembler_sink sink = block_store_sink(&store);
    sj_assembler_options options = {.start_ticks = slot->start_ticks,
                                    .has_untimed_exits = (how & COUNTS) != 0,
                                    .encoder = encoder};
    sj_assembler *assembler;
    sj_chunk_reader reader;
    sj_record_stages stages;
    sj_read_progress progress;
    sj_record_batch batch;
    const sj_staged_thread thread = {
        .slot = slot, .view = view, .name = "fuzz", .start_ticks = slot->start_ticks};
    sj_arena_view_stack(slot, &options.stack_low, &options.stack_high);
    must(sj_assembler_new(&options, &sink, &assembler) == SJ_OK);
    sj_read_progress_init(&progress, slot);
    sj_record_stages_init(&stages, &thread, assembler, &progress);
    sj_call_timing *timing = (how & COUNTS) != 0 ? sj_call_timing_new(view, 1.0, 20) : NULL;
    must(timing == NULL || sj_record_stages_count(&stages, timing) == SJ_OK);
    if ((how & RESUMES) != 0) {
        sj_stored_offers_settle_slot(slot, &(sj_stored_offers){.blocks = 1});
        sj_read_progress_resume(&progress);
    }
    sj_chunk_reader_init(&reader, view, slot_number, &progress, buffer);
    for (sj_read_mode mode = SJ_READ_CLOSED; mode <= SJ_READ_LAST; mode++) {
        sj_chunk_reader_start(&reader, mode, 1);
        while (sj_chunk_reader_next(&reader, &batch)) {
            must(sj_record_stages_feed(&stages, &batch) == SJ_OK);
        }
    }
    must(sj_record_stages_end(&stages, sj_clock_ticks()) == SJ_OK);
    sj_read_progress_save(&progress);
    must(sj_assembler_end(assembler, UINT64_MAX / 2, false, SJ_BLOCK_RECOVERED) == SJ_OK);
    sj_assembler_counters counters;
    sj_assembler_get_counters(assembler, &counters);
    const char *wrong = assembler_check(&counters, &store);
    if (wrong != NULL) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    uint64_t calls, events;
    sj_arena_view_discarded(view, slot_number, &calls, &events);
    must(calls <= events);
    sj_arena_view_recycle(view, slot_number);
    sj_record_stages_deinit(&stages);
    sj_call_timing_free(timing);
    sj_assembler_free(assembler);
    block_store_free(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sj_block_encoder *encoder;
    char path[64];
    sj_arena_view view;
    const sj_arena_header header = {.magic = SJ_ARENA_MAGIC,
                                    .version = SJ_ARENA_VERSION,
                                    .chunks_per_thread = CHUNKS,
                                    .max_threads = THREADS,
                                    .state = SJ_ARENA_RECORDING};
    sj_reader input = sj_reader_of(data, size);
    const uint8_t mode = sj_read_u8(&input);
    must(encoder != NULL || sj_block_encoder_new(&encoder) == SJ_OK);
    snprintf(path, sizeof(path), "/dev/shm/arena_fuzz.%d", (int)getpid());
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(file >= 0 && ftruncate(file, (off_t)sj_arena_bytes(THREADS, CHUNKS)) == 0 &&
         pwrite(file, &header, sizeof(header), 0) == sizeof(header));
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        fill_thread(file, thread);
    }
    spoil(file, &input);
    must((mode & CUTS) == 0 || ftruncate(file, (off_t)(mode << 12)) == 0);
    if (sj_arena_view_open(path, &view) == SJ_OK) {
        for (uint32_t i = 0; i < view.max_threads; i++) {
            read_thread(&view, i, encoder, mode);
        }
        sj_arena_view_close(&view);
    }
    close(file);
    unlink(path);
    return 0;
}
