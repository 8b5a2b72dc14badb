/* Encodes rows as a block of columns: names, types and values of every kind, byte by byte. */
#include "collector-server/forward/clickhouse_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const sj_forward_table table = {
    .name = "t",
    .owner = "session",
    .order = "n",
    .select = "SELECT 1, -2, NULL, 7, 'ab', x'0aff', x'0102', NULL UNION ALL "
              "SELECT 255, 3, 258, NULL, NULL, x'', NULL, NULL",
    .columns = {{"s", SJ_FORWARD_SMALL},
                {"n", SJ_FORWARD_NUMBER},
                {"m", SJ_FORWARD_MAYBE},
                {"c", SJ_FORWARD_COUNT},
                {"t", SJ_FORWARD_TEXT},
                {"h", SJ_FORWARD_HEX},
                {"u", SJ_FORWARD_UUID},
                {"b", SJ_FORWARD_HISTOGRAM}}};

#define ZEROS16 "0000000000000000"
#define OWNER "000102030405060708090a0b0c0d0e0f"
static const char expected[] = "\x0c\x02"
                               "\7session\x0f"
                               "FixedString(32)" OWNER OWNER "\7version\6UInt64"
                               "\5\0\0\0\0\0\0\0"
                               "\5\0\0\0\0\0\0\0"
                               "\3day\4Date"
                               "\2\1"
                               "\2\1"
                               "\1s\5UInt8"
                               "\1\xff"
                               "\1n\5Int64"
                               "\xfe\xff\xff\xff\xff\xff\xff\xff"
                               "\3\0\0\0\0\0\0\0"
                               "\1m\x0fNullable(Int64)"
                               "\1\0"
                               "\0\0\0\0\0\0\0\0"
                               "\2\1\0\0\0\0\0\0"
                               "\1c\6UInt64"
                               "\7\0\0\0\0\0\0\0"
                               "\0\0\0\0\0\0\0\0"
                               "\1t\6String"
                               "\2ab"
                               "\0"
                               "\1h\6String"
                               "\4"
                               "0aff"
                               "\0"
                               "\1u\x0f"
                               "FixedString(32)"
                               "0102" ZEROS16 "000000000000" ZEROS16 ZEROS16 "\4bins\x0d"
                               "Array(UInt16)"
                               "\0\0\0\0\0\0\0\0"
                               "\0\0\0\0\0\0\0\0"
                               "\6counts\x0d"
                               "Array(UInt64)"
                               "\0\0\0\0\0\0\0\0"
                               "\0\0\0\0\0\0\0\0";

static void a_block_encodes_every_kind_of_value(void **state)
{
    sqlite3 *database = NULL;
    sj_native_rows rows = {0};
    sj_clickhouse_block block;
    sj_forward_place place = {.version = 5, .day = 0x0102};
    uint8_t owner[16];
    (void)state;
    for (size_t i = 0; i < sizeof(owner); i++) {
        owner[i] = (uint8_t)i;
    }
    sj_forward_place_own(&place, owner);
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    sqlite3_stmt *select = NULL;
    assert_int_equal(sj_forward_prepare(database, &table, &select, NULL), SJ_OK);
    assert_int_equal(sj_forward_collect(select, &table, 0, &place, &rows, NULL), SJ_OK);
    sqlite3_finalize(select);
    for (int again = 0; again < 2; again++) { /* a block that was not sent may be made again */
        assert_int_equal(sj_clickhouse_block_make(&block, &table, &rows), SJ_OK);
        size_t at = 0;
        for (size_t i = 0; i < block.count; i++) {
            assert_true(at + block.pieces[i].size <= sizeof(expected) - 1);
            assert_memory_equal(block.pieces[i].data, expected + at, block.pieces[i].size);
            at += block.pieces[i].size;
        }
        assert_int_equal(at, sizeof(expected) - 1);
        sj_clickhouse_block_deinit(&block);
    }
    rows.columns[4].data.failed = true;
    assert_int_equal(sj_clickhouse_block_make(&block, &table, &rows), SJ_ENOMEM);
    sj_clickhouse_block_deinit(&block);
    sj_native_rows_clear(&rows);
    assert_int_equal(sj_native_rows_bytes(&rows), 0);
    sj_native_rows_deinit(&rows);
    sqlite3_close(database);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_block_encodes_every_kind_of_value)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
