#include "agent/planner/opcodes.h"

#include "agent/planner/machine.h"

#include <string.h>

/* Design notes. The table reads as those of the manual do (Intel SDM volume 2, appendix A): two
 * maps of opcodes, and groups, of which the reg field of the operand byte names the instruction.
 * What it leaves out (VEX, x87, system code, other prefixes, what is refused) is Zydis's. */

enum {
    PREFIX_CS = 0x2e, /* without meaning: alignment */
    PREFIX_FS = 0x64,
    PREFIX_WORD = 0x66,
    PREFIX_REPNE = 0xf2,
    PREFIX_REP = 0xf3,
    ESCAPE = 0x0f,
    MOST_BYTES = 15,
    MOST_PREFIXES = 7,
    WINDOW_BYTES = MOST_PREFIXES + 9 + 8, /* what may come before a value, which is read as 8 */
    BITS64 = 8,                           /* of a rex prefix */
    REGISTER = 3,                         /* mod: the operand is no memory */
    HAS_SIB = 4,                          /* rm */
    NO_BASE = 5                           /* rm or base with a mod of 0: an offset in its place */
};

/* The prefixes with which an opcode is in the table. */
enum {
    BARE = 1,
    WORD = 2,
    REP = 4,
    REPNE = 8,
    REX = 16, /* behind one of the others */
    LONG = BARE | REX,
    SIZED = BARE | WORD | REX,
    PACKED = WORD | REX,
    SCALAR = REP | REPNE | REX,
    FLOATS = SIZED | SCALAR
};

/* What follows it. */
enum {
    MODRM = 1,
    MEMORY = 2,     /* the operand of the modrm is no register */
    BYTE = 4,       /* an immediate */
    FULL = 8,       /* an immediate of the operand's size, but 32 bits at most */
    WIDE = 16,      /* an immediate of the operand's size */
    DISTANCE8 = 32, /* of a branch */
    DISTANCE32 = 64
};

/* Where the maps and groups are in the table. */
enum {
    GENERAL = 0,
    EXTENDED = 256,
    ARITHMETIC = 512,
    SHIFT = 520,
    SHIFT_BY_1 = 528,
    SHIFT_BY_CL = 536,
    UNARY8 = 544,
    UNARY = 552,
    COUNT = 560,
    CALL = 568,
    MOVE = 576,
    BITS = 584,
    GROUPS_END = 592,
    NO_GROUP = 0
};

enum {
    PLAIN = SJ_CODE_PLAIN,
    NONE = SJ_EFFECT_NONE,
    ALL = SJ_EFFECT_WRITES_ALL,
    PRODUCT = SJ_EFFECT_WRITES_CARRY_OVERFLOW,
    UNKNOWN = SJ_EFFECT_UNKNOWN
};

/* Opcodes of a map, or members of a group. */
typedef struct row {
    uint16_t where;
    uint8_t first;
    uint8_t last;
    sj_opcode opcode;
} row;

