#include "agent/planner/targets.h"

#include "agent/planner/machine.h"

#include <elf.h>

enum { SECTION_RELR = 19, RELR_BITS = 63 };

static void mark_address(sj_module *module, uint64_t address)
{
    sj_mark(module, (int64_t)(address - module->text_low), true);
}

/* Marks the address of a resolver (IRELATIVE) and excludes its function. */
static void mark_resolver(sj_module *module, uint64_t address)
{
    mark_address(module, address);
    const uint32_t resolver = sj_module_range_at(module, (int64_t)(address - module->text_low));
    if (resolver != SJ_CODE_RANGE_NONE) {
        module->ranges[resolver].skip = SJ_SKIP_RUNTIME_SUPPORT;
    }
}

static void mark_relocations(sj_module *module)
{
    const sj_machine *machine = module->machine;
    sj_elf_relocations walk = {.elf = &module->elf};
    for (sj_elf_relocation relocation; sj_elf_next_relocation(&walk, &relocation);) {
        sj_elf_symbol symbol = {0};
        if (relocation.type == machine->relocation_relative) {
            mark_address(module, relocation.addend);
        } else if (relocation.type == machine->relocation_absolute) {
            (void)sj_elf_symbol_at(walk.symbols, relocation.symbol, &symbol);
            mark_address(module, symbol.value + relocation.addend);
        } else if (relocation.type == machine->relocation_resolver) {
            mark_resolver(module, relocation.addend);
        }
    }
}

static void mark_pointer_at(sj_module *module, uint64_t place)
{
    const sj_slice bytes = sj_elf_at(&module->elf, place);
    if (bytes.size >= sizeof(uint64_t)) {
        sj_reader reader = sj_reader_of(bytes.data, bytes.size);
        mark_address(module, sj_read_u64(&reader));
    }
}

/* Marks the targets of packed relative relocations (SHT_RELR). An entry is an address, or (bit 0
 * set) a bitmap of the words after the last address. */
static void mark_packed_relocations(sj_module *module, const sj_elf_section *section)
{
    const sj_slice bytes = sj_elf_section_bytes(&module->elf, section);
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    uint64_t place = 0;
    while (sj_reader_left(&reader) >= sizeof(uint64_t)) {
        const uint64_t entry = sj_read_u64(&reader);
        if ((entry & 1) == 0) {
            mark_pointer_at(module, entry);
            place = entry + sizeof(uint64_t);
            continue;
        }
        for (unsigned bit = 0; bit < RELR_BITS; bit++) {
            if ((entry >> (bit + 1) & 1) != 0) {
                mark_pointer_at(module, place + bit * sizeof(uint64_t));
            }
        }
        place += RELR_BITS * sizeof(uint64_t);
    }
}

/* Marks all words of a section that may be addresses. */
static void mark_words(sj_module *module, const sj_elf_section *section)
{
    const sj_slice bytes = sj_elf_section_bytes(&module->elf, section);
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    while (sj_reader_left(&reader) >= sizeof(uint64_t)) {
        mark_address(module, sj_read_u64(&reader));
    }
}

void sj_mark_data(sj_module *module)
{
    const bool is_fixed = module->elf.type == ET_EXEC;
    mark_relocations(module);
    for (uint32_t i = 0; i < module->elf.section_count; i++) {
        const sj_elf_section *section = &module->elf.sections[i];
        if ((section->flags & SHF_ALLOC) == 0) {
            continue;
        }
        if (section->type == SECTION_RELR) {
            mark_packed_relocations(module, section);
        } else if (is_fixed && (section->flags & SHF_EXECINSTR) == 0 &&
                   section->type != SHT_NOBITS) {
            mark_words(module, section);
        }
    }
}
