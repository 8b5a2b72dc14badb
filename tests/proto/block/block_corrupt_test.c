/* Damaged blocks are refused. If their CRC fits, they may also be decoded, but only to values
 * within bounds. They never crash the decoder, which the sanitizer presets check. */
#include "proto/base/crc32c.h"
#include "tests/proto/block/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct damaged_block {
    sj_block_decoder *decoder;
    uint8_t bytes[8192];
    size_t size;
} damaged_block;

static void make_sample(damaged_block *sample, uint64_t seed, size_t events)
{
    const stream_shape shape = {.seed = seed,
                                .events = events,
                                .open_depth = 5,
                                .functions = 20,
                                .repetition = 40,
                                .step = 26,
                                .longest_gap = 500,
                                .endings = 5,
                                .gaps = 2,
                                .values = 30,
                                .tail_calls = 30};
    sj_block_encoder *encoder;
    sj_block_input input;
    stream_make(&shape, &input);
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    uint8_t *bytes = malloc(sj_block_bound(&input));
    assert_int_equal(sj_block_encode(encoder, &input, bytes, sj_block_bound(&input), &sample->size),
                     SJ_OK);
    assert_true(sample->size <= sizeof(sample->bytes));
    memcpy(sample->bytes, bytes, sample->size);
    free(bytes);
    sj_block_encoder_free(encoder);
    stream_free(&input);
}

static int set_up(void **state)
{
    damaged_block *made = calloc(1, sizeof(*made));
    *state = made;
    return made == NULL || sj_block_decoder_new(&made->decoder) != SJ_OK;
}

static int tear_down(void **state)
{
    sj_block_decoder_free(((damaged_block *)*state)->decoder);
    free(*state);
    return 0;
}

static void fix_crc(damaged_block *sample)
{
    sj_writer crc = sj_writer_of(sample->bytes + sample->size - 4, 4);
    sj_write_u32(&crc, sj_crc32c(0, sample->bytes, sample->size - 4));
}

static sj_status decode(damaged_block *sample, sj_block *block)
{
    uint8_t *exact = malloc(sample->size);
    memcpy(exact, sample->bytes, sample->size);
    const sj_status status =
        sj_block_decode(sample->decoder, (sj_slice){exact, sample->size}, SJ_WANT_ALL, block);
    free(exact);
    return status;
}

static void every_changed_bit_is_noticed(void **state)
{
    damaged_block *sample = *state;
    make_sample(sample, 1, 150);
    sj_block block;
    assert_int_equal(decode(sample, &block), SJ_OK);
    for (size_t bit = 0; bit < sample->size * 8; bit++) {
        sample->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_int_not_equal(decode(sample, &block), SJ_OK);
        sample->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}

static void every_cut_is_refused(void **state)
{
    damaged_block *sample = *state;
    make_sample(sample, 2, 150);
    const size_t size = sample->size;
    sj_block block;
    for (sample->size = 1; sample->size < size; sample->size++) {
        assert_int_equal(decode(sample, &block), SJ_ECORRUPT);
    }
}

/* Checks that a block that the decoder accepted is within bounds and in order. */
static void check_accepted(const sj_block *block)
{
    const size_t count = block->header.event_count;
    uint64_t depth = block->header.open_depth;
    for (size_t i = 0; i < count; i++) {
        const uint32_t symbol =
            block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i];
        assert_true(symbol <= block->function_count);
        assert_true(symbol != 0 || depth > 0);
        depth = symbol != 0 ? depth + 1 : depth - 1;
        assert_true(i == 0 || block->ticks[i] >= block->ticks[i - 1]);
    }
    if (count != 0) {
        assert_true(block->ticks[0] == block->header.first_ticks);
        assert_true(block->ticks[count - 1] == block->header.last_ticks);
    }
    assert_int_equal(depth, block->header.end_depth);
    for (size_t i = 0; i < block->ending_count; i++) {
        assert_true(block->endings[i].event < count);
    }
    for (size_t i = 0; i < block->gap_count; i++) {
        assert_true(block->gaps[i].before_event <= count);
        assert_true(block->gaps[i].end_ticks >= block->gaps[i].start_ticks);
    }
}

