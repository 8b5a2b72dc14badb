/* Function tables are read as they were written. A damaged table is refused as a whole. */
#include "proto/wire/function_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const sj_function_entry entries[] = {
    {.offset = 0x1000, .size_bytes = 5, .technique = 1, .skip = 0, .source = 2, .name = "main"},
    {.offset = 0x80,
     .size_bytes = UINT32_MAX,
     .technique = 0,
     .skip = 7,
     .source = 1,
     .name = "",
     .fingerprint = UINT64_C(0xfedcba9876543210)},
    {.offset = 0x90, .size_bytes = 4, .technique = 1, .name = ""}, /* too short for a fingerprint */
    {.offset = UINT64_MAX,
     .size_bytes = 0,
     .technique = 255,
     .skip = 255,
     .source = 255,
     .name = "_ZN3foo3barEv"},
};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

static size_t write_table(uint8_t bytes[256])
{
    size_t size = 0;
    assert_int_equal(sj_function_table_write(entries, ENTRIES, bytes, 256, &size), SJ_OK);
    assert_true(size <= sj_function_table_bound(entries, ENTRIES));
    return size;
}

static void a_written_table_is_read_back(void **state)
{
    (void)state;
    uint8_t bytes[256];
    const size_t size = write_table(bytes);
    sj_function_table table;
    sj_function_entry entry;
    assert_int_equal(sj_function_table_open((sj_slice){bytes, size}, &table), SJ_OK);
    assert_int_equal(table.count, ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_true(sj_function_table_next(&table, &entry));
        assert_true(entry.offset == entries[i].offset);
        assert_int_equal(entry.size_bytes, entries[i].size_bytes);
        assert_int_equal(entry.technique, entries[i].technique);
        assert_int_equal(entry.skip, entries[i].skip);
        assert_int_equal(entry.source, entries[i].source);
        assert_string_equal(entry.name, entries[i].name);
        assert_true(entry.fingerprint == entries[i].fingerprint);
    }
    assert_false(sj_function_table_next(&table, &entry));
}

static void a_table_without_fingerprints_has_the_bytes_of_older_versions(void **state)
{
    (void)state;
    uint8_t bytes[256];
    size_t size;
    sj_function_table table;
    sj_function_entry entry;
    const sj_function_entry plain = {.offset = 0x80, .size_bytes = 9, .technique = 3, .name = ""};
    const uint8_t golden[] = {1, 1, 0x80, 2, 9, 3, 0, 0, 0};
    assert_int_equal(sj_function_table_write(&plain, 1, bytes, sizeof(bytes), &size), SJ_OK);
    assert_int_equal(size, sizeof(golden));
    assert_memory_equal(bytes, golden, sizeof(golden));
    assert_int_equal(sj_function_table_open((sj_slice){golden, sizeof(golden)}, &table), SJ_OK);
    assert_true(sj_function_table_next(&table, &entry));
    assert_true(entry.fingerprint == 0 && entry.offset == plain.offset);
}

static void an_empty_table_has_no_entries(void **state)
{
    (void)state;
    uint8_t bytes[16];
    size_t size;
    sj_function_table table;
    sj_function_entry entry;
    assert_int_equal(sj_function_table_write(NULL, 0, bytes, sizeof(bytes), &size), SJ_OK);
    assert_int_equal(sj_function_table_open((sj_slice){bytes, size}, &table), SJ_OK);
    assert_false(sj_function_table_next(&table, &entry));
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[256];
    const size_t size = write_table(bytes);
    for (size_t cut = 0; cut < size; cut++) {
        sj_function_table table;
        sj_function_entry entry;
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact + 1, bytes, cut);
        assert_int_equal(sj_function_table_open((sj_slice){exact + 1, cut}, &table), SJ_ECORRUPT);
        assert_false(sj_function_table_next(&table, &entry));
        free(exact);
    }
    bytes[size] = 0;
    sj_function_table table;
    assert_int_equal(sj_function_table_open((sj_slice){bytes, size + 1}, &table), SJ_ECORRUPT);
}

static void any_changed_byte_is_refused_or_read_to_the_end(void **state)
{
    (void)state;
    uint8_t bytes[256];
    const size_t size = write_table(bytes);
    for (size_t at = 0; at < size; at++) {
        for (unsigned value = 0; value < 256; value += 5) {
            sj_function_table table;
            sj_function_entry entry;
            const uint8_t good = bytes[at];
            uint64_t count = 0;
            bytes[at] = (uint8_t)value;
            if (sj_function_table_open((sj_slice){bytes, size}, &table) == SJ_OK) {
                while (sj_function_table_next(&table, &entry)) {
                    count += strlen(entry.name) < size;
                }
                assert_int_equal(count, table.count);
            }
            bytes[at] = good;
        }
    }
}

static void a_table_of_another_version_has_its_own_status(void **state)
{
    (void)state;
    const uint8_t bytes[2] = {SJ_FUNCTION_TABLE_VERSION + 1, 0};
    sj_function_table table;
    assert_int_equal(sj_function_table_open((sj_slice){bytes, 2}, &table), SJ_EVERSION);
}

static void a_count_beyond_the_bytes_is_refused_at_once(void **state)
{
    (void)state;
    const uint8_t bytes[11] = {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    sj_function_table table;
    assert_int_equal(sj_function_table_open((sj_slice){bytes, sizeof(bytes)}, &table), SJ_ECORRUPT);
}

static void a_table_that_does_not_fit_is_not_written(void **state)
{
    (void)state;
    uint8_t bytes[256];
    const size_t size = write_table(bytes);
    for (size_t space = 0; space < size; space++) {
        size_t unused;
        assert_int_equal(sj_function_table_write(entries, ENTRIES, bytes, space, &unused),
                         SJ_ELIMIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_table_is_read_back),
        cmocka_unit_test(a_table_without_fingerprints_has_the_bytes_of_older_versions),
        cmocka_unit_test(an_empty_table_has_no_entries),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(any_changed_byte_is_refused_or_read_to_the_end),
        cmocka_unit_test(a_table_of_another_version_has_its_own_status),
        cmocka_unit_test(a_count_beyond_the_bytes_is_refused_at_once),
        cmocka_unit_test(a_table_that_does_not_fit_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
