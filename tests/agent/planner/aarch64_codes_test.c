/* Tests the decoding of AArch64 words: kinds and targets of single words, epilogues that remove the
 * frame, and the tables of switches. The encodings are those of GNU as. */
#include "agent/planner/jump_tables.h"
#include "agent/planner/machine.h"
#include "tests/support/check.h"

#include <elf.h>
#include <stdlib.h>

enum {
    WORD = 4,
    TEXT_LOW = 0x10ff0, /* so that adrp may refer to another page than the text's start */
    MOST_WORDS = 16,
    NONE = 0,
    WORD_BR = 0xd61f0220,
    WORD_BL = 0x94000002,
    WORD_ADD_SP = 0x910043ff,
    WORD_LDP_LINK = 0xa9407bfd, /* ldp x29, x30, [sp] */
    WORD_POP_LINK = 0xa8c17bfd  /* ldp x29, x30, [sp], #16 */
};

static const struct {
    uint32_t word;
    sj_code_kind kind;
    uint8_t flags;
    int32_t distance; /* from the word to its target, in bytes */
} words[] = {
    {0xd503201f, SJ_CODE_NOP, NONE, WORD},
    {0xd65f03c0, SJ_CODE_RETURN, NONE, WORD},        /* ret */
    {0xd65f00a0, SJ_CODE_PINNED, NONE, WORD},        /* ret x5 */
    {0xd65f0bff, SJ_CODE_RETURN, NONE, WORD},        /* retaa */
    {0xd61f0220, SJ_CODE_JUMP_INDIRECT, NONE, WORD}, /* br x17 */
    {0xd71f0a31, SJ_CODE_JUMP_INDIRECT, NONE, WORD}, /* braa x17, x17 */
    {0xd63f0220, SJ_CODE_CALL_INDIRECT, NONE, WORD}, /* blr x17 */
    {0xd73f0a31, SJ_CODE_CALL_INDIRECT, NONE, WORD}, /* blraa x17, x17 */
    {0xd63f03c0, SJ_CODE_PINNED, NONE, WORD},        /* blr x30 */
    {0xd73f0a3e, SJ_CODE_PINNED, NONE, WORD},        /* blraa x17, x30 */
    {0xd69f03e0, SJ_CODE_PINNED, NONE, WORD},        /* eret */
    {0x00000000, SJ_CODE_STOP, NONE, WORD},          /* udf #0 */
    {0xd4200020, SJ_CODE_STOP, NONE, WORD},          /* brk #1 */
    {0xd4400000, SJ_CODE_STOP, NONE, WORD},          /* hlt #0 */
    {0xd4000001, SJ_CODE_PLAIN, NONE, WORD},         /* svc #0 */
    {0x14000002, SJ_CODE_JUMP, SJ_CODE_BRANCH, 8},   /* b */
    {0x17fffffe, SJ_CODE_JUMP, SJ_CODE_BRANCH, -8},
    {WORD_BL, SJ_CODE_CALL, SJ_CODE_BRANCH, 8},
    {0x54000040, SJ_CODE_JUMP_IF, SJ_CODE_BRANCH, 8},  /* b.eq */
    {0xb4000040, SJ_CODE_JUMP_IF, SJ_CODE_BRANCH, 8},  /* cbz */
    {0x36000040, SJ_CODE_JUMP_IF, SJ_CODE_BRANCH, 8},  /* tbz */
    {0x3707ffe0, SJ_CODE_JUMP_IF, SJ_CODE_BRANCH, -4}, /* tbnz */
    {0x10000040, SJ_CODE_PLAIN, SJ_CODE_RELATIVE, 8},  /* adr */
    {0x58000040, SJ_CODE_PLAIN, SJ_CODE_RELATIVE, 8},  /* ldr x0 */
    {0x9c000040, SJ_CODE_PINNED, NONE, WORD},          /* ldr q0 */
    {0xd8000040, SJ_CODE_PINNED, NONE, WORD},          /* prfm */
    {0x02000000, SJ_CODE_BAD, NONE, WORD},             /* not allocated */
};

static void instructions_are_decoded_to_kind_and_target(void **state)
{
    sj_decoder decoder = {0};
    (void)state;
    assert_int_equal(sj_decoder_open(&decoder, &sj_machine_aarch64, TEXT_LOW), SJ_OK);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        sj_code code;
        uint64_t immediate;
        const uint32_t at = (uint32_t)(i * WORD);
        sj_decode(&decoder, (const uint8_t *)&words[i].word, WORD, at, &code, &immediate);
        if (code.kind != words[i].kind || code.flags != words[i].flags || code.length != WORD ||
            sj_code_target(&code) != (int64_t)at + words[i].distance) {
            fail_msg("%08x: kind %d, flags %d, %+d", words[i].word, code.kind, code.flags,
                     (int)(sj_code_target(&code) - at));
        }
    }
    sj_decoder_close(&decoder);
}