/* {prefixes, operands, effect, kind, group} */
static const row rows[] = {
    {GENERAL, 0x50, 0x5f, {LONG, 0, NONE, PLAIN, NO_GROUP}},                /* push, pop */
    {GENERAL, 0x63, 0x63, {LONG, MODRM, NONE, PLAIN, NO_GROUP}},            /* movsxd */
    {GENERAL, 0x68, 0x68, {BARE, FULL, NONE, PLAIN, NO_GROUP}},             /* push */
    {GENERAL, 0x69, 0x69, {SIZED, MODRM | FULL, PRODUCT, PLAIN, NO_GROUP}}, /* imul */
    {GENERAL, 0x6a, 0x6a, {BARE, BYTE, NONE, PLAIN, NO_GROUP}},             /* push */
    {GENERAL, 0x6b, 0x6b, {SIZED, MODRM | BYTE, PRODUCT, PLAIN, NO_GROUP}}, /* imul */
    {GENERAL, 0x80, 0x80, {LONG, MODRM | BYTE, NONE, PLAIN, ARITHMETIC}},
    {GENERAL, 0x81, 0x81, {SIZED, MODRM | FULL, NONE, PLAIN, ARITHMETIC}},
    {GENERAL, 0x83, 0x83, {SIZED, MODRM | BYTE, NONE, PLAIN, ARITHMETIC}},
    {GENERAL, 0x84, 0x84, {LONG, MODRM, ALL, PLAIN, NO_GROUP}}, /* test */
    {GENERAL, 0x85, 0x85, {SIZED, MODRM, ALL, PLAIN, NO_GROUP}},
    {GENERAL, 0x86, 0x86, {LONG, MODRM, NONE, PLAIN, NO_GROUP}}, /* xchg */
    {GENERAL, 0x87, 0x87, {SIZED, MODRM, NONE, PLAIN, NO_GROUP}},
    {GENERAL, 0x88, 0x88, {LONG, MODRM, NONE, PLAIN, NO_GROUP}}, /* mov */
    {GENERAL, 0x89, 0x89, {SIZED, MODRM, NONE, PLAIN, NO_GROUP}},
    {GENERAL, 0x8a, 0x8a, {LONG, MODRM, NONE, PLAIN, NO_GROUP}},
    {GENERAL, 0x8b, 0x8b, {SIZED, MODRM, NONE, PLAIN, NO_GROUP}},
    {GENERAL, 0x8d, 0x8d, {SIZED, MODRM | MEMORY, NONE, PLAIN, NO_GROUP}}, /* lea */
    {GENERAL, 0x90, 0x90, {BARE | WORD, 0, NONE, SJ_CODE_NOP, NO_GROUP}},
    {GENERAL, 0x98, 0x99, {LONG, 0, NONE, PLAIN, NO_GROUP}},   /* cdqe, cqo */
    {GENERAL, 0xa8, 0xa8, {LONG, BYTE, ALL, PLAIN, NO_GROUP}}, /* test */
    {GENERAL, 0xa9, 0xa9, {SIZED, FULL, ALL, PLAIN, NO_GROUP}},
    {GENERAL, 0xb0, 0xb7, {LONG, BYTE, NONE, PLAIN, NO_GROUP}}, /* mov */
    {GENERAL, 0xb8, 0xbf, {SIZED, WIDE, NONE, PLAIN, NO_GROUP}},
    {GENERAL, 0xc0, 0xc0, {LONG, MODRM | BYTE, NONE, PLAIN, SHIFT}},
    {GENERAL, 0xc1, 0xc1, {SIZED, MODRM | BYTE, NONE, PLAIN, SHIFT}},
    {GENERAL, 0xc3, 0xc3, {BARE, 0, UNKNOWN, SJ_CODE_RETURN, NO_GROUP}},
    {GENERAL, 0xc6, 0xc6, {LONG, MODRM | BYTE, NONE, PLAIN, MOVE}},
    {GENERAL, 0xc7, 0xc7, {SIZED, MODRM | FULL, NONE, PLAIN, MOVE}},
    {GENERAL, 0xc9, 0xc9, {BARE, 0, NONE, PLAIN, NO_GROUP}}, /* leave */
    {GENERAL, 0xcc, 0xcc, {BARE, 0, UNKNOWN, SJ_CODE_BREAK, NO_GROUP}},
    {GENERAL, 0xd0, 0xd0, {LONG, MODRM, NONE, PLAIN, SHIFT_BY_1}},
    {GENERAL, 0xd1, 0xd1, {SIZED, MODRM, NONE, PLAIN, SHIFT_BY_1}},
    {GENERAL, 0xd2, 0xd2, {LONG, MODRM, NONE, PLAIN, SHIFT_BY_CL}},
    {GENERAL, 0xd3, 0xd3, {SIZED, MODRM, NONE, PLAIN, SHIFT_BY_CL}},
    {GENERAL, 0xe8, 0xe8, {BARE, DISTANCE32, UNKNOWN, SJ_CODE_CALL, NO_GROUP}},
    {GENERAL, 0xe9, 0xe9, {BARE, DISTANCE32, UNKNOWN, SJ_CODE_JUMP, NO_GROUP}},
    {GENERAL, 0xeb, 0xeb, {BARE, DISTANCE8, UNKNOWN, SJ_CODE_JUMP, NO_GROUP}},
    {GENERAL, 0xf6, 0xf6, {LONG, MODRM, NONE, PLAIN, UNARY8}},
    {GENERAL, 0xf7, 0xf7, {SIZED, MODRM, NONE, PLAIN, UNARY}},
    {GENERAL, 0xfe, 0xfe, {LONG, MODRM, NONE, PLAIN, COUNT}},
    {GENERAL, 0xff, 0xff, {SIZED, MODRM, NONE, PLAIN, CALL}},
    {EXTENDED, 0x0b, 0x0b, {BARE, 0, UNKNOWN, SJ_CODE_STOP, NO_GROUP}}, /* ud2 */
    {EXTENDED, 0x10, 0x11, {FLOATS, MODRM, NONE, PLAIN, NO_GROUP}},     /* movups, movss */
    {EXTENDED, 0x12, 0x12, {LONG, MODRM, NONE, PLAIN, NO_GROUP}},       /* movlps */
    {EXTENDED, 0x14, 0x15, {SIZED, MODRM, NONE, PLAIN, NO_GROUP}},      /* unpcklps */
    {EXTENDED, 0x16, 0x16, {LONG, MODRM, NONE, PLAIN, NO_GROUP}},       /* movhps */
    {EXTENDED, 0x1f, 0x1f, {SIZED, MODRM, NONE, SJ_CODE_NOP, NO_GROUP}},
    {EXTENDED, 0x28, 0x29, {SIZED, MODRM, NONE, PLAIN, NO_GROUP}},        /* movaps */
    {EXTENDED, 0x2a, 0x2a, {SCALAR, MODRM, NONE, PLAIN, NO_GROUP}},       /* cvtsi2sd */
    {EXTENDED, 0x2c, 0x2d, {SCALAR, MODRM, NONE, PLAIN, NO_GROUP}},       /* cvttsd2si */
    {EXTENDED, 0x2e, 0x2f, {SIZED, MODRM, ALL, PLAIN, NO_GROUP}},         /* ucomiss */
    {EXTENDED, 0x51, 0x51, {FLOATS, MODRM, NONE, PLAIN, NO_GROUP}},       /* sqrtps */
    {EXTENDED, 0x54, 0x57, {SIZED, MODRM, NONE, PLAIN, NO_GROUP}},        /* andps, xorps */
    {EXTENDED, 0x58, 0x5a, {FLOATS, MODRM, NONE, PLAIN, NO_GROUP}},       /* addps, mulps */
    {EXTENDED, 0x5c, 0x5f, {FLOATS, MODRM, NONE, PLAIN, NO_GROUP}},       /* subps, divps */
    {EXTENDED, 0x60, 0x6e, {PACKED, MODRM, NONE, PLAIN, NO_GROUP}},       /* punpcklbw, movd */
    {EXTENDED, 0x6f, 0x6f, {PACKED | REP, MODRM, NONE, PLAIN, NO_GROUP}}, /* movdqa, movdqu */
    {EXTENDED, 0x70, 0x70, {PACKED | SCALAR, MODRM | BYTE, NONE, PLAIN, NO_GROUP}}, /* pshufd */
    {EXTENDED, 0x74, 0x76, {PACKED, MODRM, NONE, PLAIN, NO_GROUP}},                 /* pcmpeqb */
    {EXTENDED, 0x7e, 0x7f, {PACKED | REP, MODRM, NONE, PLAIN, NO_GROUP}}, /* movd, movdqa */
    {EXTENDED, 0xa3, 0xa3, {SIZED, MODRM, SJ_EFFECT_WRITES_CARRY, PLAIN, NO_GROUP}}, /* bt */
    {EXTENDED, 0xa4, 0xa4, {SIZED, MODRM | BYTE, NONE, PLAIN, NO_GROUP}},            /* shld */
    {EXTENDED, 0xac, 0xac, {SIZED, MODRM | BYTE, NONE, PLAIN, NO_GROUP}},            /* shrd */
    {EXTENDED, 0xaf, 0xaf, {SIZED, MODRM, PRODUCT, PLAIN, NO_GROUP}},                /* imul */
    {EXTENDED, 0xb6, 0xb7, {SIZED, MODRM, NONE, PLAIN, NO_GROUP}},                   /* movzx */
    {EXTENDED, 0xba, 0xba, {SIZED, MODRM | BYTE, NONE, PLAIN, BITS}},
    {EXTENDED, 0xbe, 0xbf, {SIZED, MODRM, NONE, PLAIN, NO_GROUP}},        /* movsx */
    {EXTENDED, 0xc6, 0xc6, {SIZED, MODRM | BYTE, NONE, PLAIN, NO_GROUP}}, /* shufps */
    {EXTENDED, 0xc8, 0xcf, {LONG, 0, NONE, PLAIN, NO_GROUP}},             /* bswap */
    {EXTENDED, 0xd1, 0xd6, {PACKED, MODRM, NONE, PLAIN, NO_GROUP}},       /* psrlw, movq */
    {EXTENDED, 0xd8, 0xdf, {PACKED, MODRM, NONE, PLAIN, NO_GROUP}},       /* psubusb, pand */
    {EXTENDED, 0xe1, 0xe5, {PACKED, MODRM, NONE, PLAIN, NO_GROUP}},       /* psraw, pmulhw */
    {EXTENDED, 0xe8, 0xef, {PACKED, MODRM, NONE, PLAIN, NO_GROUP}},       /* psubsb, por, pxor */
    {EXTENDED, 0xf1, 0xf6, {PACKED, MODRM, NONE, PLAIN, NO_GROUP}},       /* psllw, psadbw */
    {EXTENDED, 0xf8, 0xfe, {PACKED, MODRM, NONE, PLAIN, NO_GROUP}},       /* psubb, paddd */
    {ARITHMETIC, 0, 1, {SIZED, 0, ALL, PLAIN, NO_GROUP}},                 /* add, or */
    {ARITHMETIC, 2, 3, {SIZED, 0, SJ_EFFECT_CARRIES, PLAIN, NO_GROUP}},   /* adc, sbb */
    {ARITHMETIC, 4, 7, {SIZED, 0, ALL, PLAIN, NO_GROUP}},                 /* and, sub, xor, cmp */
    {SHIFT, 0, 1, {SIZED, 0, NONE, PLAIN, NO_GROUP}},                     /* rol, ror */
    {SHIFT, 4, 5, {SIZED, 0, SJ_EFFECT_KEEPS_OVERFLOW, PLAIN, NO_GROUP}}, /* shl, shr */
    {SHIFT, 7, 7, {SIZED, 0, SJ_EFFECT_KEEPS_OVERFLOW, PLAIN, NO_GROUP}}, /* sar */
    {SHIFT_BY_1, 0, 1, {SIZED, 0, NONE, PLAIN, NO_GROUP}},
    {SHIFT_BY_1, 4, 5, {SIZED, 0, ALL, PLAIN, NO_GROUP}},
    {SHIFT_BY_1, 7, 7, {SIZED, 0, ALL, PLAIN, NO_GROUP}},
    {SHIFT_BY_CL, 0, 1, {SIZED, 0, NONE, PLAIN, NO_GROUP}},
    {SHIFT_BY_CL, 4, 5, {SIZED, 0, NONE, PLAIN, NO_GROUP}},
    {SHIFT_BY_CL, 7, 7, {SIZED, 0, NONE, PLAIN, NO_GROUP}},
    {UNARY8, 0, 0, {SIZED, BYTE, ALL, PLAIN, NO_GROUP}},               /* test */
    {UNARY8, 2, 2, {SIZED, 0, NONE, PLAIN, NO_GROUP}},                 /* not */
    {UNARY8, 3, 3, {SIZED, 0, ALL, PLAIN, NO_GROUP}},                  /* neg */
    {UNARY8, 4, 5, {SIZED, 0, PRODUCT, PLAIN, NO_GROUP}},              /* mul, imul */
    {UNARY8, 6, 7, {SIZED, 0, NONE, PLAIN, NO_GROUP}},                 /* div, idiv */
    {UNARY, 0, 0, {SIZED, FULL, ALL, PLAIN, NO_GROUP}},                /* test */
    {UNARY, 2, 2, {SIZED, 0, NONE, PLAIN, NO_GROUP}},                  /* not */
    {UNARY, 3, 3, {SIZED, 0, ALL, PLAIN, NO_GROUP}},                   /* neg */
    {UNARY, 4, 5, {SIZED, 0, PRODUCT, PLAIN, NO_GROUP}},               /* mul, imul */
    {UNARY, 6, 7, {SIZED, 0, NONE, PLAIN, NO_GROUP}},                  /* div, idiv */
    {COUNT, 0, 1, {SIZED, 0, SJ_EFFECT_KEEPS_CARRY, PLAIN, NO_GROUP}}, /* inc, dec */
    {CALL, 0, 1, {SIZED, 0, SJ_EFFECT_KEEPS_CARRY, PLAIN, NO_GROUP}},
    {CALL, 2, 2, {LONG, 0, UNKNOWN, SJ_CODE_CALL_INDIRECT, NO_GROUP}},
    {CALL, 4, 4, {LONG, 0, UNKNOWN, SJ_CODE_JUMP_INDIRECT, NO_GROUP}},
    {CALL, 6, 6, {LONG, 0, NONE, PLAIN, NO_GROUP}}, /* push */
    {MOVE, 0, 0, {SIZED, 0, NONE, PLAIN, NO_GROUP}},
    {BITS, 4, 7, {SIZED, 0, SJ_EFFECT_WRITES_CARRY, PLAIN, NO_GROUP}}, /* bt, bts, btr, btc */
};

