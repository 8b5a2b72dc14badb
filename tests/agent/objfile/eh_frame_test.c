/* Exception tables (LSDA) that are found through a stored address, and tables that are damaged. */
#include "agent/objfile/eh_frame.h"
#include "tests/support/check.h"

#include <elf.h>

enum {
    CODE = 0x1000,
    CODE_BYTES = 0x100,
    FRAMES_AT = 0x2000,
    DATA_AT = 0x3000, /* the bytes of struct data */
    DAMAGED_AT = DATA_AT + 16,
    CUT_AT = DATA_AT + 24
};

/* The bytes of the file at DATA_AT. */
static struct data {
    uint64_t stored;
    uint64_t unknown; /* 0: only the loader writes it */
    uint8_t damaged[8];
    uint8_t cut[8];
    uint8_t table[32];
} data = {
    .stored = DATA_AT + offsetof(struct data, table),
    /* no base, no types, call sites as ULEB128 that are longer than the file */
    .damaged = {0xff, 0xff, 0x01, 0xff, 0x7f, 0, 0, 0},
    /* a call site that ends in the middle of its landing pad */
    .cut = {0xff, 0xff, 0x01, 3, 0x10, 0x10, 0x80, 0},
    /* two call sites: 0x10 to 0x20 without a landing pad, 0x20 to 0x30 with one at 0x40 */
    .table = {0xff, 0xff, 0x01, 8, 0x10, 0x10, 0, 0, 0x20, 0x10, 0x40, 0},
};

typedef struct pads {
    unsigned count;
    uint64_t last;
} pads;

static void count_pad(void *context, uint64_t pad)
{
    pads *found = context;
    found->count++;
    found->last = pad;
}

/* Reads a section with one description, whose exception table has this encoding and address. */
static sj_fde read_description(uint8_t encoding, uint64_t landing)
{
    struct {
        uint32_t common_bytes;
        uint32_t common_id;
        uint8_t common[16]; /* version, "zLR", factors, register, encodings */
        uint32_t bytes;
        uint32_t back;
        uint64_t start;
        uint64_t size;
        uint8_t augmentation[9];
        uint8_t padding[3];
    } __attribute__((packed))
    section = {.common_bytes = 20,
               .common = {1, 'z', 'L', 'R', 0, 1, 0x78, 16, 2, encoding, 0, 0x0c, 7, 8, 0, 0},
               .bytes = 32,
               .back = 28,
               .start = CODE,
               .size = CODE_BYTES,
               .augmentation = {8}};
    sj_eh_frame unwind = {0};
    memcpy(section.augmentation + 1, &landing, sizeof(landing));
    const sj_slice bytes = {.data = (const uint8_t *)&section, .size = sizeof(section)};
    assert_int_equal(sj_eh_frame_read(bytes, FRAMES_AT, &unwind), SJ_OK);
    assert_int_equal(unwind.count, 1);
    const sj_fde range = unwind.ranges[0];
    sj_eh_frame_free(&unwind);
    assert_int_equal(range.start, CODE);
    assert_int_equal(range.end, CODE + CODE_BYTES);
    return range;
}

static bool find_pads(const sj_fde *range, pads *found)
{
    sj_elf_segment segment = {
        .type = PT_LOAD, .address = DATA_AT, .offset = 0, .file_bytes = sizeof(data)};
    const sj_elf elf = {.file = {.data = (const uint8_t *)&data, .size = sizeof(data)},
                        .segments = &segment,
                        .segment_count = 1};
    *found = (pads){0};
    return sj_landing_pads(&elf, range, count_pad, found);
}

enum { ABSOLUTE = 0x00, INDIRECT = 0x80, DATA_RELATIVE = 0x30 };

static void pads_are_found_directly_and_through_a_stored_address(void **state)
{
    (void)state;
    pads found;
    const sj_fde direct = read_description(ABSOLUTE, DATA_AT + offsetof(struct data, table));
    const sj_fde indirect = read_description(INDIRECT, DATA_AT);
    assert_true(find_pads(&direct, &found));
    assert_int_equal(found.count, 1);
    assert_int_equal(found.last, CODE + 0x40);
    assert_true(find_pads(&indirect, &found));
    assert_int_equal(found.count, 1);
    assert_int_equal(found.last, CODE + 0x40);
}

static void a_function_without_a_table_has_no_pads(void **state)
{
    (void)state;
    pads found;
    const sj_fde none = read_description(ABSOLUTE, 0);
    assert_true(find_pads(&none, &found));
    assert_int_equal(found.count, 0);
}

static void unreadable_tables_are_reported(void **state)
{
    (void)state;
    pads found;
    const sj_fde ranges[] = {
        read_description(ABSOLUTE, DAMAGED_AT),
        read_description(ABSOLUTE, CUT_AT),
        read_description(ABSOLUTE, DATA_AT + sizeof(data)), /* outside of the file */
        read_description(INDIRECT, DATA_AT + offsetof(struct data, unknown)), /* not stored yet */
        read_description(INDIRECT, DATA_AT + sizeof(data)),
        read_description(DATA_RELATIVE, 8),
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        assert_false(find_pads(&ranges[i], &found));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pads_are_found_directly_and_through_a_stored_address),
        cmocka_unit_test(a_function_without_a_table_has_no_pads),
        cmocka_unit_test(unreadable_tables_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
