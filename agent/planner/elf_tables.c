#include "agent/planner/elf_tables.h"

#include <elf.h>

sj_elf_symbol sj_elf_read_symbol(sj_reader *reader)
{
    sj_elf_symbol symbol = {.name = sj_read_u32(reader)};
    const uint8_t info = sj_read_u8(reader);
    symbol.type = ELF64_ST_TYPE(info);
    symbol.binding = ELF64_ST_BIND(info);
    symbol.other = sj_read_u8(reader);
    symbol.section = sj_read_u16(reader);
    symbol.value = sj_read_u64(reader);
    symbol.size = sj_read_u64(reader);
    return symbol;
}

bool sj_elf_symbol_at(sj_slice table, uint32_t index, sj_elf_symbol *symbol)
{
    if (index >= table.size / sizeof(Elf64_Sym)) {
        return false;
    }
    sj_reader reader =
        sj_reader_of(table.data + (size_t)index * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    *symbol = sj_elf_read_symbol(&reader);
    return true;
}

/* Sections that are not allocated say what the linker has done already. */
static bool open_next_section(sj_elf_relocations *walk)
{
    const sj_elf *elf = walk->elf;
    while (walk->next_section < elf->section_count) {
        const sj_elf_section *section = &elf->sections[walk->next_section++];
        if (section->type == SHT_RELA && (section->flags & SHF_ALLOC) != 0) {
            const sj_slice bytes = sj_elf_section_bytes(elf, section);
            walk->reader = sj_reader_of(bytes.data, bytes.size);
            walk->symbols = section->link < elf->section_count
                                ? sj_elf_section_bytes(elf, &elf->sections[section->link])
                                : (sj_slice){0};
            return true;
        }
    }
    return false;
}

bool sj_elf_next_relocation(sj_elf_relocations *walk, sj_elf_relocation *relocation)
{
    while (sj_reader_left(&walk->reader) < sizeof(Elf64_Rela)) {
        if (!open_next_section(walk)) {
            return false;
        }
    }
    relocation->place = sj_read_u64(&walk->reader);
    const uint64_t info = sj_read_u64(&walk->reader);
    relocation->addend = sj_read_u64(&walk->reader);
    relocation->type = (uint32_t)info;
    relocation->symbol = (uint32_t)(info >> 32);
    return true;
}