/* A modrm byte with the sib byte and the displacement that it asks for. */
static uint8_t operand_bytes(uint8_t modrm)
{
    const uint8_t mod = modrm >> 6;
    const uint8_t rm = modrm & 7;
    if (mod == REGISTER) {
        return 1;
    }
    const bool is_long = mod == 2 || (mod == 0 && rm == NO_BASE);
    const uint8_t displacement = is_long ? sizeof(int32_t) : mod;
    return (uint8_t)(1 + (rm == HAS_SIB) + displacement);
}

/* The eight operations that have opcodes of their own, too, and the conditions. */
static void fill_regular(sj_opcodes *opcodes)
{
    for (unsigned i = 0; i < 8; i++) {
        sj_opcode *eight = &opcodes->of[GENERAL + 8 * i];
        const uint8_t effect = opcodes->of[ARITHMETIC + i].effect;
        eight[0] = eight[2] = (sj_opcode){LONG, MODRM, effect, PLAIN, NO_GROUP};
        eight[1] = eight[3] = (sj_opcode){SIZED, MODRM, effect, PLAIN, NO_GROUP};
        eight[4] = (sj_opcode){LONG, BYTE, effect, PLAIN, NO_GROUP};
        eight[5] = (sj_opcode){SIZED, FULL, effect, PLAIN, NO_GROUP};
    }
    for (uint8_t i = 0; i < 16; i++) {
        const uint8_t effect = sj_x86_64_condition_effect(i);
        opcodes->of[GENERAL + 0x70 + i] =
            (sj_opcode){BARE, DISTANCE8, effect, SJ_CODE_JUMP_IF, NO_GROUP};
        opcodes->of[EXTENDED + 0x40 + i] = (sj_opcode){SIZED, MODRM, effect, PLAIN, NO_GROUP};
        opcodes->of[EXTENDED + 0x80 + i] =
            (sj_opcode){BARE, DISTANCE32, effect, SJ_CODE_JUMP_IF, NO_GROUP};
        opcodes->of[EXTENDED + 0x90 + i] = (sj_opcode){LONG, MODRM, effect, PLAIN, NO_GROUP};
    }
}

