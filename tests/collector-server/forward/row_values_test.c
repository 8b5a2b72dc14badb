/* Tests the bytes of values at their limits, and of texts of any size. */
#include "collector-server/forward/row_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_bytes(const sj_byte_buffer *rows, const char *bytes, size_t size)
{
    assert_false(rows->failed);
    assert_int_equal(rows->size, size);
    assert_memory_equal(rows->bytes, bytes, size);
}

#define ASSERT_BYTES(rows, text) assert_bytes(rows, text, sizeof(text) - 1)

static sj_slice text_of(const char *text)
{
    return (sj_slice){.data = (const uint8_t *)text, .size = strlen(text)};
}

static void numbers_are_little_endian(void **state)
{
    (void)state;
    sj_byte_buffer rows = {0};
    sj_byte_buffer_put_number(&rows, 0x0102030405060708, 8);
    sj_byte_buffer_put_number(&rows, 0xffff0a0b, 2); /* only the lowest bytes */
    sj_byte_buffer_put_number(&rows, 1, 1);
    ASSERT_BYTES(&rows, "\x08\x07\x06\x05\x04\x03\x02\x01\x0b\x0a\x01");
    sj_byte_buffer_clear(&rows);
    assert_int_equal(rows.size, 0);
    sj_byte_buffer_deinit(&rows);
}

/* The fast form writes eight bytes, so it must have space for them, whatever space is left. */
static void numbers_fit_at_every_size(void **state)
{
    (void)state;
    for (size_t before = 0; before < 300; ++before) {
        sj_byte_buffer rows = {0};
        for (size_t i = 0; i < before; ++i) {
            sj_byte_buffer_put_number(&rows, i, 1);
        }
        sj_byte_buffer_put_number(&rows, UINT64_MAX - before, 8);
        assert_int_equal(rows.size, before + 8);
        for (size_t i = 0; i < before; ++i) {
            assert_int_equal(rows.bytes[i], i & 0xff);
        }
        uint64_t last = 0;
        memcpy(&last, rows.bytes + before, 8);
        assert_true(le64toh(last) == UINT64_MAX - before);
        sj_byte_buffer_deinit(&rows);
    }
}

static void lengths_are_varints(void **state)
{
    (void)state;
    sj_byte_buffer rows = {0};
    sj_byte_buffer_put_varint(&rows, 0);
    sj_byte_buffer_put_varint(&rows, 127);
    sj_byte_buffer_put_varint(&rows, 128);
    sj_byte_buffer_put_varint(&rows, UINT64_MAX);
    ASSERT_BYTES(&rows, "\x00\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    sj_byte_buffer_deinit(&rows);
}

static void texts_keep_every_byte(void **state)
{
    (void)state;
    sj_byte_buffer rows = {0};
    sj_row_put_text(&rows, (sj_slice){0});
    sj_row_put_text(&rows, (sj_slice){.data = (const uint8_t *)"a\0'\n", .size = 4});
    sj_row_put_fixed(&rows, text_of("xy"), 3);
    sj_row_put_fixed(&rows, text_of("long"), 2);
    sj_row_put_hex(&rows, text_of("\x0f\xa0"), 3);
    ASSERT_BYTES(&rows, "\0\4a\0'\nxy\0lo0fa000");
    sj_byte_buffer_deinit(&rows);
}

static void a_failed_buffer_stays_failed(void **state)
{
    (void)state;
    sj_byte_buffer rows = {0};
    sj_byte_buffer_put_number(&rows, 1, 8);
    rows.failed = true;
    sj_byte_buffer_put_number(&rows, 1, 8);
    sj_row_put_text(&rows, text_of("text"));
    assert_true(rows.failed);
    assert_int_equal(rows.size, 8);
    sj_byte_buffer_clear(&rows);
    assert_true(rows.failed);
    sj_byte_buffer_deinit(&rows);
    assert_false(rows.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian), cmocka_unit_test(numbers_fit_at_every_size),
        cmocka_unit_test(lengths_are_varints), cmocka_unit_test(texts_keep_every_byte),
        cmocka_unit_test(a_failed_buffer_stays_failed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
