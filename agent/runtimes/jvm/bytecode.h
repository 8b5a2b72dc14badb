/* Reads Java bytecode (JVM specification, chapter 6): the sizes of instructions, and which
 * instructions jump. */
#ifndef SJ_AGENT_RUNTIMES_JVM_BYTECODE_H
#define SJ_AGENT_RUNTIMES_JVM_BYTECODE_H

#include "proto/base/cursor.h"

typedef enum sj_bytecode_kind {
    SJ_BYTECODE_PLAIN = 0,
    SJ_BYTECODE_JUMP,      /* Has a 16-bit distance from the start of the instruction. */
    SJ_BYTECODE_WIDE_JUMP, /* Has a 32-bit distance from the start of the instruction. */
    SJ_BYTECODE_SWITCH,    /* Its operands are aligned to 4 bytes, so its size depends on `at`. */
    SJ_BYTECODE_RETURN
} sj_bytecode_kind;

enum {
    SJ_BYTECODE_SIPUSH = 0x11,
    SJ_BYTECODE_LDC_W = 0x13,
    SJ_BYTECODE_TABLESWITCH = 0xaa,
    SJ_BYTECODE_INVOKESPECIAL = 0xb7,
    SJ_BYTECODE_INVOKESTATIC = 0xb8,
    SJ_BYTECODE_NEW = 0xbb,
    SJ_BYTECODE_ATHROW = 0xbf
};

typedef struct sj_bytecode {
    uint32_t at;   /* Offset in the code. */
    uint32_t size; /* In bytes, including the padding of a switch. */
    uint8_t opcode;
    uint8_t kind;   /* An sj_bytecode_kind. */
    uint32_t table; /* Offset of the aligned operands of a switch. */
} sj_bytecode;

/* Reads the instruction at offset `at`. Returns SJ_ECORRUPT if it is not valid, or if it does not
 * end within the code. Thread-safe. */
SJ_MUST_CHECK sj_status sj_bytecode_read(sj_slice code, uint32_t at, sj_bytecode *instruction);

/* Returns the number of padding bytes between the opcode of a switch at `at` and its operands. */
static inline uint32_t sj_bytecode_padding(uint32_t at)
{
    return 3 - (at & 3);
}

#endif
