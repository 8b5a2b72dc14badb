/* An instruction that a decoder finds in its memory of known instructions equals what a decoder
 * without such a memory reads. */
#include "agent/objfile/elf_view.h"
#include "agent/planner/machine.h"

#include "tests/support/check.h"

#include <elf.h>
#include <stdlib.h>

/* A decoder that has read fewer instructions has no memory yet. */
enum { CODES_A_DECODER = 512 };

typedef struct readers {
    sj_decoder with;
    sj_decoder without;
    unsigned read; /* number of instructions that `without` has read */
} readers;

static void open_readers(readers *both, bool keeps_faults)
{
    *both = (readers){0};
    assert_int_equal(sj_decoder_open(&both->with, &sj_machine_x86_64, 0), SJ_OK);
    assert_int_equal(sj_decoder_open(&both->without, &sj_machine_x86_64, 0), SJ_OK);
    both->with.keeps_faults = both->without.keeps_faults = keeps_faults;
}

static void close_readers(readers *both)
{
    sj_decoder_close(&both->with);
    sj_decoder_close(&both->without);
}

static uint8_t compare_one(readers *both, const uint8_t *bytes, size_t size)
{
    sj_code codes[2];
    uint64_t immediates[2];
    if (both->read++ == CODES_A_DECODER) {
        const bool keeps_faults = both->without.keeps_faults;
        sj_decoder_close(&both->without);
        assert_int_equal(sj_decoder_open(&both->without, &sj_machine_x86_64, 0), SJ_OK);
        both->without.keeps_faults = keeps_faults;
        both->read = 1;
    }
    sj_decode(&both->with, bytes, size, 7, &codes[0], &immediates[0]);
    sj_decode(&both->without, bytes, size, 7, &codes[1], &immediates[1]);
    assert_memory_equal(&codes[0], &codes[1], sizeof(codes[0]));
    assert_int_equal(immediates[0], immediates[1]);
    return codes[0].length;
}

static void compare_all(readers *both, sj_slice text)
{
    for (size_t at = 0; at < text.size;) {
        at += compare_one(both, text.data + at, text.size - at);
    }
}

static void code_of_programs_reads_the_same(void **state)
{
    static const char *const modules[] = {"/proc/self/exe", "/usr/bin/perl", "/usr/bin/git",
                                          "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                                          "/usr/lib/x86_64-linux-gnu/libzstd.so.1"};
    unsigned read = 0;
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(modules) / sizeof(modules[0]); i++) {
        sj_elf elf;
        readers both;
        if (sj_elf_open(modules[i / 2], &elf, NULL) != SJ_OK) {
            continue; /* not installed */
        }
        open_readers(&both, i % 2 != 0);
        const sj_elf_section *text = sj_elf_find_section(&elf, ".text");
        assert_non_null(text);
        compare_all(&both, sj_elf_section_bytes(&elf, text));
        close_readers(&both);
        sj_elf_close(&elf);
        read++;
    }
    assert_true(read >= 4);
}

/* Heads of few kinds, followed by arbitrary bytes, at any distance from the end. */
static void bytes_of_any_kind_read_the_same(void **state)
{
    static const uint8_t likely[] = {0x48, 0x0f, 0x8b, 0x66, 0xf3, 0x83, 0xc1, 0x05, 0x24, 0x8d,
                                     0x41, 0x80, 0xe8, 0xf2, 0xc7, 0xff, 0x67, 0x38, 0x3a, 0xd8};
    enum { ROUNDS = 150000, LONG_ROUNDS = 2000000, MOST = 16 };
    readers both;
    (void)state;
    srandom(27);
    open_readers(&both, false);
    const unsigned rounds = getenv("SJ_LONG") != NULL ? LONG_ROUNDS : ROUNDS;
    for (unsigned round = 0; round < rounds; round++) {
        uint8_t bytes[MOST];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            const unsigned drawn = (unsigned)random();
            bytes[i] =
                (drawn & 1) != 0 ? likely[(drawn >> 1) % sizeof(likely)] : (uint8_t)(drawn >> 8);
        }
        (void)compare_one(&both, bytes, 1 + (size_t)random() % MOST);
    }
    close_readers(&both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_of_programs_reads_the_same),
        cmocka_unit_test(bytes_of_any_kind_read_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