/* An opcode of a group gets members of its own, with what it says of all of them. */
static void fill_members(sj_opcodes *opcodes, sj_opcode *opcode, unsigned first)
{
    for (unsigned reg = 0; reg < 8; reg++) {
        sj_opcode *member = &opcodes->of[first + reg];
        *member = opcodes->of[opcode->group + reg];
        member->prefixes &= opcode->prefixes;
        member->operands |= opcode->operands;
    }
    opcode->group = (uint16_t)first;
}

void sj_opcodes_fill(sj_opcodes *opcodes)
{
    *opcodes = (sj_opcodes){0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned k = rows[i].first; k <= rows[i].last; k++) {
            opcodes->of[rows[i].where + k] = rows[i].opcode;
        }
    }
    fill_regular(opcodes);
    unsigned next = GROUPS_END;
    for (unsigned i = 0; i < ARITHMETIC; i++) {
        if (opcodes->of[i].group != NO_GROUP && next + 8 <= SJ_OPCODES_COUNT) {
            fill_members(opcodes, &opcodes->of[i], next);
            next += 8;
        }
    }
    for (unsigned modrm = 0; modrm < 256; modrm++) {
        opcodes->operand_bytes[modrm] = operand_bytes((uint8_t)modrm);
    }
}

/* An instruction that is being read; there are WINDOW_BYTES bytes. */
typedef struct reading {
    const uint8_t *bytes;
    unsigned used;
    uint8_t prefix; /* BARE, WORD, REP or REPNE */
    uint8_t rex;    /* 0: none */
} reading;

