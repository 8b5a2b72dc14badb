/* Feeds arbitrary records, losses, flushes and refusals. The assembler must not crash, and must
 * account for everything that it was fed. */
#include "agent/assembler/assembler.h"
#include "tests/support/assembler_check.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sj_block_encoder *encoder;

static void must(sj_status status)
{
    if (status != SJ_OK) {
        abort();
    }
}

static sj_record compact_record(sj_reader *reader, uint64_t *ticks)
{
    const uint8_t kind = sj_read_u8(reader);
    const uint8_t place = sj_read_u8(reader);
    const uint64_t base = kind & 0x20 ? UINT64_C(0x500000) : UINT64_C(0x100000);
    *ticks += kind & 0x1f;
    const uint64_t when = kind & 0x40 ? *ticks - (place & 15) : *ticks;
    const uint32_t what = place >> 6 == 3 ? SJ_RECORD_NOTE : (uint32_t)(place >> 7);
    const uint64_t stack = what == SJ_RECORD_NOTE ? place & 15 : base - (place & 15) * 512;
    return trace_record((sj_record_kind)what, (uint32_t)(place >> 2 & 7), stack, when);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (encoder == NULL) {
        must(sj_block_encoder_new(&encoder));
    }
    sj_reader reader = sj_reader_of(data, size);
    const uint8_t mode = sj_read_u8(&reader);
    block_store store = {.refuse_per_million = mode & 1 ? 200000 : 0};
    const sj_assembler_sink sink = block_store_sink(&store);
    const sj_assembler_options options = {.stack_low = mode & 2 ? 0 : 0x80000,
                                          .stack_high = mode & 2 ? 0 : 0x100000,
                                          .start_ticks = 1000,
                                          .has_untimed_exits = (mode & 4) != 0,
                                          .block_events = 1u + (mode >> 2),
                                          .encoder = encoder};
    sj_assembler *assembler;
    must(sj_assembler_new(&options, &sink, &assembler));
    uint64_t ticks = 1000;
    while (!reader.bad && sj_reader_left(&reader) > 0) {
        const uint8_t op = sj_read_u8(&reader);
        sj_record record;
        if (op == 0) {
            must(sj_assembler_flush(assembler, ticks));
        } else if (op == 1) {
            must(sj_assembler_add_loss(assembler, SJ_GAP_TORN, sj_read_u8(&reader),
                                       sj_read_u8(&reader), ticks));
        } else if (op < 32 && sj_reader_left(&reader) >= SJ_RECORD_BYTES) {
            memcpy(record.bytes, sj_read_bytes(&reader, SJ_RECORD_BYTES), SJ_RECORD_BYTES);
            must(sj_assembler_feed(assembler, &record, 1, ticks));
        } else {
            record = compact_record(&reader, &ticks);
            must(sj_assembler_feed(assembler, &record, 1, ticks));
        }
    }
    must(sj_assembler_end(assembler, ticks, (mode & 4) != 0, 0));
    sj_assembler_counters counters;
    sj_assembler_get_counters(assembler, &counters);
    const char *wrong = assembler_check(&counters, &store);
    if (wrong != NULL) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    sj_assembler_free(assembler);
    block_store_free(&store);
    return 0;
}
