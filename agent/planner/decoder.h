/* Instructions as the planner needs them: 12 bytes each, made by Zydis for x86-64 and by Capstone
 * for AArch64. A decoder belongs to one thread. */
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
    SJ_CODE_JUMP_IF,       /* conditional, direct */
    SJ_CODE_JUMP_INDIRECT,
    SJ_CODE_RETURN,
    SJ_CODE_PINNED, /* decodes, but cannot run elsewhere: loop, jrcxz, xbegin, far transfers */
    SJ_CODE_STOP,   /* ud2, hlt: never goes on */
    SJ_CODE_BREAK,  /* int3 */
    SJ_CODE_BAD,
    SJ_CODE_FAULTS /* as plain, and a fault in it has to lie where it is (keeps_faults) */
} sj_code_kind;

enum {
    SJ_CODE_ENTRY_FRAME = 1, /* the stack is here as at the entry */
    SJ_CODE_RELATIVE = 2,    /* has a rip-relative operand; `value` is its displacement */
    SJ_CODE_ADDRESS = 4,     /* lea of it */
    SJ_CODE_TABLE = 8,       /* jmp *value(,%reg,8) */
    SJ_CODE_MEMORY = 16,     /* indirect jump or call through memory */
    SJ_CODE_STACK = 32,      /* indirect call through memory at rsp */
    SJ_CODE_BRANCH = 64,     /* `value` is the displacement of a relative branch */
    SJ_CODE_UNOWNED = 128    /* lies outside of ranges */
};

/* The status flags of x86, as far as they are distinguished. */
enum {
    SJ_FLAG_CARRY = 1,
    SJ_FLAG_ZERO = 2,
    SJ_FLAG_OVERFLOW = 4,
    SJ_FLAG_OTHERS = 8, /* sign, parity, and adjust: what is undefined counts as written for it */
    SJ_FLAGS_ALL = 15
};

/* What an instruction does to them: which it writes for certain, and which it may read before that;
 * sj_flags_written and sj_flags_read return them as sets. */
typedef enum sj_flag_effect {
    SJ_EFFECT_NONE,
    SJ_EFFECT_WRITES_ALL,
    SJ_EFFECT_WRITES_CARRY,
    SJ_EFFECT_WRITES_ZERO,
    SJ_EFFECT_WRITES_CARRY_ZERO,
    SJ_EFFECT_WRITES_CARRY_OVERFLOW,
    SJ_EFFECT_KEEPS_CARRY,    /* and writes the rest */
    SJ_EFFECT_KEEPS_OVERFLOW, /* and writes the rest */
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
    uint32_t at; /* offset from the start of the text */
    int32_t value;
    uint8_t length;
    uint8_t kind; /* sj_code_kind */
    uint8_t flags;
    uint8_t field : 4;       /* position of the displacement of a rip-relative operand */
    uint8_t flag_effect : 4; /* sj_flag_effect */
} sj_code;

typedef struct sj_machine sj_machine;

typedef struct sj_decoder {
    const sj_machine *machine;
    uint64_t text_low; /* address of offset 0 */
    void *state;       /* the machine's own */
    bool keeps_faults; /* distinguishes SJ_CODE_FAULTS from SJ_CODE_PLAIN; set after opening */
} sj_decoder;

/* sj_decoder_open makes a decoder for code at `text_low`; release with sj_decoder_close, which is
 * safe on a zeroed one. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_decoder_open(sj_decoder *decoder, const sj_machine *machine,
                                        uint64_t text_low);
void sj_decoder_close(sj_decoder *decoder);

/* sj_decode reads the instruction at `bytes`; `at` goes into it. `*immediate` gets a 32- or 64-bit
 * immediate operand, else 0. What cannot be decoded is one SJ_CODE_BAD byte. */
void sj_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
               sj_code *code, uint64_t *immediate);

/* sj_code_end is the offset of the byte behind. */
static inline uint32_t sj_code_end(const sj_code *code)
{
    return code->at + code->length;
}

/* sj_code_target is where a branch or a rip-relative operand points, relative to the text's start
 * (it may lie outside of the text). */
static inline int64_t sj_code_target(const sj_code *code)
{
    return (int64_t)sj_code_end(code) + code->value;
}

/* sj_flags_written and sj_flags_read return the sets of flags of a sj_flag_effect. */
uint8_t sj_flags_written(uint8_t effect);
uint8_t sj_flags_read(uint8_t effect);

/* sj_code_is_final returns whether control never goes on behind it. */
static inline bool sj_code_is_final(const sj_code *code)
{
    return code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_INDIRECT ||
           code->kind == SJ_CODE_RETURN || code->kind == SJ_CODE_STOP;
}

#endif
