#include "agent/planner/exits.h"

#include "agent/planner/machine.h"
#include "agent/planner/targets.h"

/* Design notes. The unwind rule decides: where a call ends by a jump, the stack is as it was at the
 * entry (CFA = rsp + 8). A jump with another frame stays in the function, whatever it looks like.
 * With the entry's frame, an indirect jump is a tail call unless it is the end of a switch (a sum
 * of a table's start and an entry) or the function has labels whose address is taken, where nothing
 * tells a computed goto from a tail call.
 *
 * A jump to the own head with the entry's frame is a self tail call when the function sets up a
 * frame elsewhere, else a loop that begins at the first instruction. */

enum { SWITCH_LOOK_BACK = 12, ENDBR_BYTES = 4, NO_REGISTER = 0xff, LONG_JUMP_IF_BYTES = 6 };

uint32_t sj_x86_64_head(const sj_module *module, const sj_piece *piece)
{
    static const uint8_t endbr64[ENDBR_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
    const bool has_mark = piece->size >= ENDBR_BYTES &&
                          memcmp(module->text + piece->start, endbr64, sizeof(endbr64)) == 0;
    return piece->start + (has_mark ? ENDBR_BYTES : 0);
}

const sj_code *sj_any_code_at(const sj_module *module, int64_t offset)
{
    if (!sj_module_holds(module, offset) || !sj_bit_get(module->code_starts, (uint32_t)offset)) {
        return NULL;
    }
    const uint32_t word = (uint32_t)offset >> 6;
    const uint64_t before = module->code_starts[word] & ((UINT64_C(1) << (offset & 63)) - 1);
    return &module->codes[module->first_codes[word] + (uint32_t)__builtin_popcountll(before)];
}

const sj_code *sj_code_at(const sj_module *module, int64_t offset)
{
    const sj_code *code = sj_any_code_at(module, offset);
    return code != NULL && (code->flags & SJ_CODE_LOOSE) == 0 ? code : NULL;
}

uint8_t sj_jump_condition(const sj_module *module, const sj_code *jump)
{
    const uint8_t *end = module->text + sj_code_end(jump);
    /* The long form ends in 0F 8x and four bytes, the short one in 7x and one. */
    const bool is_long = jump->length >= LONG_JUMP_IF_BYTES && end[-LONG_JUMP_IF_BYTES] == 0x0f;
    return is_long ? end[1 - LONG_JUMP_IF_BYTES] & 0x0f : end[-2] & 0x0f;
}

static uint8_t jump_register(const uint8_t *bytes, uint8_t length)
{
    const uint8_t modrm = bytes[length - 1];
    const bool is_register = length >= 2 && bytes[length - 2] == 0xff && (modrm & 0xc0) == 0xc0;
    const bool is_high = length >= 3 && (bytes[length - 3] & 0xf1) == 0x41;
    return is_register ? (uint8_t)((modrm & 7) + (is_high ? 8 : 0)) : NO_REGISTER;
}

/* `mov memory, reg` of 64 bits; not from the stack, where a sum may have been spilled to. */
static bool is_load_of(const uint8_t *bytes, uint8_t length, uint8_t wanted)
{
    const uint8_t modrm = bytes[2];
    const uint8_t reg = (uint8_t)((modrm >> 3 & 7) | (bytes[0] & 4) << 1);
    const bool is_stack = (modrm & 7) == 4 && length > 3 && (bytes[3] & 7) == 4;
    return bytes[1] == 0x8b && (modrm & 0xc0) != 0xc0 && !is_stack && reg == wanted;
}

/* Looks back from `jmp *reg` for `add other, reg` and for the `movslq (base,index,4)` before it. A
 * load of the whole register ends the search: what was added before it is another value. */
sj_switch_shape sj_x86_64_find_switch(const sj_module *module, const sj_piece *piece,
                                      const sj_code *jump)
{
    sj_switch_shape shape = {0};
    const uint8_t wanted = jump_register(module->text + jump->at, jump->length);
    const sj_code *first = module->codes + piece->first_code;
    uint8_t left = NO_REGISTER;
    uint8_t right = NO_REGISTER;
    for (const sj_code *code = jump; code > first && jump - code < SWITCH_LOOK_BACK;) {
        code--;
        const uint8_t *bytes = module->text + code->at;
        const uint8_t rex = bytes[0];
        if (code->kind != SJ_CODE_PLAIN && code->kind != SJ_CODE_NOP) {
            break;
        }
        if (code->length < 3 || (rex & 0xf8) != 0x48) {
            continue;
        }
        const uint8_t modrm = bytes[2];
        const uint8_t reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
        const uint8_t rm = (uint8_t)((modrm & 7) | (rex & 1) << 3);
        const bool is_register = (modrm & 0xc0) == 0xc0;
        if (!shape.has_sum && is_load_of(bytes, code->length, wanted)) {
            shape.is_indexed = (modrm & 7) == 4 && bytes[3] >> 6 == 3;
            break;
        }
        if (!shape.has_sum && (bytes[1] == 0x01 || bytes[1] == 0x03)) {
            const uint8_t result = bytes[1] == 0x01 ? rm : reg;
            if (result == wanted && (is_register || bytes[1] == 0x03)) {
                shape.has_sum = true;
                left = is_register ? reg : NO_REGISTER;
                right = is_register ? rm : NO_REGISTER;
            }
        } else if (shape.has_sum && bytes[1] == 0x63 && (modrm & 7) == 4 && code->length >= 4 &&
                   (modrm & 0xc0) != 0xc0) {
            const uint8_t base = (uint8_t)((bytes[3] & 7) | (rex & 1) << 3);
            shape.is_other_base = left != NO_REGISTER && base != left && base != right;
            break;
        }
    }
    return shape;
}

/* Entries of a jump table are labels, too, for a jump that may take its target from an array. */
static bool has_labels(const sj_module *module, const sj_piece *function, bool with_entries)
{
    bool found = function->has_labels || (with_entries && function->has_entries);
    for (uint32_t i = function->next_part; i != SJ_PIECE_NONE && !found;
         i = module->pieces[i].next_part) {
        const sj_piece *part = &module->pieces[i];
        found = part->has_labels || (with_entries && part->has_entries);
    }
    return found;
}

static bool is_own(const sj_module *module, const sj_piece *piece, int64_t target)
{
    const uint32_t at = sj_module_piece_at(module, target);
    return at != SJ_PIECE_NONE && module->pieces[at].parent == piece->parent;
}

static bool leads_inside_table(const sj_module *module, const sj_piece *piece, const sj_code *code)
{
    const sj_slice bytes = sj_elf_at(&module->elf, (uint64_t)(int64_t)code->value);
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    const uint64_t first = sj_read_u64(&reader);
    return !reader.bad && is_own(module, piece, (int64_t)(first - module->text_low));
}

static sj_exit judge_indirect(const sj_module *module, const sj_piece *piece, const sj_code *code)
{
    const sj_piece *function = &module->pieces[piece->parent];
    const bool is_entry_frame = (code->flags & SJ_CODE_ENTRY_FRAME) != 0;
    if ((code->flags & SJ_CODE_TABLE) != 0) {
        if (leads_inside_table(module, piece, code)) {
            return SJ_EXIT_NOT;
        }
        return is_entry_frame ? SJ_EXIT_LEAVES : SJ_EXIT_UNKNOWN;
    }
    if ((code->flags & SJ_CODE_RELATIVE) != 0) {
        return is_entry_frame ? SJ_EXIT_LEAVES : SJ_EXIT_UNKNOWN;
    }
    bool may_be_entry = true;
    if ((code->flags & SJ_CODE_MEMORY) == 0) {
        const sj_switch_shape shape = module->machine->find_switch(module, piece, code);
        if (shape.has_sum) {
            const bool is_known = function->table_count > 0 && !shape.is_other_base;
            return is_known ? SJ_EXIT_NOT : SJ_EXIT_UNKNOWN;
        }
        may_be_entry = shape.is_indexed || !is_entry_frame;
    }
    const bool has_own_labels = has_labels(module, function, may_be_entry);
    if (is_entry_frame) {
        return has_own_labels ? SJ_EXIT_UNKNOWN : SJ_EXIT_LEAVES;
    }
    return has_own_labels || function->table_count > 0 ? SJ_EXIT_NOT : SJ_EXIT_UNKNOWN;
}

/* The distance of the frame from the stack pointer; false when it is not told that way. */
static bool frame_at(const sj_module *module, int64_t offset, int32_t *distance)
{
    const uint64_t address = sj_module_address(module, offset);
    const uint32_t piece = sj_module_piece_at(module, offset);
    const sj_frame_range *range = sj_unwind_find_near(
        &module->unwind, piece != SJ_PIECE_NONE ? module->pieces[piece].frame : NULL, address);
    if (range == NULL) {
        return false;
    }
    const sj_frame_row *row = sj_unwind_row(&module->unwind, range, address);
    *distance = row->distance;
    return row->is_told;
}

bool sj_is_never_taken(const sj_module *module, const sj_code *jump)
{
    int32_t left;
    int32_t expected;
    return frame_at(module, jump->at, &left) && frame_at(module, sj_code_target(jump), &expected) &&
           left != expected;
}

static sj_exit judge_direct(const sj_module *module, const sj_piece *piece, const sj_code *code)
{
    const sj_piece *function = &module->pieces[piece->parent];
    const int64_t target = sj_code_target(code);
    const bool is_entry_frame = (code->flags & SJ_CODE_ENTRY_FRAME) != 0;
    if (target == function->start || target == (int64_t)function->head) {
        return is_entry_frame && function->has_frame && code->kind != SJ_CODE_PINNED
                   ? SJ_EXIT_LEAVES
                   : SJ_EXIT_TO_HEAD;
    }
    if ((target >= piece->start && target < (int64_t)piece->start + piece->size) ||
        is_own(module, piece, target)) {
        return SJ_EXIT_NOT;
    }
    if (target == (int64_t)piece->start + piece->size && !is_entry_frame) {
        return SJ_EXIT_NOT; /* clang's way, at -O0, of saying that the jump is never reached */
    }
    if (is_entry_frame && code->kind != SJ_CODE_PINNED) {
        return SJ_EXIT_LEAVES;
    }
    return sj_is_never_taken(module, code) ? SJ_EXIT_NOT : SJ_EXIT_UNKNOWN;
}

sj_exit sj_exit_of(const sj_module *module, const sj_piece *piece, const sj_code *code)
{
    switch (code->kind) {
    case SJ_CODE_RETURN:
        return (code->flags & SJ_CODE_ENTRY_FRAME) != 0 ? SJ_EXIT_LEAVES : SJ_EXIT_UNKNOWN;
    case SJ_CODE_JUMP:
    case SJ_CODE_JUMP_IF:
        return judge_direct(module, piece, code);
    case SJ_CODE_PINNED:
        if ((code->flags & SJ_CODE_BRANCH) != 0) {
            return judge_direct(module, piece, code);
        }
        return SJ_EXIT_UNKNOWN;
    case SJ_CODE_JUMP_INDIRECT:
        return judge_indirect(module, piece, code);
    default:
        return SJ_EXIT_NOT;
    }
}

/* An unclear exit through a return or a jump with an unknown frame means that the unwind rules are
 * not exact; any other that the jump's targets are not known. */
static sj_skip judge_piece(const sj_module *module, const sj_piece *piece)
{
    if (piece->is_undecodable) {
        return SJ_SKIP_UNDECODABLE;
    }
    for (uint32_t i = 0; i < piece->code_count; i++) {
        const sj_code *code = &module->codes[piece->first_code + i];
        if (code->kind >= SJ_CODE_JUMP && code->kind <= SJ_CODE_PINNED &&
            sj_exit_of(module, piece, code) == SJ_EXIT_UNKNOWN) {
            return code->kind == SJ_CODE_RETURN ? SJ_SKIP_NO_CFI : SJ_SKIP_UNRESOLVED_JUMP;
        }
    }
    return SJ_SKIP_NONE;
}

void sj_judge_pieces(sj_module *module)
{
    for (size_t i = 0; i < module->piece_count; i++) {
        const sj_piece *piece = &module->pieces[i];
        sj_piece *function = &module->pieces[piece->parent];
        const bool is_own_part = !piece->is_cold || piece->parent != i;
        if (is_own_part && function->skip == SJ_SKIP_NONE) {
            function->skip = (uint8_t)judge_piece(module, piece);
        }
        if (piece->parent != i) {
            function->has_frame |= piece->has_frame;
        }
    }
}