static inline uint64_t take(reading *state, unsigned size)
{
    uint64_t value;
    memcpy(&value, state->bytes + state->used, sizeof(value));
    state->used += size;
    return size < sizeof(value) ? value & ((UINT64_C(1) << 8 * size) - 1) : value;
}

/* All but rex, which comes last. */
static void take_prefixes(reading *state)
{
    uint8_t byte = state->bytes[0];
    if (byte == PREFIX_REP || byte == PREFIX_REPNE) {
        state->prefix = byte == PREFIX_REP ? REP : REPNE;
        state->used = 1;
        return;
    }
    while (state->used < MOST_PREFIXES &&
           (byte == PREFIX_WORD || byte == PREFIX_CS || byte == PREFIX_FS)) {
        state->prefix = byte == PREFIX_WORD ? WORD : state->prefix;
        byte = state->bytes[++state->used];
    }
}

/* NULL: it is not in the table. */
static const sj_opcode *take_opcode(const sj_opcodes *opcodes, reading *state)
{
    const sj_opcode *map = &opcodes->of[GENERAL];
    uint8_t byte = state->bytes[state->used++];
    state->rex = 0;
    if ((byte & 0xf0) == 0x40) {
        state->rex = byte;
        byte = state->bytes[state->used++];
    }
    if (byte == ESCAPE) {
        map = &opcodes->of[EXTENDED];
        byte = state->bytes[state->used++];
    }
    const sj_opcode *opcode = &map[byte];
    if (opcode->group != NO_GROUP) {
        opcode = &opcodes->of[opcode->group + (state->bytes[state->used] >> 3 & 7)];
    }
    const uint8_t wanted = state->prefix | (state->rex != 0 ? REX : 0);
    return (opcode->prefixes & wanted) == wanted ? opcode : NULL;
}

