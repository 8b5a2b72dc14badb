#include "agent/planner/arch/aarch64/aarch64.h"

#include "agent/abi/aarch64_words.h"
#include "proto/base/late_library.h"

#include <capstone/capstone.h>
#include <stdlib.h>

/* Design notes. Every instruction is one word. The planner recognizes the few kinds that it needs
 * by their encodings (aarch64_words.h). Capstone decides whether any other word is an instruction.
 * Capstone may be older than the program. So an unknown word counts as an instruction of a later
 * version if control falls through to it, and if its group has no branches and no pc-relative
 * operands. */

enum {
    WORD_NOP = 0xd503201f,
    BRANCH_OPERATION_SHIFT = 21,
    /* Operations of branches through registers. Bit 3 is set if the address is authenticated with a
     * modifier in a register. */
    OPERATION_BR = 0,
    OPERATION_BLR = 1,
    OPERATION_RET = 2,
    OPERATION_BRAA = 8,
    OPERATION_BLRAA = 9,
    EPILOGUE_REGISTER = SJ_WORD_LINK_REGISTER
};

/* Capstone is loaded on demand: its 77,000 relocations would take 3 ms at every start of a command
 * for another machine. */
typedef struct capstone_functions {
    __typeof__(cs_open) *open;
    __typeof__(cs_close) *close;
    __typeof__(cs_malloc) *malloc;
    __typeof__(cs_free) *free;
    __typeof__(cs_disasm_iter) *disassemble;
} capstone_functions;

#define TEXT_OF(number) TEXT(number)
#define TEXT(number) #number

/* State of a decoder. */
typedef struct disassembler {
    capstone_functions capstone;
    csh handle;
    cs_insn *instruction; /* space for one instruction */
} disassembler;

static bool load_capstone(capstone_functions *functions)
{
    static const sj_late_symbol symbols[] = {
        {"cs_open", offsetof(capstone_functions, open)},
        {"cs_close", offsetof(capstone_functions, close)},
        {"cs_malloc", offsetof(capstone_functions, malloc)},
        {"cs_free", offsetof(capstone_functions, free)},
        {"cs_disasm_iter", offsetof(capstone_functions, disassemble)}};
    sj_error error = {0};
    return sj_late_library_load("libcapstone.so." TEXT_OF(CS_API_MAJOR), symbols,
                                sizeof(symbols) / sizeof(symbols[0]), functions, &error) == SJ_OK;
}

sj_status sj_aarch64_open_decoder(sj_decoder *decoder)
{
    disassembler *created = calloc(1, sizeof(*created));
    if (created != NULL && !load_capstone(&created->capstone)) {
        free(created);
        return SJ_ENOTFOUND;
    }
    if (created == NULL || created->capstone.open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN,
                                                  &created->handle) != CS_ERR_OK) {
        free(created);
        return SJ_ENOMEM;
    }
    created->instruction = created->capstone.malloc(created->handle);
    if (created->instruction == NULL) {
        created->capstone.close(&created->handle);
        free(created);
        return SJ_ENOMEM;
    }
    decoder->state = created;
    return SJ_OK;
}

void sj_aarch64_close_decoder(sj_decoder *decoder)
{
    disassembler *state = decoder->state;
    state->capstone.free(state->instruction, 1);
    state->capstone.close(&state->handle);
    free(state);
}

static bool is_instruction(const sj_decoder *decoder, const uint8_t *bytes)
{
    size_t size = SJ_WORD_BYTES;
    uint64_t address = 0;
    const disassembler *state = decoder->state;
    return state->capstone.disassemble(state->handle, &bytes, &size, &address, state->instruction);
}

/* Returns the kind of a branch through a register: br, blr, ret and their authenticating forms.
 * Only the kernel uses the other operations. */
static sj_code_kind register_branch_kind(uint32_t word)
{
    const uint32_t reg = word >> 5 & 31;
    const bool is_authenticated = (word >> 11 & 1) != 0;
    switch (word >> BRANCH_OPERATION_SHIFT & 15) {
    case OPERATION_BR:
    case OPERATION_BRAA:
        return SJ_CODE_JUMP_INDIRECT;
    case OPERATION_BLR:
    case OPERATION_BLRAA:
        /* A moved call must set the link register before it reads its target. */
        return reg == SJ_WORD_LINK_REGISTER || (word & 31) == SJ_WORD_LINK_REGISTER
                   ? SJ_CODE_PINNED
                   : SJ_CODE_CALL_INDIRECT;
    case OPERATION_RET:
        /* A return through another register does not return from this function's call. */
        return is_authenticated || reg == SJ_WORD_LINK_REGISTER ? SJ_CODE_RETURN : SJ_CODE_PINNED;
    default:
        return SJ_CODE_PINNED;
    }
}

