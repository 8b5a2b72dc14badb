/* Frames are read as they were written. Other bytes are refused with the right status. */
#include "proto/wire/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/base/crc32c.h"

static size_t small_frame(uint8_t frame[64])
{
    const sj_slice header = {.data = (const uint8_t *)"head", .size = 4};
    const sj_slice payload = {.data = (const uint8_t *)"payload", .size = 7};
    size_t size = 0;
    assert_int_equal(sj_frame_write(SJ_FRAME_BLOCK, header, payload, frame, 64, &size), SJ_OK);
    assert_int_equal(size, SJ_FRAME_PREFIX_BYTES + 11);
    return size;
}

static void crc32c_gives_the_vectors_of_rfc_3720(void **state)
{
    (void)state;
    uint8_t zeros[32] = {0};
    uint8_t ones[32];
    uint8_t rising[32];
    uint8_t falling[32];
    memset(ones, 0xff, sizeof(ones));
    for (unsigned i = 0; i < 32; i++) {
        rising[i] = (uint8_t)i;
        falling[i] = (uint8_t)(31 - i);
    }
    uint32_t (*const paths[])(uint32_t, const void *, size_t) = {sj_crc32c, sj_crc32c_portable};
    for (size_t path = 0; path < 2; path++) {
        assert_int_equal(paths[path](0, zeros, 32), 0x8a9136aa);
        assert_int_equal(paths[path](0, ones, 32), 0x62a8ab43);
        assert_int_equal(paths[path](0, rising, 32), 0x46dd794e);
        assert_int_equal(paths[path](0, falling, 32), 0x113fdb5c);
        assert_int_equal(paths[path](0, "123456789", 9), 0xe3069283);
        assert_int_equal(paths[path](0, "", 0), 0);
    }
}

static void crc32c_may_be_continued_at_any_byte_on_both_paths(void **state)
{
    (void)state;
    uint8_t bytes[67];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 37 + 11);
    }
    const uint32_t whole = sj_crc32c(0, bytes, sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        const uint32_t fast = sj_crc32c(0, bytes, cut);
        assert_int_equal(fast, sj_crc32c_portable(0, bytes, cut));
        assert_int_equal(sj_crc32c(fast, bytes + cut, sizeof(bytes) - cut), whole);
    }
}

static void a_written_frame_is_read_back(void **state)
{
    (void)state;
    uint8_t bytes[64];
    const size_t size = small_frame(bytes);
    sj_frame_view frame;
    /* Bytes after the frame, as in a spool, do not matter. */
    assert_int_equal(sj_frame_read((sj_slice){bytes, sizeof(bytes)}, &frame), SJ_OK);
    assert_int_equal(frame.frame_bytes, size);
    assert_int_equal(frame.major, SJ_FRAME_MAJOR);
    assert_int_equal(frame.minor, SJ_FRAME_MINOR);
    assert_int_equal(frame.type, SJ_FRAME_BLOCK);
    assert_int_equal(frame.header.size, 4);
    assert_memory_equal(frame.header.data, "head", 4);
    assert_int_equal(frame.payload.size, 7);
    assert_memory_equal(frame.payload.data, "payload", 7);
}

static void an_empty_frame_is_read_back(void **state)
{
    (void)state;
    uint8_t bytes[SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    sj_frame_view frame;
    assert_int_equal(
        sj_frame_write(SJ_FRAME_PING, (sj_slice){0}, (sj_slice){0}, bytes, sizeof(bytes), &size),
        SJ_OK);
    assert_int_equal(sj_frame_read((sj_slice){bytes, size}, &frame), SJ_OK);
    assert_int_equal(frame.type, SJ_FRAME_PING);
    assert_int_equal(frame.payload.size, 0);
}

static void every_cut_asks_for_more_bytes(void **state)
{
    (void)state;
    uint8_t bytes[64];
    const size_t size = small_frame(bytes);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *exact = malloc(cut + 1); /* a sanitizer sees reads past the cut */
        sj_frame_view frame;
        memcpy(exact + 1, bytes, cut);
        assert_int_equal(sj_frame_read((sj_slice){exact + 1, cut}, &frame), SJ_EAGAIN);
        free(exact);
    }
}

