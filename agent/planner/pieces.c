#include "agent/planner/module.h"

#include "agent/planner/growable.h"

/* Design notes. Symbols come first, because they carry names; every unwind range that no symbol
 * covers is added without a name, so that a module with only .dynsym is planned as a whole.
 * Bounds are believed only when an unwind range starts at the same byte and reaches as far: code
 * without one is hand-written or generated, and nothing tells there what a jump means. */

static bool is_in_section(const sj_module *module, uint64_t address, const char *prefix)
{
    for (uint32_t i = 0; i < module->elf.section_count; i++) {
        const sj_elf_section *section = &module->elf.sections[i];
        if (address >= section->address && address - section->address < section->size &&
            section->address != 0 && strncmp(section->name, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

static sj_status add_piece(sj_module *module, const sj_piece *piece)
{
    SJ_TRY(
        sj_grow(&module->pieces, &module->piece_capacity, module->piece_count, 1, sizeof(*piece)));
    module->pieces[module->piece_count++] = *piece;
    return SJ_OK;
}

static bool is_inside_text(const sj_module *module, uint64_t address, uint64_t size)
{
    return address >= module->text_low && address - module->text_low < module->text_bytes &&
           size <= module->text_bytes - (address - module->text_low);
}

static sj_status add_symbol_piece(sj_module *module, const sj_symbol *symbol)
{
    const sj_frame_range *range = sj_unwind_find(&module->unwind, symbol->address);
    const bool is_range_start = range != NULL && range->start == symbol->address;
    if (symbol->kind == SJ_SYMBOL_LABEL && !is_range_start) {
        return SJ_OK;
    }
    uint64_t size = symbol->size;
    if (size == 0 && is_range_start) {
        size = range->end - range->start;
    }
    /* A function without size and unwind range is listed, but nothing of it is known. */
    if ((size == 0 && range != NULL) || !is_inside_text(module, symbol->address, 0) ||
        is_in_section(module, symbol->address, ".plt")) {
        return SJ_OK;
    }
    sj_piece piece = {.start = (uint32_t)(symbol->address - module->text_low),
                      .name = symbol->name,
                      .source = symbol->source,
                      .receiver = symbol->receiver};
    if (!is_inside_text(module, symbol->address, size)) {
        /* What lies behind is not touched by the lie. */
        size = is_range_start ? range->end - range->start : 0;
        size = is_inside_text(module, symbol->address, size) ? size : 0;
        piece.skip = SJ_SKIP_OUT_OF_TEXT;
    } else if (symbol->kind == SJ_SYMBOL_RESOLVER || sj_name_is_runtime(symbol->name)) {
        piece.skip = SJ_SKIP_RUNTIME_SUPPORT;
    } else if (!is_range_start || range->end - range->start < size) {
        piece.skip = SJ_SKIP_NO_CFI;
    }
    piece.size = (uint32_t)size;
    return add_piece(module, &piece);
}

static sj_status add_range_pieces(sj_module *module)
{
    const size_t named_count = module->piece_count;
    size_t named = 0;
    uint64_t covered = 0;
    for (size_t i = 0; i < module->unwind.count; i++) {
        const sj_frame_range *range = &module->unwind.ranges[i];
        if (!is_inside_text(module, range->start, range->end - range->start)) {
            continue;
        }
        const uint64_t start = range->start - module->text_low;
        while (named < named_count && module->pieces[named].start <= start) {
            const uint64_t end = (uint64_t)module->pieces[named].start + module->pieces[named].size;
            covered = end > covered ? end : covered;
            named++;
        }
        if (start < covered || is_in_section(module, range->start, ".plt")) {
            continue;
        }
        const sj_piece piece = {.start = (uint32_t)start,
                                .size = (uint32_t)(range->end - range->start),
                                .name = "",
                                .source = SJ_SYMBOL_EH_FRAME};
        covered = start + piece.size;
        SJ_TRY(add_piece(module, &piece));
    }
    return SJ_OK;
}

static int compare_pieces(const void *left, const void *right)
{
    const sj_piece *a = left;
    const sj_piece *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* Overlapping symbols leave open whose bytes are whose: all of them are left alone, and cut, so
 * that each byte still belongs to at most one piece. */
static void mark_overlaps(sj_module *module)
{
    uint32_t open = 0;
    for (uint32_t i = 1; i < module->piece_count; i++) {
        sj_piece *last = &module->pieces[open];
        sj_piece *piece = &module->pieces[i];
        if (last->start + last->size > piece->start) {
            last->skip = SJ_SKIP_OVERLAP;
            piece->skip = SJ_SKIP_OVERLAP;
        }
        if (piece->start + piece->size >= last->start + last->size) {
            open = i;
        }
    }
    for (uint32_t i = 0; i + 1 < module->piece_count; i++) {
        sj_piece *piece = &module->pieces[i];
        const uint32_t next = module->pieces[i + 1].start;
        if (piece->start + piece->size > next) {
            piece->size = next - piece->start;
        }
    }
}

static void mark_special(sj_module *module)
{
    for (uint32_t i = 0; i < module->piece_count; i++) {
        sj_piece *piece = &module->pieces[i];
        const uint64_t address = sj_module_address(module, piece->start);
        piece->parent = i;
        piece->next_part = SJ_PIECE_NONE;
        if (module->is_go) {
            piece->skip = SJ_SKIP_GO_RUNTIME;
        } else if (address == module->elf.entry) {
            piece->skip = SJ_SKIP_RUNTIME_SUPPORT;
        }
        const sj_frame_range *range = sj_unwind_find(&module->unwind, address);
        piece->frame = range;
        if (range != NULL && range->start == address) {
            piece->is_cold = !module->unwind.rows[range->first_row].is_entry;
        }
        piece->is_cold = piece->is_cold || strstr(piece->name, ".cold") != NULL;
    }
    static const char *const start_sections[] = {".init", ".fini"};
    for (unsigned s = 0; s < 2; s++) {
        const sj_elf_section *section = sj_elf_find_section(&module->elf, start_sections[s]);
        if (section != NULL && is_inside_text(module, section->address, section->size)) {
            const uint32_t low = (uint32_t)(section->address - module->text_low);
            const uint32_t piece = sj_module_piece_at(module, low);
            if (piece != SJ_PIECE_NONE) {
                module->pieces[piece].skip = SJ_SKIP_RUNTIME_SUPPORT;
            }
        }
    }
}

sj_status sj_module_find_pieces(sj_module *module)
{
    for (size_t i = 0; i < module->symbols.count; i++) {
        SJ_TRY(add_symbol_piece(module, &module->symbols.items[i]));
    }
    SJ_TRY(add_range_pieces(module));
    if (module->piece_count > 0) {
        qsort(module->pieces, module->piece_count, sizeof(*module->pieces), compare_pieces);
    }
    mark_overlaps(module);
    SJ_TRY(sj_module_index_pieces(module));
    mark_special(module);
    return SJ_OK;
}