/* True for udf, brk and hlt, after which control never continues. */
static bool is_stop(uint32_t word)
{
    return (word & UINT32_C(0xffff0000)) == 0 ||
           (word & UINT32_C(0xffe0001f)) == UINT32_C(0xd4200000) ||
           (word & UINT32_C(0xffe0001f)) == UINT32_C(0xd4400000);
}

/* Returns the kind of an instruction without a pc-relative operand that can be moved. */
static sj_code_kind other_kind(uint32_t word)
{
    if (word == (uint32_t)WORD_NOP) {
        return SJ_CODE_NOP;
    }
    if (is_stop(word)) {
        return SJ_CODE_STOP;
    }
    if ((word & UINT32_C(0xfe000000)) == UINT32_C(0xd6000000)) {
        return register_branch_kind(word);
    }
    return sj_word_is_fixed_literal(word) ? SJ_CODE_PINNED : SJ_CODE_PLAIN;
}

/* Decodes an instruction whose operand is relative to the program counter. */
static void decode_relative(const sj_decoder *decoder, uint32_t word, sj_word_class class,
                            sj_code *code)
{
    int64_t value = sj_word_distance(word) - SJ_WORD_BYTES;
    code->flags = SJ_CODE_BRANCH;
    switch (class) {
    case SJ_WORD_B:
        code->kind = SJ_CODE_JUMP;
        break;
    case SJ_WORD_BL:
        code->kind = SJ_CODE_CALL;
        break;
    case SJ_WORD_ADRP:
        /* The operand is relative to the instruction's page. */
        value -= (int64_t)((decoder->text_low + code->at) & ((1 << SJ_WORD_PAGE_BITS) - 1));
        code->kind = SJ_CODE_PLAIN;
        code->flags = SJ_CODE_RELATIVE;
        break;
    case SJ_WORD_ADR:
    case SJ_WORD_LITERAL:
        code->kind = SJ_CODE_PLAIN;
        code->flags = SJ_CODE_RELATIVE;
        break;
    default:
        code->kind = SJ_CODE_JUMP_IF;
        break;
    }
    code->value = (int32_t)value;
    if (code->value != value) {
        code->kind = SJ_CODE_PINNED;
        code->flags = 0;
        code->value = 0;
    }
}

void sj_aarch64_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                       sj_code *code, uint64_t *immediate)
{
    *immediate = 0;
    *code = (sj_code){.at = at, .length = 1, .kind = SJ_CODE_BAD};
    if (size < SJ_WORD_BYTES || (decoder->text_low + at) % SJ_WORD_BYTES != 0) {
        return;
    }
    const uint32_t word = sj_word_read(bytes);
    const sj_word_class class = sj_word_class_of(word);
    code->length = SJ_WORD_BYTES;
    if (class != SJ_WORD_PLAIN) {
        decode_relative(decoder, word, class, code);
        return;
    }
    code->kind = (uint8_t)other_kind(word);
    if (code->kind == SJ_CODE_PLAIN && !is_instruction(decoder, bytes)) {
        code->kind = SJ_CODE_BAD;
    }
}

uint32_t sj_aarch64_entry(const sj_module *module, const sj_code_range *range)
{
    /* Landing instructions: the four forms of bti, and paciasp and pacibsp. */
    static const uint32_t marks[] = {0xd503241f, 0xd503245f, 0xd503249f,
                                     0xd50324df, 0xd503233f, 0xd503237f};
    uint32_t entry = range->start;
    while (entry + 2 * SJ_WORD_BYTES <= range->start + range->size) {
        const uint32_t word = sj_word_read(module->text + entry);
        bool is_mark = false;
        for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
            is_mark = is_mark || word == marks[i];
        }
        if (!is_mark) {
            break;
        }
        entry += SJ_WORD_BYTES;
    }
    return entry;
}

/* Steps of an epilogue. */
typedef enum epilogue_step {
    STEP_OTHER,
    STEP_LOAD_LINK, /* loads the return address into the link register */
    STEP_POP_LINK,  /* loads the return address and removes the frame */
    STEP_POP        /* removes the frame */
} epilogue_step;

/* Returns which step of an epilogue an instruction is. */
static epilogue_step step_of(uint32_t word)
{
    const bool is_stack = (word >> 5 & 31) == 31;
    const bool pair_has_link =
        is_stack && ((word & 31) == EPILOGUE_REGISTER || (word >> 10 & 31) == EPILOGUE_REGISTER);
    const bool one_is_link = is_stack && (word & 31) == EPILOGUE_REGISTER;
    switch (word & UINT32_C(0xffc00000)) {
    case UINT32_C(0xa8c00000): /* ldp, post-indexed */
        return pair_has_link ? STEP_POP_LINK : STEP_OTHER;
    case UINT32_C(0xa9400000): /* ldp */
        return pair_has_link ? STEP_LOAD_LINK : STEP_OTHER;
    case UINT32_C(0xf9400000): /* ldr */
        return one_is_link ? STEP_LOAD_LINK : STEP_OTHER;
    case UINT32_C(0x91000000): /* add */
    case UINT32_C(0x91400000):
        return is_stack && (word & 31) == 31 ? STEP_POP : STEP_OTHER;
    default:
        break;
    }
    const bool is_post_load = (word & UINT32_C(0xffe00c00)) == UINT32_C(0xf8400400);
    return is_post_load && one_is_link ? STEP_POP_LINK : STEP_OTHER;
}