static void every_changed_bit_is_noticed(void **state)
{
    (void)state;
    uint8_t bytes[64];
    const size_t size = small_frame(bytes);
    for (size_t bit = 0; bit < size * 8; bit++) {
        sj_frame_view frame;
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_int_not_equal(sj_frame_read((sj_slice){bytes, size}, &frame), SJ_OK);
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}

static void each_fault_of_a_frame_has_its_own_status(void **state)
{
    (void)state;
    uint8_t bytes[64];
    const size_t size = small_frame(bytes);
    const struct {
        size_t at;
        uint8_t value;
        sj_status status;
    } faults[] = {
        {0, 'X', SJ_ECORRUPT},                      /* magic */
        {4, SJ_FRAME_MAJOR + 1, SJ_EVERSION},       /* major */
        {5, SJ_FRAME_MINOR + 1, SJ_ECORRUPT},       /* the crc covers the minor, too */
        {11, 1, SJ_ELIMIT},                         /* header of 16 MB */
        {15, 1, SJ_ELIMIT},                         /* payload of 16 MB */
        {SJ_FRAME_PREFIX_BYTES + 1, 0, SJ_ECORRUPT} /* header byte */
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sj_frame_view frame;
        const uint8_t good = bytes[faults[i].at];
        bytes[faults[i].at] = faults[i].value;
        assert_int_equal(sj_frame_read((sj_slice){bytes, size}, &frame), faults[i].status);
        bytes[faults[i].at] = good;
    }
}

/* The limit applies to prefix, header and payload together. */
static void a_frame_over_the_limit_is_refused_by_its_sizes(void **state)
{
    (void)state;
    enum { HEADER_AT = 8, PAYLOAD_AT = 12 };
    static const struct {
        uint32_t header, payload;
        sj_status status;
    } sizes[] = {
        {0, SJ_FRAME_MAX_BYTES - SJ_FRAME_PREFIX_BYTES, SJ_EAGAIN},
        {0, SJ_FRAME_MAX_BYTES - SJ_FRAME_PREFIX_BYTES + 1, SJ_ELIMIT},
        {7, SJ_FRAME_MAX_BYTES - SJ_FRAME_PREFIX_BYTES - 7, SJ_EAGAIN},
        {7, SJ_FRAME_MAX_BYTES - SJ_FRAME_PREFIX_BYTES - 6, SJ_ELIMIT},
        {SJ_FRAME_MAX_HEADER_BYTES, 0, SJ_EAGAIN},
        {SJ_FRAME_MAX_HEADER_BYTES + 1, 0, SJ_ELIMIT},
    };
    uint8_t bytes[64];
    const size_t size = small_frame(bytes);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        sj_frame_view frame;
        memcpy(bytes + HEADER_AT, &sizes[i].header, sizeof(uint32_t));
        memcpy(bytes + PAYLOAD_AT, &sizes[i].payload, sizeof(uint32_t));
        assert_int_equal(sj_frame_read((sj_slice){bytes, size}, &frame), sizes[i].status);
    }
}

static void a_frame_over_a_limit_is_not_written(void **state)
{
    (void)state;
    uint8_t *bytes = calloc(1, SJ_FRAME_MAX_BYTES + 1);
    size_t size;
    const sj_slice empty = {.data = bytes, .size = 0};
    const size_t most = SJ_FRAME_MAX_BYTES - SJ_FRAME_PREFIX_BYTES;
    uint8_t *output = malloc(SJ_FRAME_MAX_BYTES + 1);
    assert_int_equal(
        sj_frame_write(1, empty, (sj_slice){bytes, most}, output, SJ_FRAME_MAX_BYTES, &size),
        SJ_OK);
    assert_int_equal(size, SJ_FRAME_MAX_BYTES);
    assert_int_equal(
        sj_frame_write(1, empty, (sj_slice){bytes, most + 1}, output, SJ_FRAME_MAX_BYTES, &size),
        SJ_ELIMIT);
    const sj_slice header = {bytes, 7};
    assert_int_equal(
        sj_frame_write(1, header, (sj_slice){bytes, most - 7}, output, SJ_FRAME_MAX_BYTES, &size),
        SJ_OK);
    assert_int_equal(sj_frame_write(1, header, (sj_slice){bytes, most - 6}, output,
                                    SJ_FRAME_MAX_BYTES + 1, &size),
                     SJ_ELIMIT);
    assert_int_equal(sj_frame_write(1, (sj_slice){bytes, SJ_FRAME_MAX_HEADER_BYTES + 1}, empty,
                                    output, SJ_FRAME_MAX_BYTES, &size),
                     SJ_ELIMIT);
    assert_int_equal(
        sj_frame_write(1, (sj_slice){bytes, 4}, empty, output, SJ_FRAME_PREFIX_BYTES + 3, &size),
        SJ_ELIMIT);
    free(output);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_gives_the_vectors_of_rfc_3720),
        cmocka_unit_test(crc32c_may_be_continued_at_any_byte_on_both_paths),
        cmocka_unit_test(a_written_frame_is_read_back),
        cmocka_unit_test(an_empty_frame_is_read_back),
        cmocka_unit_test(every_cut_asks_for_more_bytes),
        cmocka_unit_test(every_changed_bit_is_noticed),
        cmocka_unit_test(each_fault_of_a_frame_has_its_own_status),
        cmocka_unit_test(a_frame_over_the_limit_is_refused_by_its_sizes),
        cmocka_unit_test(a_frame_over_a_limit_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
