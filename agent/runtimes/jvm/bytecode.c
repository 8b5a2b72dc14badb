#include "agent/runtimes/jvm/bytecode.h"

#include "agent/runtimes/jvm/big_endian.h"

enum { OPCODES = 256, LONGEST_SWITCH = 64 * 1024, WIDE = 0xc4, IINC = 0x84, LOOKUPSWITCH = 0xab };

/* Sizes of instructions in bytes, as ranges of opcodes with equal sizes. 0 if the size varies, or
 * if the value is not an opcode. */
static const struct {
    uint8_t last; /* Last opcode of the range. */
    uint8_t bytes;
} lengths[] = {{0x0f, 1}, {0x10, 2}, {0x11, 3}, {0x12, 2}, {0x14, 3}, {0x19, 2}, {0x35, 1},
               {0x3a, 2}, {0x83, 1}, {0x84, 3}, {0x98, 1}, {0xa8, 3}, {0xa9, 2}, {0xab, 0},
               {0xb1, 1}, {0xb8, 3}, {0xba, 5}, {0xbb, 3}, {0xbc, 2}, {0xbd, 3}, {0xbf, 1},
               {0xc1, 3}, {0xc3, 1}, {0xc4, 0}, {0xc5, 4}, {0xc7, 3}, {0xc9, 5}, {0xff, 0}};

static uint32_t length_of(uint8_t opcode)
{
    size_t i = 0;
    while (opcode > lengths[i].last) {
        i++;
    }
    return lengths[i].bytes;
}

static sj_bytecode_kind kind_of(uint8_t opcode)
{
    if ((opcode >= 0x99 && opcode <= 0xa8) || opcode == 0xc6 || opcode == 0xc7) {
        return SJ_BYTECODE_JUMP;
    }
    if (opcode == 0xc8 || opcode == 0xc9) {
        return SJ_BYTECODE_WIDE_JUMP;
    }
    if (opcode == SJ_BYTECODE_TABLESWITCH || opcode == LOOKUPSWITCH) {
        return SJ_BYTECODE_SWITCH;
    }
    return opcode >= 0xac && opcode <= 0xb1 ? SJ_BYTECODE_RETURN : SJ_BYTECODE_PLAIN;
}

/* Sets the size of a tableswitch or lookupswitch and the offset of its operands. */
static sj_status measure_switch(sj_slice code, sj_bytecode *instruction)
{
    instruction->table = instruction->at + 1 + sj_bytecode_padding(instruction->at);
    if (instruction->table > code.size) {
        return SJ_ECORRUPT;
    }
    sj_reader reader = sj_reader_of(code.data + instruction->table, code.size - instruction->table);
    sj_read_bytes(&reader, 4);
    const int64_t first = (int32_t)sj_read_be32(&reader);
    uint64_t bytes;
    if (instruction->opcode == SJ_BYTECODE_TABLESWITCH) {
        const int64_t last = (int32_t)sj_read_be32(&reader);
        if (last < first || last - first >= LONGEST_SWITCH) {
            return SJ_ECORRUPT;
        }
        bytes = 12 + (uint64_t)(last - first + 1) * 4;
    } else {
        if (first < 0 || first >= LONGEST_SWITCH) {
            return SJ_ECORRUPT;
        }
        bytes = 8 + (uint64_t)first * 8;
    }
    instruction->size = instruction->table - instruction->at + (uint32_t)bytes;
    return reader.bad ? SJ_ECORRUPT : SJ_OK;
}

sj_status sj_bytecode_read(sj_slice code, uint32_t at, sj_bytecode *instruction)
{
    if (at >= code.size) {
        return SJ_ECORRUPT;
    }
    const uint8_t opcode = code.data[at];
    *instruction = (sj_bytecode){
        .at = at, .opcode = opcode, .kind = (uint8_t)kind_of(opcode), .size = length_of(opcode)};
    if (instruction->kind == SJ_BYTECODE_SWITCH) {
        SJ_TRY(measure_switch(code, instruction));
    } else if (opcode == WIDE && at + 1 < code.size) {
        instruction->size = code.data[at + 1] == IINC ? 6 : 4;
    }
    return instruction->size != 0 && instruction->size <= code.size - at ? SJ_OK : SJ_ECORRUPT;
}