/* Sets SJ_CODE_ENTRY_FRAME after epilogues. LLVM before 15 does not describe epilogues in unwind
 * tables. There the instructions of the epilogue show that the stack is as at the entry. At a
 * return, the calling convention shows it. */
static void find_entry_frames(sj_module *module, const sj_code_range *range)
{
    bool has_link = false;
    bool is_popped = false;
    for (uint32_t i = 0; i < range->code_count; i++) {
        sj_code *code = &module->codes[range->first_code + i];
        if (sj_bit_get(module->targets, code->at)) {
            has_link = false;
            is_popped = false;
        }
        if (is_popped || code->kind == SJ_CODE_RETURN) {
            code->flags |= SJ_CODE_ENTRY_FRAME;
        }
        const epilogue_step step = code->length == SJ_WORD_BYTES && code->kind == SJ_CODE_PLAIN
                                       ? step_of(sj_word_read(module->text + code->at))
                                       : STEP_OTHER;
        has_link = has_link || step == STEP_LOAD_LINK || step == STEP_POP_LINK;
        is_popped = is_popped || step == STEP_POP_LINK || (step == STEP_POP && has_link);
        if (sj_code_is_final(code) || code->kind == SJ_CODE_CALL ||
            code->kind == SJ_CODE_CALL_INDIRECT) {
            has_link = false;
            is_popped = false;
        }
    }
}

/* Marks the addresses that adr, or adrp with an add after it, computes. Does not mark the base of a
 * switch, which need not be a jump target. */
static void mark_addresses(sj_module *module, const sj_code_range *range)
{
    enum { LOOK_ON = 8 };
    const sj_code *codes = module->codes + range->first_code;
    for (uint32_t i = 0; i < range->code_count; i++) {
        if ((codes[i].flags & SJ_CODE_RELATIVE) == 0) {
            continue;
        }
        const uint32_t word = sj_word_read(module->text + codes[i].at);
        const sj_word_class class = sj_word_class_of(word);
        bool is_base = false;
        for (uint32_t k = i + 1; k < range->code_count && k <= i + LOOK_ON; k++) {
            const uint32_t next =
                codes[k].length == SJ_WORD_BYTES ? sj_word_read(module->text + codes[k].at) : 0;
            const bool uses_result = (next >> 5 & 31) == (word & 31);
            if (class == SJ_WORD_ADRP && uses_result &&
                (next & UINT32_C(0xffc00000)) == UINT32_C(0x91000000)) {
                sj_mark(module, sj_code_target(&codes[i]) + (next >> 10 & 0xfff), true);
            }
            /* add of a register, shifted or extended */
            is_base =
                is_base || (uses_result && (next & UINT32_C(0xff000000)) == UINT32_C(0x8b000000));
        }
        if (class == SJ_WORD_ADR && !is_base) {
            sj_mark(module, sj_code_target(&codes[i]), true);
        }
    }
}

/* True if a later version of the architecture may define instructions in the word's group (bits 25
 * to 28). False for reserved groups, and for the group of branches and system instructions. */
static bool may_be_later_version(uint32_t word)
{
    const uint32_t group = word >> 25 & 15;
    return group != 0 && group != 1 && group != 3 && (group & 14) != 10;
}

/* Accepts unknown words that may be instructions of a later version. Sets is_undecodable if others
 * remain. */
static void decide_unknown_words(sj_module *module, sj_code_range *range)
{
    bool falls_through = false;
    range->is_undecodable = false;
    for (uint32_t i = 0; i < range->code_count; i++) {
        sj_code *code = &module->codes[range->first_code + i];
        if (code->kind == SJ_CODE_BAD && falls_through && code->length == SJ_WORD_BYTES &&
            may_be_later_version(sj_word_read(module->text + code->at))) {
            code->kind = SJ_CODE_PLAIN;
        }
        range->is_undecodable = range->is_undecodable || code->kind == SJ_CODE_BAD;
        falls_through = !sj_code_is_final(code);
    }
}

void sj_aarch64_finish_range(sj_module *module, sj_code_range *range)
{
    decide_unknown_words(module, range);
    mark_addresses(module, range);
    find_entry_frames(module, range);
}
