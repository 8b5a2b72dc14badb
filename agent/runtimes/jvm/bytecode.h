/* Java bytecode: where instructions end, and which of them have a place in the code as operand.
 * The Java Virtual Machine Specification, chapter 6. */
#ifndef SJ_AGENT_RUNTIMES_JVM_BYTECODE_H
#define SJ_AGENT_RUNTIMES_JVM_BYTECODE_H

#include "proto/base/cursor.h"

typedef enum sj_bytecode_kind {
    SJ_BYTECODE_PLAIN = 0,
    SJ_BYTECODE_JUMP,      /* 16 bits, from the instruction's start */
    SJ_BYTECODE_WIDE_JUMP, /* 32 bits */
    SJ_BYTECODE_SWITCH,    /* aligned operands: the instruction's place decides its length */
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
    uint32_t at;
    uint32_t size; /* bytes, padding of a switch included */
    uint8_t opcode;
    uint8_t kind;   /* sj_bytecode_kind */
    uint32_t table; /* of a switch: offset of its aligned operands */
} sj_bytecode;

/* sj_bytecode_read reads the instruction at `at`. SJ_ECORRUPT it is none, or leads out of the code.
 * Any thread. */
SJ_MUST_CHECK sj_status sj_bytecode_read(sj_slice code, uint32_t at, sj_bytecode *instruction);

/* sj_bytecode_padding is the number of bytes between the opcode of a switch at `at` and its
 * operands. */
static inline uint32_t sj_bytecode_padding(uint32_t at)
{
    return 3 - (at & 3);
}

#endif