static void changed_bytes_with_a_valid_crc_do_no_harm(void **state)
{
    damaged_block *sample = *state;
    static const uint8_t flips[] = {0x01, 0x02, 0x10, 0x40, 0x80, 0xff};
    size_t accepted = 0;
    size_t refused = 0;
    for (uint64_t seed = 3; seed < 7; seed++) {
        make_sample(sample, seed, seed * 60);
        for (size_t at = 0; at + 4 < sample->size; at++) {
            for (size_t i = 0; i < sizeof(flips); i++) {
                sj_block block;
                sample->bytes[at] ^= flips[i];
                fix_crc(sample);
                const sj_status status = decode(sample, &block);
                if (status == SJ_OK && block.header.kind == SJ_BLOCK_CALLS) {
                    check_accepted(&block);
                    accepted++;
                } else {
                    assert_true(status == SJ_OK || status == SJ_ECORRUPT || status == SJ_EVERSION ||
                                status == SJ_ELIMIT);
                    refused++;
                }
                sample->bytes[at] ^= flips[i];
            }
        }
    }
    assert_true(accepted > 0 && refused > 0);
}

static void an_unknown_column_is_skipped(void **state)
{
    damaged_block *sample = *state;
    make_sample(sample, 4, 100);
    sj_block before;
    assert_int_equal(decode(sample, &before), SJ_OK);
    enum { COLUMNS_AT = SJ_BLOCK_HEADER_BYTES - 12 };
    const size_t directory_end = SJ_BLOCK_HEADER_BYTES + (size_t)before.header.column_count * 12;
    /* an unknown column with an unknown coding */
    const uint8_t entry[12] = {99, 0, 77, 0, 3, 0, 0, 0, 3, 0, 0, 0};
    memmove(sample->bytes + directory_end + 12, sample->bytes + directory_end,
            sample->size - directory_end);
    memcpy(sample->bytes + directory_end, entry, 12);
    sample->size += 12;
    memcpy(sample->bytes + sample->size - 4, "new", 3);
    sample->size += 3;
    sample->bytes[COLUMNS_AT]++;
    fix_crc(sample);
    sj_block block;
    assert_int_equal(decode(sample, &block), SJ_OK);
    check_accepted(&block);
}

static void a_block_of_another_version_has_its_own_status(void **state)
{
    damaged_block *sample = *state;
    make_sample(sample, 4, 100);
    sample->bytes[4]++;
    fix_crc(sample);
    sj_block block;
    assert_int_equal(decode(sample, &block), SJ_EVERSION);
}

static void a_column_that_claims_to_be_huge_is_refused(void **state)
{
    damaged_block *sample = *state;
    make_sample(sample, 4, 100);
    for (size_t column = 0; column < 6; column++) {
        uint8_t *raw_bytes = sample->bytes + SJ_BLOCK_HEADER_BYTES + column * 12 + 4;
        const uint8_t good = raw_bytes[3];
        raw_bytes[3] = 0x7f; /* 2 GB */
        fix_crc(sample);
        sj_block block;
        assert_int_equal(decode(sample, &block), SJ_ECORRUPT);
        raw_bytes[3] = good;
    }
}

int main(void)
{
#define CORRUPT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CORRUPT_TEST(every_changed_bit_is_noticed),
        CORRUPT_TEST(every_cut_is_refused),
        CORRUPT_TEST(changed_bytes_with_a_valid_crc_do_no_harm),
        CORRUPT_TEST(an_unknown_column_is_skipped),
        CORRUPT_TEST(a_block_of_another_version_has_its_own_status),
        CORRUPT_TEST(a_column_that_claims_to_be_huge_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
