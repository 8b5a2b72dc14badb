/* Compares the planner's flag effects with the disassembler's tables, for every opcode of the four
 * maps with its prefixes and operands. */
#include "agent/planner/decoder.h"
#include "agent/planner/machine.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include <cmocka.h>

enum { INSTRUCTION_BYTES = 15, OTHERS = ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_PF };

static ZydisDecoder full;
static sj_decoder decoder;
static unsigned checked;

static uint32_t cpu_flags_of(uint8_t flags)
{
    return ((flags & SJ_FLAG_CARRY) != 0 ? ZYDIS_CPUFLAG_CF : 0) |
           ((flags & SJ_FLAG_ZERO) != 0 ? ZYDIS_CPUFLAG_ZF : 0) |
           ((flags & SJ_FLAG_OVERFLOW) != 0 ? ZYDIS_CPUFLAG_OF : 0) |
           ((flags & SJ_FLAG_OTHERS) != 0 ? OTHERS : 0);
}

/* The tables do not distinguish shifts by one bit, which define the overflow flag. */
static uint32_t written_by(const ZydisDecodedInstruction *instruction)
{
    enum { SHIFT8_BY_1 = 0xd0, SHIFT_BY_1 = 0xd1 };
    const ZydisAccessedFlags *flags = instruction->cpu_flags;
    const bool is_shift = instruction->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
                          (instruction->opcode == SHIFT8_BY_1 || instruction->opcode == SHIFT_BY_1);
    return flags->modified | flags->set_0 | flags->set_1 | (is_shift ? ZYDIS_CPUFLAG_OF : 0);
}

static void check(const uint8_t bytes[INSTRUCTION_BYTES])
{
    ZydisDecodedInstruction instruction;
    sj_code code;
    uint64_t immediate;
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeInstruction(&full, NULL, bytes, INSTRUCTION_BYTES, &instruction)) ||
        instruction.cpu_flags == NULL) {
        return;
    }
    sj_decode(&decoder, bytes, INSTRUCTION_BYTES, 0, &code, &immediate);
    if (code.kind != SJ_CODE_PLAIN && code.kind != SJ_CODE_NOP && code.kind != SJ_CODE_JUMP_IF) {
        return;
    }
    const uint32_t status = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_OF | OTHERS;
    const uint32_t tested = instruction.cpu_flags->tested & (status | ZYDIS_CPUFLAG_AF);
    const uint32_t read = cpu_flags_of(sj_flags_read(code.flag_effect));
    const uint32_t written = cpu_flags_of(sj_flags_written(code.flag_effect));
    if ((tested & ~(read | ((read & OTHERS) != 0 ? ZYDIS_CPUFLAG_AF : 0))) != 0 ||
        (written & ~written_by(&instruction)) != 0) {
        fail_msg("%s %02x %02x %02x %02x %02x: effect %u",
                 ZydisMnemonicGetString(instruction.mnemonic), bytes[0], bytes[1], bytes[2],
                 bytes[3], bytes[4], code.flag_effect);
    }
    checked++;
}

static void check_opcodes(const char *prefix, const char *escape)
{
    static const uint8_t fillers[] = {0, 1, 0x20, 0x40};
    uint8_t bytes[INSTRUCTION_BYTES];
    const size_t before = strlen(prefix) + strlen(escape);
    memcpy(bytes, prefix, strlen(prefix));
    memcpy(bytes + strlen(prefix), escape, strlen(escape));
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        for (unsigned operands = 0; operands < 256; operands++) {
            for (unsigned i = 0; i < sizeof(fillers); i++) {
                memset(bytes + before, fillers[i], sizeof(bytes) - before);
                bytes[before] = (uint8_t)opcode;
                bytes[before + 1] = (uint8_t)operands;
                check(bytes);
            }
        }
    }
}

static void flag_effects_equal_the_decoder_tables(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"", "\x66", "\xf2", "\xf3", "\x48", "\xf3\x48"};
    static const char *const escapes[] = {"", "\x0f", "\x0f\x38", "\x0f\x3a"};
    for (size_t prefix = 0; prefix < sizeof(prefixes) / sizeof(prefixes[0]); prefix++) {
        for (size_t escape = 0; escape < sizeof(escapes) / sizeof(escapes[0]); escape++) {
            check_opcodes(prefixes[prefix], escapes[escape]);
        }
    }
    assert_true(checked > 1000000);
}

/* A shift by zero writes no flags. The count is taken modulo 32, for 64-bit operands modulo 64. */
static void shifts_by_zero_write_no_flags(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[INSTRUCTION_BYTES];
        uint8_t written;
    } shifts[] = {
        {{0xc1, 0xe0, 0x00}, 0},
        {{0xc1, 0xe0, 0x20}, 0},
        {{0x48, 0xc1, 0xe0, 0x40}, 0},
        {{0xd3, 0xe0}, 0},
        {{0x48, 0xc1, 0xe0, 0x20}, SJ_FLAGS_ALL & ~SJ_FLAG_OVERFLOW},
        {{0xc1, 0xe0, 0x03}, SJ_FLAGS_ALL & ~SJ_FLAG_OVERFLOW},
        {{0xd1, 0xe0}, SJ_FLAGS_ALL},
    };
    for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
        sj_code code;
        uint64_t immediate;
        sj_decode(&decoder, shifts[i].bytes, INSTRUCTION_BYTES, 0, &code, &immediate);
        assert_int_equal(sj_flags_written(code.flag_effect), shifts[i].written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flag_effects_equal_the_decoder_tables),
        cmocka_unit_test(shifts_by_zero_write_no_flags),
    };
    if (!ZYAN_SUCCESS(ZydisDecoderInit(&full, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        sj_decoder_open(&decoder, sj_machine_of(EM_X86_64), 0) != SJ_OK) {
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sj_decoder_close(&decoder);
    return failed;
}
