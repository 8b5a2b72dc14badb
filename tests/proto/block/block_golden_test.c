/* Golden bytes of versions 1 and 2. Blocks that earlier builds wrote stay readable. Blocks whose
 * columns are too small for zstd are written with the same bytes again. Compressed columns may
 * differ between versions of zstd, but all decoders read them.
 *
 *   proto.block_golden --write FOLDER   writes the files of the current version */
#include "tests/proto/block/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct golden_block {
    const char *name;
    stream_shape shape;
    bool same_bytes; /* no column is compressed */
} golden_block;

#define SMALL                                                                                      \
    {                                                                                              \
        .seed = 2, .events = 24, .open_depth = 1, .functions = 5, .repetition = 30, .step = 26,    \
        .longest_gap = 2, .endings = 2, .gaps = 1                                                  \
    }

static const golden_block blocks[] = {
    {"v1_empty", {.seed = 1, .functions = 1, .step = 26}, true},
    {"v1_small", SMALL, false}, /* blocks with open endings are now version 2 */
    {"v2_small", SMALL, true},
    {"v1_coarse_clock",
     {.seed = 3,
      .events = 3000,
      .open_depth = 12,
      .functions = 40,
      .repetition = 20,
      .step = 26,
      .longest_gap = 3,
      .endings = 20,
      .gaps = 3},
     false},
    {"v1_fine_clock",
     {.seed = 4,
      .events = 3000,
      .open_depth = 3,
      .functions = 300,
      .repetition = 10,
      .step = 1,
      .longest_gap = 70000,
      .endings = 3,
      .gaps = 1},
     false},
    {"v1_values",
     {.seed = 5,
      .events = 30,
      .open_depth = 2,
      .functions = 4,
      .repetition = 30,
      .step = 26,
      .longest_gap = 2,
      .gaps = 1,
      .values = 40},
     false},
    {"v1_value_columns",
     {.seed = 7,
      .events = 30,
      .open_depth = 2,
      .functions = 4,
      .repetition = 30,
      .step = 26,
      .longest_gap = 2,
      .gaps = 1,
      .values = 70},
     false},
    {"v1_untimed",
     {.seed = 8,
      .events = 40,
      .open_depth = 5,
      .functions = 6,
      .repetition = 30,
      .step = 26,
      .longest_gap = 2,
      .tail_calls = 20,
      .untimed = 70},
     false},
    {"v1_tail_calls",
     {.seed = 6,
      .events = 40,
      .open_depth = 4,
      .functions = 6,
      .repetition = 30,
      .step = 26,
      .longest_gap = 2,
      .tail_calls = 40},
     false},
};
enum { BLOCKS = sizeof(blocks) / sizeof(blocks[0]), MAX_GOLDEN_BYTES = 64 * 1024 };

static size_t encode(const sj_block_input *input, uint8_t *bytes)
{
    sj_block_encoder *encoder = NULL;
    size_t size = 0;
    if (sj_block_encoder_new(&encoder) != SJ_OK ||
        sj_block_encode(encoder, input, bytes, MAX_GOLDEN_BYTES, &size) != SJ_OK) {
        size = 0;
    }
    sj_block_encoder_free(encoder);
    return size;
}

static FILE *open_golden(const char *folder, const char *name, const char *mode)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s.bin", folder, name);
    return fopen(path, mode);
}

static size_t read_golden(const char *name, uint8_t *bytes)
{
    FILE *file = open_golden(SJ_GOLDEN_FOLDER, name, "rb");
    if (file == NULL) {
        return 0;
    }
    const size_t size = fread(bytes, 1, MAX_GOLDEN_BYTES, file);
    fclose(file);
    return size;
}

static void golden_blocks_are_still_read(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(MAX_GOLDEN_BYTES);
    for (size_t i = 0; i < BLOCKS; i++) {
        sj_block_decoder *decoder;
        sj_block_input input;
        sj_block block;
        const size_t size = read_golden(blocks[i].name, bytes);
        stream_make(&blocks[i].shape, &input);
        assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
        const unsigned want = SJ_WANT_ALL | SJ_WANT_TAIL_CALLS;
        assert_int_equal(sj_block_decode(decoder, (sj_slice){bytes, size}, want, &block), SJ_OK);
        stream_check(&input, &block, want);
        sj_block_decoder_free(decoder);
        stream_free(&input);
    }
    free(bytes);
}

/* Earlier builds wrote tail calls to a column of their own. The calls are read without it. */
static void a_retired_column_is_skipped(void **state)
{
    (void)state;
    enum { TAIL_CALLS = BLOCKS - 1 };
    uint8_t *bytes = malloc(MAX_GOLDEN_BYTES);
    sj_block_decoder *decoder;
    sj_block_input input;
    sj_block block;
    const size_t size = read_golden("v1_tail_column", bytes);
    stream_make(&blocks[TAIL_CALLS].shape, &input);
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    assert_int_equal(sj_block_decode(decoder, (sj_slice){bytes, size}, SJ_WANT_ALL, &block), SJ_OK);
    assert_int_equal(block.header.event_count, input.header.event_count);
    for (size_t i = 0; i < block.header.event_count; i++) {
        const uint32_t symbol = block.symbols16[i];
        assert_int_equal(symbol == 0 ? 0 : block.functions[symbol - 1], input.events[i].function);
        assert_true(block.ticks[i] == input.events[i].ticks);
    }
    assert_null(block.tails);
    sj_block_decoder_free(decoder);
    stream_free(&input);
    free(bytes);
}

static void blocks_are_still_written_the_same_way(void **state)
{
    (void)state;
    uint8_t *golden = malloc(MAX_GOLDEN_BYTES);
    uint8_t *bytes = malloc(MAX_GOLDEN_BYTES);
    for (size_t i = 0; i < BLOCKS; i++) {
        sj_block_input input;
        stream_make(&blocks[i].shape, &input);
        const size_t size = encode(&input, bytes);
        assert_true(size > 0);
        if (blocks[i].same_bytes) {
            assert_int_equal(read_golden(blocks[i].name, golden), size);
            assert_memory_equal(golden, bytes, size);
        }
        stream_free(&input);
    }
    free(golden);
    free(bytes);
}

static int write_golden(const char *folder)
{
    uint8_t *bytes = malloc(MAX_GOLDEN_BYTES);
    int failed = bytes == NULL;
    for (size_t i = 0; i < BLOCKS && !failed; i++) {
        sj_block_input input;
        stream_make(&blocks[i].shape, &input);
        const size_t size = encode(&input, bytes);
        FILE *file = open_golden(folder, blocks[i].name, "wb");
        failed = size == 0 || file == NULL || fwrite(bytes, 1, size, file) != size;
        failed |= file != NULL && fclose(file) != 0;
        stream_free(&input);
    }
    free(bytes);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        return write_golden(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_blocks_are_still_read),
        cmocka_unit_test(a_retired_column_is_skipped),
        cmocka_unit_test(blocks_are_still_written_the_same_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