/* Most have no prefix but rex. */
static const sj_opcode *take_any_opcode(const sj_opcodes *opcodes, reading *state)
{
    state->used = 0;
    state->prefix = BARE;
    const sj_opcode *opcode = take_opcode(opcodes, state);
    if (opcode == NULL) {
        state->used = 0;
        take_prefixes(state);
        opcode = state->used > 0 ? take_opcode(opcodes, state) : NULL;
    }
    return opcode;
}

static sj_operand read_operand(const reading *state)
{
    const uint8_t *bytes = state->bytes + state->used;
    sj_operand operand = {.mod = bytes[0] >> 6, .rm = bytes[0] & 7};
    operand.field = (uint8_t)(state->used + 1);
    if (operand.rm == HAS_SIB) {
        operand.scale = bytes[1] >> 6;
        operand.base = bytes[1] & 7;
        operand.is_high_base = (state->rex & 1) != 0;
        operand.field++;
    }
    memcpy(&operand.displacement, state->bytes + operand.field, sizeof(operand.displacement));
    return operand;
}

/* Goes past the modrm byte and what belongs to it; false when it may not name a register. */
static bool take_operand(const sj_opcodes *opcodes, const sj_opcode *opcode, reading *state,
                         sj_code *code)
{
    const uint8_t modrm = state->bytes[state->used];
    const bool is_register = modrm >> 6 == REGISTER;
    const bool is_address = (opcode->operands & MEMORY) != 0;
    const bool has_no_base =
        (modrm & 0xc7) == HAS_SIB && (state->bytes[state->used + 1] & 7) == NO_BASE;
    if ((modrm & 0xc7) == NO_BASE || (opcode->kind != PLAIN && !is_register)) {
        const sj_operand operand = read_operand(state);
        sj_x86_64_note_operand(&operand, is_address, code);
    }
    state->used += opcodes->operand_bytes[modrm] + (has_no_base ? sizeof(int32_t) : 0);
    return !is_address || !is_register;
}

