#include "agent/runtimes/jvm/code_layout.h"

#include "agent/runtimes/jvm/bytecode.h"

#include <stdlib.h>

/* Searches a constructor for its call of this(...) or super(...): the first call of <init> that
 * does not initialise an object of an earlier `new`. */
typedef struct constructor_search {
    bool is_constructor;
    uint32_t uninitialised; /* Number of objects of `new` that are not initialised yet. */
} constructor_search;

static bool calls_other_constructor(constructor_search *search, const sj_class_file *file,
                                    const sj_bytecode *instruction, sj_slice code)
{
    if (instruction->opcode == SJ_BYTECODE_NEW) {
        search->uninitialised++;
    }
    if (instruction->opcode != SJ_BYTECODE_INVOKESPECIAL) {
        return false;
    }
    const uint8_t *operand = code.data + instruction->at + 1;
    const uint16_t index = (uint16_t)(operand[0] << 8 | operand[1]);
    if (!sj_class_text_is(sj_class_reference_name(file, index), "<init>")) {
        return false;
    }
    if (search->uninitialised > 0) {
        search->uninitialised--;
        return false;
    }
    return true;
}

/* Returns the size of an instruction at its new offset. Only the padding of a switch differs. */
static uint32_t size_at(const sj_bytecode *instruction, uint32_t place)
{
    if (instruction->kind != SJ_BYTECODE_SWITCH) {
        return instruction->size;
    }
    return instruction->size - sj_bytecode_padding(instruction->at) + sj_bytecode_padding(place);
}

/* Computes the new offset of each instruction. */
static sj_status compute_offsets(const sj_class_file *file, constructor_search *search,
                                 sj_code_layout *layout)
{
    sj_bytecode instruction;
    uint32_t place = layout->growth.entry;
    uint32_t at = 0;
    bool is_covered = !search->is_constructor;
    if (place >= SJ_CODE_MAX_BYTES) {
        return SJ_ELIMIT;
    }
    layout->covered_from = (uint16_t)place;
    for (; at < layout->code.size; at += instruction.size) {
        SJ_TRY(sj_bytecode_read(layout->code, at, &instruction));
        if (place >= SJ_CODE_MAX_BYTES) {
            return SJ_ELIMIT;
        }
        layout->new_offset[at] = (uint16_t)place;
        place += sj_code_layout_line(layout, at);
        place += instruction.kind == SJ_BYTECODE_RETURN ? layout->growth.exit : 0;
        place += size_at(&instruction, place);
        if (!is_covered && calls_other_constructor(search, file, &instruction, layout->code)) {
            is_covered = true;
            layout->covered_from = (uint16_t)place;
        }
    }
    if (place + layout->growth.handler > SJ_CODE_MAX_BYTES) {
        return SJ_ELIMIT;
    }
    layout->new_offset[at] = (uint16_t)place;
    layout->has_handler = is_covered;
    return SJ_OK;
}

sj_status sj_code_layout_make(const sj_class_file *file, const sj_class_method *method,
                              sj_slice code, const sj_code_growth *growth, sj_code_layout *layout)
{
    *layout = (sj_code_layout){.code = code, .growth = *growth};
    if (code.size == 0) {
        return SJ_ECORRUPT;
    }
    if (code.size > SJ_CODE_MAX_BYTES) {
        return SJ_ELIMIT;
    }
    layout->new_offset = malloc((code.size + 1) * sizeof(*layout->new_offset));
    if (layout->new_offset == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i <= code.size; i++) {
        layout->new_offset[i] = SJ_CODE_NOWHERE;
    }
    constructor_search search = {.is_constructor = sj_class_text_is(method->name, "<init>")};
    return compute_offsets(file, &search, layout);
}

void sj_code_layout_deinit(sj_code_layout *layout)
{
    free(layout->new_offset);
    layout->new_offset = NULL;
}