static void adrp_counts_pages_from_its_own_page(void **state)
{
    static const uint32_t adrp = 0xb0000000; /* x0, the next page */
    sj_decoder decoder = {0};
    (void)state;
    assert_int_equal(sj_decoder_open(&decoder, &sj_machine_aarch64, TEXT_LOW), SJ_OK);
    for (uint32_t at = 0; at < 8 * WORD; at += WORD) {
        sj_code code;
        uint64_t immediate;
        sj_decode(&decoder, (const uint8_t *)&adrp, WORD, at, &code, &immediate);
        assert_int_equal(TEXT_LOW + sj_code_target(&code), ((TEXT_LOW + at) & ~0xfffU) + 0x1000);
    }
    sj_decoder_close(&decoder);
}

/* A module with one function that consists of `codes`. */
typedef struct small_module {
    sj_module module;
    sj_code_range range;
    sj_code codes[MOST_WORDS];
    uint64_t bits[4];
} small_module;

static void read_words(small_module *made, const uint32_t *text, uint32_t count)
{
    sj_decoder decoder = {0};
    *made = (small_module){.range = {.size = count * WORD, .code_count = count}};
    made->module = (sj_module){.machine = &sj_machine_aarch64,
                               .text_low = TEXT_LOW,
                               .text_bytes = count * WORD,
                               .text = (const uint8_t *)text,
                               .ranges = &made->range,
                               .range_count = 1,
                               .codes = made->codes,
                               .code_count = count,
                               .targets = &made->bits[0],
                               .pinned = &made->bits[1],
                               .addressed = &made->bits[2],
                               .called = &made->bits[3]};
    assert_true(count <= MOST_WORDS);
    assert_int_equal(sj_decoder_open(&decoder, &sj_machine_aarch64, TEXT_LOW), SJ_OK);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t immediate;
        sj_decode(&decoder, made->module.text + i * WORD, WORD, i * WORD, &made->codes[i],
                  &immediate);
    }
    sj_decoder_close(&decoder);
}

/* The jump is marked with SJ_CODE_ENTRY_FRAME only if the frame was certainly removed before it. */
static void a_jump_after_an_epilogue_is_marked(void **state)
{
    static const struct {
        uint32_t count;
        uint32_t text[3]; /* before the jump */
        uint32_t target;  /* offset that a branch may lead to; 0: none */
        bool is_entry;
    } cases[] = {
        {1, {WORD_POP_LINK}, 0, true},
        {1, {0xa8c14ffe}, 0, true},  /* ldp x30, x19, [sp], #16 */
        {1, {0xf84107fe}, 0, true},  /* ldr x30, [sp], #16 */
        {1, {0xa8c153f3}, 0, false}, /* ldp x19, x20, [sp], #16 */
        {1, {WORD_LDP_LINK}, 0, false},
        {1, {WORD_ADD_SP}, 0, false},
        {2, {WORD_LDP_LINK, WORD_ADD_SP}, 0, true},
        {2, {0xf94003fe, WORD_ADD_SP}, 0, true}, /* ldr x30, [sp] */
        {2, {WORD_ADD_SP, WORD_LDP_LINK}, 0, false},
        {2, {WORD_LDP_LINK, 0x910043bf}, 0, false}, /* add sp, x29, #16 */
        {3, {WORD_LDP_LINK, WORD_ADD_SP, 0xd503201f}, 0, true},
        {2, {WORD_POP_LINK, WORD_BL}, 0, false},
        {2, {WORD_POP_LINK, 0x91000400}, WORD, false}, /* add x0, x0, #1 */
        {3, {WORD_LDP_LINK, 0x91000400, WORD_ADD_SP}, WORD, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        small_module made;
        uint32_t text[4];
        memcpy(text, cases[i].text, sizeof(cases[i].text));
        text[cases[i].count] = (uint32_t)WORD_BR;
        read_words(&made, text, cases[i].count + 1);
        if (cases[i].target != 0) {
            sj_bit_set(made.module.targets, cases[i].target);
        }
        sj_machine_aarch64.finish_range(&made.module, &made.range);
        const sj_code *jump = &made.codes[cases[i].count];
        if (((jump->flags & SJ_CODE_ENTRY_FRAME) != 0) != cases[i].is_entry) {
            fail_msg("case %zu", i);
        }
    }
}

/* cmp w0, #3; adr x1, table; LOAD; adr x3, base; SUM; br x2; base: table: */
static void a_switch_gives_the_format_of_its_table(void **state)
{
    enum { LOAD = 2, SUM = 4, WORDS = 6 };
    static const struct {
        uint32_t load, sum;
        uint8_t entry_bytes, shift;
        bool is_table, is_signed;
    } cases[] = {{0x38604822, 0x8b228862, 1, 2, true, true},    /* ldrb; add x2, x3, w2, sxtb #2 */
                 {0x38604822, 0x8b020862, 1, 2, true, false},   /* ldrb; lsl #2 */
                 {0x38e04822, 0x8b020862, 1, 2, true, true},    /* ldrsb; lsl #2 */
                 {0x78605822, 0x8b222862, 2, 2, true, false},   /* ldrh; uxth #2 */
                 {0x78605822, 0x8b22a862, 2, 2, true, true},    /* ldrh; sxth #2 */
                 {0xb8a07822, 0x8b020062, 4, 0, true, true},    /* ldrsw; no shift */
                 {0xf8607822, 0x8b020062, 0, 0, false, false},  /* ldr of 8 bytes: no distances */
                 {0x91000422, 0x8b020062, 0, 0, false, false}}; /* add: no load */
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        small_module made;
        sj_jump_tables tables = {0};
        const uint32_t text[WORDS] = {0x71000c1f, 0x100000a1,   cases[i].load,
                                      0x10000063, cases[i].sum, 0xd61f0040};
        read_words(&made, text, WORDS);
        assert_int_equal(sj_machine_aarch64.find_tables(&made.module, 0, &tables), SJ_OK);
        assert_int_equal(tables.count, cases[i].is_table ? 1 : 0);
        if (cases[i].is_table &&
            (tables.items[0].entry_bytes != cases[i].entry_bytes ||
             tables.items[0].shift != cases[i].shift ||
             tables.items[0].is_signed != cases[i].is_signed || tables.items[0].most_count != 4 ||
             tables.items[0].address != TEXT_LOW + WORDS * WORD ||
             tables.items[0].base != TEXT_LOW + WORDS * WORD)) {
            fail_msg("case %zu: %u bytes, shift %u, signed %d, %u entries", i,
                     tables.items[0].entry_bytes, tables.items[0].shift, tables.items[0].is_signed,
                     tables.items[0].most_count);
        }
        const sj_switch_shape shape =
            sj_machine_aarch64.find_switch(&made.module, &made.range, &made.codes[WORDS - 1]);
        assert_true(shape.has_sum);
        free(tables.items);
    }
}