static unsigned immediate_bytes(const sj_opcode *opcode, const reading *state)
{
    const bool is_long = (state->rex & BITS64) != 0;
    if ((opcode->operands & BYTE) != 0) {
        return 1;
    }
    if ((opcode->operands & WIDE) != 0 && is_long) {
        return 8;
    }
    if ((opcode->operands & (FULL | WIDE)) != 0) {
        return state->prefix == WORD && !is_long ? 2 : 4;
    }
    return 0;
}

static void take_immediate(const sj_opcode *opcode, reading *state, sj_code *code,
                           uint64_t *immediate)
{
    const uint8_t count_mask = (state->rex & BITS64) != 0 ? 0x3f : 0x1f;
    const unsigned bytes = immediate_bytes(opcode, state);
    const uint64_t value = take(state, bytes);
    if (bytes >= sizeof(int32_t)) {
        *immediate = bytes == sizeof(int32_t) ? (uint64_t)(int32_t)value : value;
    }
    /* Shifts by none leave the flags as they were. */
    if (opcode->effect == SJ_EFFECT_KEEPS_OVERFLOW && (value & count_mask) == 0) {
        code->flag_effect = SJ_EFFECT_NONE;
    }
}

static bool decode(const sj_opcodes *opcodes, reading *state, sj_code *code, uint64_t *immediate)
{
    const sj_opcode *opcode = take_any_opcode(opcodes, state);
    if (opcode == NULL) {
        return false;
    }
    code->kind = opcode->kind;
    if ((opcode->operands & MODRM) != 0 && !take_operand(opcodes, opcode, state, code)) {
        return false;
    }
    code->flag_effect = opcode->effect & 15;
    if ((opcode->operands & (BYTE | FULL | WIDE)) != 0) {
        take_immediate(opcode, state, code, immediate);
    } else if ((opcode->operands & DISTANCE8) != 0) {
        code->value = (int8_t)take(state, 1);
        code->flags = SJ_CODE_BRANCH;
    } else if ((opcode->operands & DISTANCE32) != 0) {
        code->value = (int32_t)take(state, 4);
        code->flags = SJ_CODE_BRANCH;
    }
    code->length = (uint8_t)state->used;
    return true;
}

bool sj_opcodes_decode(const sj_opcodes *opcodes, const uint8_t *bytes, size_t size, uint32_t at,
                       sj_code *code, uint64_t *immediate)
{
    uint8_t room[WINDOW_BYTES];
    if (size < WINDOW_BYTES) {
        memset(room, 0, sizeof(room));
        memcpy(room, bytes, size);
        bytes = room;
    }
    reading state = {.bytes = bytes};
    *code = (sj_code){.at = at};
    *immediate = 0;
    return decode(opcodes, &state, code, immediate) && code->length <= size &&
           code->length <= MOST_BYTES;
}
