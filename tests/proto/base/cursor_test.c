/* Readers and writers never leave their range. After the first attempt to leave it, they stay
 * bad. */
#include "proto/base/cursor.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void numbers_written_are_read_back_at_any_alignment(void **state)
{
    (void)state;
    uint8_t bytes[64];
    for (size_t skew = 0; skew < 8; skew++) {
        sj_writer writer = sj_writer_of(bytes + skew, sizeof(bytes) - skew);
        sj_write_u8(&writer, 0xa1);
        sj_write_u16(&writer, 0xb2c3);
        sj_write_u32(&writer, 0xd4e5f607);
        sj_write_u64(&writer, UINT64_C(0x1122334455667788));
        assert_false(writer.bad);
        assert_int_equal(sj_writer_used(&writer), 15);
        assert_int_equal(bytes[skew + 1], 0xc3); /* little-endian */
        sj_reader reader = sj_reader_of(bytes + skew, 15);
        assert_int_equal(sj_read_u8(&reader), 0xa1);
        assert_int_equal(sj_read_u16(&reader), 0xb2c3);
        assert_int_equal(sj_read_u32(&reader), 0xd4e5f607);
        assert_true(sj_read_u64(&reader) == UINT64_C(0x1122334455667788));
        assert_false(reader.bad);
        assert_int_equal(sj_reader_left(&reader), 0);
    }
}

static void reading_past_the_end_gives_zero_and_stays_bad(void **state)
{
    (void)state;
    const uint8_t bytes[3] = {1, 2, 3};
    sj_reader reader = sj_reader_of(bytes, sizeof(bytes));
    assert_int_equal(sj_read_u32(&reader), 0);
    assert_true(reader.bad);
    assert_int_equal(sj_read_u8(&reader), 0); /* although a byte is there */
    assert_null(sj_read_bytes(&reader, 0));
    assert_true(reader.bad);
}

static void writing_past_the_end_changes_nothing_and_stays_bad(void **state)
{
    (void)state;
    uint8_t bytes[4] = {9, 9, 9, 9};
    sj_writer writer = sj_writer_of(bytes, 3);
    sj_write_u32(&writer, 0);
    assert_true(writer.bad);
    sj_write_u8(&writer, 0);
    assert_int_equal(sj_writer_used(&writer), 0);
    assert_int_equal(bytes[0], 9);
    assert_int_equal(bytes[3], 9);
}

static void varints_of_every_length_are_read_back(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int around = -1; around <= 1; around++) {
            const uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)around;
            uint8_t bytes[10];
            sj_writer writer = sj_writer_of(bytes, sizeof(bytes));
            sj_write_varint(&writer, value);
            sj_reader reader = sj_reader_of(bytes, sj_writer_used(&writer));
            assert_true(sj_read_varint(&reader) == value);
            writer = sj_writer_of(bytes, sizeof(bytes));
            sj_write_zigzag(&writer, (int64_t)value);
            assert_false(writer.bad);
            sj_reader signed_reader = sj_reader_of(bytes, sj_writer_used(&writer));
            assert_true(sj_read_zigzag(&signed_reader) == (int64_t)value);
            assert_false(reader.bad || signed_reader.bad);
        }
    }
}

static void a_varint_cut_short_is_bad(void **state)
{
    (void)state;
    const uint8_t bytes[2] = {0xff, 0xff}; /* a varint without its last byte is not a number */
    sj_reader reader = sj_reader_of(bytes, sizeof(bytes));
    assert_int_equal(sj_read_varint(&reader), 0);
    assert_true(reader.bad);
}

static void a_varint_beyond_64_bits_is_bad(void **state)
{
    (void)state;
    const uint8_t too_high[10] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    const uint8_t too_long[11] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0};
    sj_reader reader = sj_reader_of(too_high, sizeof(too_high));
    assert_int_equal(sj_read_varint(&reader), 0);
    assert_true(reader.bad);
    reader = sj_reader_of(too_long, sizeof(too_long));
    assert_int_equal(sj_read_varint(&reader), 0);
    assert_true(reader.bad);
}

static void an_empty_range_may_be_null(void **state)
{
    (void)state;
    sj_reader reader = sj_reader_of(NULL, 0);
    sj_writer writer = sj_writer_of(NULL, 0);
    assert_int_equal(sj_reader_left(&reader), 0);
    assert_null(sj_read_bytes(&reader, 0));
    sj_write_bytes(&writer, NULL, 0);
    assert_false(reader.bad || writer.bad);
    assert_int_equal(sj_read_u8(&reader), 0);
    sj_write_u8(&writer, 1);
    assert_true(reader.bad && writer.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_written_are_read_back_at_any_alignment),
        cmocka_unit_test(reading_past_the_end_gives_zero_and_stays_bad),
        cmocka_unit_test(writing_past_the_end_changes_nothing_and_stays_bad),
        cmocka_unit_test(varints_of_every_length_are_read_back),
        cmocka_unit_test(a_varint_cut_short_is_bad),
        cmocka_unit_test(an_empty_range_may_be_null),
        cmocka_unit_test(a_varint_beyond_64_bits_is_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
