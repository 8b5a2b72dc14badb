/* Decodes instructions to the form that the planner needs, 12 bytes each. Zydis decodes x86-64. The
 * planner's own code, with Capstone, decodes AArch64. Only one thread may use a decoder. */
#ifndef SJ_AGENT_PLANNER_DECODER_H
#define SJ_AGENT_PLANNER_DECODER_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sj_code_kind {
    SJ_CODE_PLAIN = 0,
    SJ_CODE_NOP,
    SJ_CODE_CALL,          /* direct */
    SJ_CODE_CALL_INDIRECT, /* through a register or memory */
    SJ_CODE_JUMP,          /* direct */
    SJ_CODE_JUMP_IF,       /* conditional and direct */
    SJ_CODE_JUMP_INDIRECT,
    SJ_CODE_RETURN,
    SJ_CODE_PINNED, /* valid, but cannot be moved to a stub: loop, jrcxz, xbegin, far transfers */
    SJ_CODE_STOP,   /* ud2, hlt: control never continues */
    SJ_CODE_BREAK,  /* int3 */
    SJ_CODE_BAD,
    SJ_CODE_FAULTS /* like PLAIN, but the runtime needs faults at its own address
                      (sj_decoder.keeps_faults) */
} sj_code_kind;

enum {
    SJ_CODE_ENTRY_FRAME = 1, /* the stack is as at the function's entry */
    SJ_CODE_RELATIVE = 2,    /* has a rip-relative operand; `value` is its displacement */
    SJ_CODE_ADDRESS = 4,     /* lea with a rip-relative operand */
    SJ_CODE_TABLE = 8,       /* jmp *value(,%reg,8) */
    SJ_CODE_MEMORY = 16,     /* indirect jump or call through memory */
    SJ_CODE_STACK = 32,      /* indirect call through memory at rsp */
    SJ_CODE_BRANCH = 64,     /* `value` is the displacement of a relative branch */
    SJ_CODE_UNOWNED = 128    /* lies outside of all ranges */
};

/* The status flags of x86, in the groups that the planner distinguishes. */
enum {
    SJ_FLAG_CARRY = 1,
    SJ_FLAG_ZERO = 2,
    SJ_FLAG_OVERFLOW = 4,
    SJ_FLAG_OTHERS = 8, /* sign, parity and adjust; flags that the instruction leaves undefined
                           count as written */
    SJ_FLAGS_ALL = 15
};

/* Effect of an instruction on the status flags. sj_flags_written returns the flags that the
 * instruction certainly writes. sj_flags_read returns the flags that it may read before it
 * writes. */
typedef enum sj_flag_effect {
    SJ_EFFECT_NONE,
    SJ_EFFECT_WRITES_ALL,
    SJ_EFFECT_WRITES_CARRY,
    SJ_EFFECT_WRITES_ZERO,
    SJ_EFFECT_WRITES_CARRY_ZERO,
    SJ_EFFECT_WRITES_CARRY_OVERFLOW,
    SJ_EFFECT_KEEPS_CARRY,    /* and writes all others */
    SJ_EFFECT_KEEPS_OVERFLOW, /* and writes all others */
    SJ_EFFECT_CARRIES,        /* reads the carry, writes all */
    SJ_EFFECT_READS_CARRY,
    SJ_EFFECT_READS_ZERO,
    SJ_EFFECT_READS_OVERFLOW,
    SJ_EFFECT_READS_CARRY_ZERO,
    SJ_EFFECT_READS_SIGNS, /* overflow and others */
    SJ_EFFECT_READS_ALL_BUT_CARRY,
    SJ_EFFECT_UNKNOWN /* may read all, writes none */
} sj_flag_effect;

typedef struct sj_code {
    uint32_t at;   /* offset in the text */
    int32_t value; /* displacement (RELATIVE, BRANCH) or address of a table (TABLE) */
    uint8_t length;
    uint8_t kind;  /* sj_code_kind */
    uint8_t flags; /* SJ_CODE_ENTRY_FRAME and the following bits */
    /* byte offset in the instruction of the displacement of a rip-relative operand */
    uint8_t field : 4;
    uint8_t flag_effect : 4; /* sj_flag_effect */
} sj_code;

typedef struct sj_machine sj_machine;

typedef struct sj_decoder {
    const sj_machine *machine;
    uint64_t text_low; /* address of offset 0 */
    void *state;       /* private to the machine */
    bool keeps_faults; /* the decoder uses SJ_CODE_FAULTS; set after opening */
} sj_decoder;

/* Opens a decoder for text whose first byte has the address `text_low`. Close it with
 * sj_decoder_close, which accepts a zeroed decoder. Returns SJ_ENOMEM if out of memory, and
 * SJ_ENOTFOUND if Capstone's library cannot be loaded. */
SJ_MUST_CHECK sj_status sj_decoder_open(sj_decoder *decoder, const sj_machine *machine,
                                        uint64_t text_low);
void sj_decoder_close(sj_decoder *decoder);

/* Decodes the instruction at `bytes`, whose offset in the text is `at`. Sets `*immediate` to a 32-
 * or 64-bit immediate operand, or to 0 if there is none. If the bytes are not an instruction,
 * writes one SJ_CODE_BAD: of one byte on x86-64 and of one word on AArch64. */
void sj_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
               sj_code *code, uint64_t *immediate);

/* Returns the offset after an instruction. */
static inline uint32_t sj_code_end(const sj_code *code)
{
    return code->at + code->length;
}

/* Returns the target of a branch or of a rip-relative operand, as an offset in the text. It may lie
 * outside the text. */
static inline int64_t sj_code_target(const sj_code *code)
{
    return (int64_t)sj_code_end(code) + code->value;
}

/* Return the sets of flags that a sj_flag_effect writes and may read. */
uint8_t sj_flags_written(uint8_t effect);
uint8_t sj_flags_read(uint8_t effect);

/* True if control never continues at the instruction after this one. */
static inline bool sj_code_is_final(const sj_code *code)
{
    return code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_INDIRECT ||
           code->kind == SJ_CODE_RETURN || code->kind == SJ_CODE_STOP;
}

#endif