/* Compilers send an unreachable case to the end of the function, where another function starts. */
static void a_case_behind_the_function_does_not_end_the_table(void **state)
{
    enum { WORDS = 6, ENTRIES = 4 };
    static const struct {
        uint32_t text[WORDS]; /* cmp w0, #3; adr x1, table; ldrb; adr x3, text; add lsl #2; br x2 */
        uint8_t entries[ENTRIES];
    } file = {{0x71000c1f, 0x100000a1, 0x38604822, 0x10ffffa3, 0x8b020862, 0xd61f0040},
              {1, WORDS, 2, 5}};
    small_module made;
    uint64_t table_entries = 0;
    uint32_t before[2] = {0};
    sj_found_links found = {0};
    (void)state;
    read_words(&made, file.text, WORDS);
    sj_elf_segment segment = {
        .type = PT_LOAD, .address = TEXT_LOW, .file_bytes = sizeof(file.text) + ENTRIES};
    made.module.elf = (sj_elf){.file = {(const uint8_t *)&file, sizeof(file)},
                               .type = ET_DYN,
                               .segments = &segment,
                               .segment_count = 1};
    made.module.table_entries = &table_entries;
    made.module.ranges_before = before;
    made.range.has_indirect = true;
    assert_int_equal(sj_read_jump_tables(&made.module, &found), SJ_OK);
    assert_true(made.range.has_table);
    assert_int_equal(table_entries, 1 << 1 * WORD | 1 << 2 * WORD | 1 << 5 * WORD);
    sj_links_free(&found);
}

static void entries_lie_behind_marks_of_targets(void **state)
{
    static const uint32_t text[] = {0xd503245f, 0xd503233f, 0xd65f03c0, 0xd503245f};
    small_module made;
    (void)state;
    read_words(&made, text, 3);
    assert_int_equal(sj_machine_aarch64.entry(&made.module, &made.range), 2 * WORD);
    read_words(&made, text + 3, 1); /* the last instruction is patched in any case */
    assert_int_equal(sj_machine_aarch64.entry(&made.module, &made.range), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_are_decoded_to_kind_and_target),
        cmocka_unit_test(adrp_counts_pages_from_its_own_page),
        cmocka_unit_test(a_jump_after_an_epilogue_is_marked),
        cmocka_unit_test(a_switch_gives_the_format_of_its_table),
        cmocka_unit_test(a_case_behind_the_function_does_not_end_the_table),
        cmocka_unit_test(entries_lie_behind_marks_of_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
