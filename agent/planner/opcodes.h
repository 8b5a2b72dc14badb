/* The instructions of x86-64 that compilers use most, by table: what Zydis tells of them, many
 * times as fast. */
#ifndef SJ_AGENT_PLANNER_OPCODES_H
#define SJ_AGENT_PLANNER_OPCODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_OPCODES_COUNT = 720 };

/* What an opcode is; the fields but for `kind` and `effect` are opcodes.c's own. */
typedef struct sj_opcode {
    uint8_t prefixes; /* 0: it is not in the table */
    uint8_t operands;
    uint8_t effect; /* sj_flag_effect */
    uint8_t kind;   /* sj_code_kind */
    uint16_t group;
} sj_opcode;

typedef struct sj_opcodes {
    sj_opcode of[SJ_OPCODES_COUNT];
    uint8_t operand_bytes[256]; /* by modrm, with what belongs to it */
} sj_opcodes;

struct sj_code;

/* sj_opcodes_fill makes the table. */
void sj_opcodes_fill(sj_opcodes *opcodes);

/* sj_opcodes_decode is sj_decode for what the table holds. False, and then nothing of use is in
 * `*code` and `*immediate`: it is not there, or goes on behind the bytes. */
bool sj_opcodes_decode(const sj_opcodes *opcodes, const uint8_t *bytes, size_t size, uint32_t at,
                       struct sj_code *code, uint64_t *immediate);

#endif
