#include "agent/objfile/symbols.h"

#include "proto/base/array.h"

#include <elf.h>
#include <stdlib.h>

sj_status sj_symbols_add(sj_symbols *symbols, sj_symbol symbol)
{
    SJ_TRY(
        sj_array_reserve(&symbols->items, &symbols->capacity, symbols->count, 1, sizeof(symbol)));
    symbols->items[symbols->count++] = symbol;
    return SJ_OK;
}

static bool is_code_section(const sj_elf *elf, uint16_t index)
{
    return index != SHN_UNDEF && index < elf->section_count &&
           (elf->sections[index].flags & SHF_EXECINSTR) != 0;
}

static sj_status read_symbol(const sj_elf *elf, sj_reader *reader, sj_slice strings,
                             sj_symbol_source source, sj_symbols *symbols)
{
    const sj_elf_symbol row = sj_elf_read_symbol(reader);
    if (reader->bad || !is_code_section(elf, row.section) ||
        (row.type != STT_FUNC && row.type != STT_GNU_IFUNC && row.type != STT_NOTYPE)) {
        return SJ_OK;
    }
    sj_symbol symbol = {.address = row.value,
                        .size = row.size,
                        .name = sj_elf_string(strings, row.name),
                        .source = (uint8_t)source,
                        .kind = SJ_SYMBOL_LABEL,
                        .is_local = row.binding == STB_LOCAL};
    if (row.type == STT_FUNC) {
        symbol.kind = SJ_SYMBOL_FUNCTION;
    } else if (row.type == STT_GNU_IFUNC) {
        symbol.kind = SJ_SYMBOL_RESOLVER;
    }
    return sj_symbols_add(symbols, symbol);
}

sj_status sj_symbols_read(const sj_elf *elf, uint32_t section_type, sj_symbol_source source,
                          sj_symbols *symbols)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const sj_elf_section *section = &elf->sections[i];
        if (section->type != section_type || section->link >= elf->section_count) {
            continue;
        }
        const sj_slice table = sj_elf_section_bytes(elf, section);
        const sj_slice strings = sj_elf_section_bytes(elf, &elf->sections[section->link]);
        sj_reader reader = sj_reader_of(table.data, table.size);
        while (sj_reader_left(&reader) >= sizeof(Elf64_Sym)) {
            SJ_TRY(read_symbol(elf, &reader, strings, source, symbols));
        }
    }
    return SJ_OK;
}

static int compare_symbols(const void *left, const void *right)
{
    const sj_symbol *a = left;
    const sj_symbol *b = right;
    if (a->address != b->address) {
        return a->address > b->address ? 1 : -1;
    }
    if (a->kind != b->kind) {
        return (int)b->kind - (int)a->kind;
    }
    if ((a->source == SJ_SYMBOL_RUNTIME) != (b->source == SJ_SYMBOL_RUNTIME)) {
        return a->source == SJ_SYMBOL_RUNTIME ? -1 : 1;
    }
    if (a->source != b->source) {
        return (int)a->source - (int)b->source;
    }
    if (a->is_local != b->is_local) {
        return a->is_local ? 1 : -1;
    }
    return strcmp(a->name, b->name);
}

void sj_symbols_sort(sj_symbols *symbols)
{
    if (symbols->count == 0) {
        return;
    }
    qsort(symbols->items, symbols->count, sizeof(*symbols->items), compare_symbols);
    size_t kept = 0;
    for (size_t i = 1; i < symbols->count; i++) {
        sj_symbol *last = &symbols->items[kept];
        if (symbols->items[i].address != last->address) {
            symbols->items[++kept] = symbols->items[i];
        } else if (last->size < symbols->items[i].size) {
            last->size = symbols->items[i].size;
        }
    }
    symbols->count = kept + 1;
}

void sj_symbols_free(sj_symbols *symbols)
{
    free(symbols->items);
    *symbols = (sj_symbols){0};
}
