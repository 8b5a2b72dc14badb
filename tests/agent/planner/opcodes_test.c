/* What the table of opcodes says, against Zydis: every opcode of the two maps with its prefixes and
 * operands, whole and cut off. */
#include "agent/planner/decode.h"
#include "agent/planner/machine.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { INSTRUCTION_BYTES = 15, AT = 0x1234 };

static sj_decoder decoder;
static unsigned known;

static void check(const uint8_t *bytes, size_t size)
{
    sj_code by_table;
    sj_code by_zydis;
    uint64_t immediate;
    uint64_t expected;
    if (!sj_opcodes_decode(&decoder.of.x86_64.opcodes, bytes, size, AT, &by_table, &immediate)) {
        return;
    }
    known++;
    sj_x86_64_decode_slowly(&decoder, bytes, size, AT, &by_zydis, &expected);
    if (by_table.at != by_zydis.at || by_table.value != by_zydis.value ||
        by_table.length != by_zydis.length || by_table.kind != by_zydis.kind ||
        by_table.flags != by_zydis.flags || by_table.field != by_zydis.field ||
        by_table.flag_effect != by_zydis.flag_effect || immediate != expected) {
        fail_msg("%02x %02x %02x %02x %02x %02x, %zu bytes: kind %u, not %u, length %u, not %u, "
                 "effect %u, not %u, flags %u, not %u, immediate %llx, not %llx",
                 bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], size, by_table.kind,
                 by_zydis.kind, by_table.length, by_zydis.length, by_table.flag_effect,
                 by_zydis.flag_effect, by_table.flags, by_zydis.flags,
                 (unsigned long long)immediate, (unsigned long long)expected);
    }
}

static void check_operands(uint8_t *bytes, size_t before)
{
    static const uint8_t fillers[] = {0x00, 0x25, 0xe4};
    for (unsigned operands = 0; operands < 256; operands++) {
        for (unsigned i = 0; i < sizeof(fillers); i++) {
            memset(bytes + before, fillers[i], INSTRUCTION_BYTES - before);
            bytes[before] = (uint8_t)operands;
            check(bytes, INSTRUCTION_BYTES);
        }
    }
}

static void check_opcodes(const uint8_t *prefixes, size_t prefix_count)
{
    uint8_t bytes[INSTRUCTION_BYTES];
    memcpy(bytes, prefixes, prefix_count);
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        bytes[prefix_count] = (uint8_t)opcode;
        check_operands(bytes, prefix_count + 1);
        bytes[prefix_count] = 0x0f;
        bytes[prefix_count + 1] = (uint8_t)opcode;
        check_operands(bytes, prefix_count + 2);
    }
}

static void what_the_table_tells_is_what_zydis_tells(void **state)
{
    (void)state;
    static const uint8_t prefixes[] = {0x66, 0xf2, 0xf3};
    static const uint8_t extensions[] = {0x40, 0x41, 0x46, 0x48, 0x4f};
    check_opcodes(prefixes, 0);
    for (size_t i = 0; i < sizeof(prefixes); i++) {
        check_opcodes(&prefixes[i], 1);
    }
    for (size_t k = 0; k < sizeof(extensions); k++) {
        check_opcodes(&extensions[k], 1);
        for (size_t i = 0; i < sizeof(prefixes); i++) {
            check_opcodes((const uint8_t[]){prefixes[i], extensions[k]}, 2);
            check_opcodes((const uint8_t[]){extensions[k], prefixes[i]}, 2);
        }
    }
    assert_true(known > 1000000);
}

static void prefixes_without_meaning_are_counted(void **state)
{
    (void)state;
    static const uint8_t prefixes[] = {0x2e, 0x64, 0x66};
    static const uint8_t extensions[] = {0x41, 0x48};
    known = 0;
    for (size_t i = 0; i < sizeof(prefixes); i++) {
        for (size_t k = 0; k < sizeof(prefixes); k++) {
            check_opcodes((const uint8_t[]){prefixes[i], prefixes[k]}, 2);
            for (size_t e = 0; e < sizeof(extensions); e++) {
                check_opcodes((const uint8_t[]){prefixes[i], prefixes[k], extensions[e]}, 3);
                check_opcodes((const uint8_t[]){prefixes[i], extensions[e], prefixes[k]}, 3);
            }
        }
        for (size_t e = 0; e < sizeof(extensions); e++) {
            check_opcodes((const uint8_t[]){prefixes[i], extensions[e]}, 2);
        }
        check_opcodes((const uint8_t[]){0xf3, prefixes[i]}, 2);
        check_opcodes((const uint8_t[]){prefixes[i], 0xf2}, 2);
        check_opcodes(&prefixes[i], 1);
    }
    assert_true(known > 1000000);
}

/* Up to the 15 bytes that an instruction may have, and past them. */
static void rows_of_prefixes_end(void **state)
{
    (void)state;
    static const uint8_t nop[] = {0x2e, 0x0f, 0x1f, 0x84, 0, 1, 2, 3, 4};
    static const uint8_t move[] = {0x49, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t add[] = {0x48, 0x81, 0x84, 0x88, 1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t count = 0; count <= INSTRUCTION_BYTES; count++) {
        uint8_t bytes[INSTRUCTION_BYTES + sizeof(add)];
        memset(bytes, 0x66, sizeof(bytes));
        memcpy(bytes + count, nop, sizeof(nop));
        check(bytes, sizeof(bytes));
        memcpy(bytes + count, move, sizeof(move));
        check(bytes, sizeof(bytes));
        memcpy(bytes + count, add, sizeof(add));
        check(bytes, sizeof(bytes));
    }
}

/* Also with nothing of the bytes readable behind them (asan). */
static void instructions_that_are_cut_off_are_left_to_zydis(void **state)
{
    (void)state;
    static const uint8_t whole[][INSTRUCTION_BYTES] = {
        {0x55},                                                 /* push */
        {0xe9, 1, 2, 3, 4},                                     /* jmp */
        {0x0f, 0x84, 1, 2, 3, 4},                               /* je */
        {0x48, 0x8d, 0x05, 1, 2, 3, 4},                         /* lea */
        {0x49, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8},                   /* mov */
        {0x66, 0x41, 0xc7, 0x84, 0x24, 1, 2, 3, 4, 5, 6},       /* movw */
        {0x48, 0x81, 0x84, 0x88, 1, 2, 3, 4, 5, 6, 7, 8},       /* add */
        {0xf2, 0x44, 0x0f, 0x58, 0x84, 0x88, 1, 2, 3, 4},       /* addsd */
        {0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 1, 2, 3, 4},    /* nop */
        {0x66, 0x45, 0x0f, 0x70, 0x84, 0x88, 1, 2, 3, 4, 0x1b}, /* pshufd */
    };
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        sj_code code;
        uint64_t immediate;
        sj_decode(&decoder, whole[i], INSTRUCTION_BYTES, AT, &code, &immediate);
        const size_t length = code.length;
        for (size_t size = 0; size <= length; size++) {
            uint8_t *cut = test_malloc(size + 1);
            memcpy(cut + 1, whole[i], size);
            const bool is_known =
                sj_opcodes_decode(&decoder.of.x86_64.opcodes, cut + 1, size, AT, &code, &immediate);
            assert_int_equal(is_known, size == length);
            sj_decode(&decoder, cut + 1, size, AT, &code, &immediate);
            assert_int_equal(code.kind == SJ_CODE_BAD, size < length);
            assert_int_equal(code.length, size < length ? 1 : length);
            test_free(cut);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_table_tells_is_what_zydis_tells),
        cmocka_unit_test(prefixes_without_meaning_are_counted),
        cmocka_unit_test(rows_of_prefixes_end),
        cmocka_unit_test(instructions_that_are_cut_off_are_left_to_zydis),
    };
    if (sj_decoder_open(&decoder, sj_machine_of(EM_X86_64), 0) != SJ_OK) {
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sj_decoder_close(&decoder);
    return failed;
}
