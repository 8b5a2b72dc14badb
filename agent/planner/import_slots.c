#include "agent/planner/flags.h"

#include "agent/planner/growable.h"
#include "agent/planner/machine.h"

#include <elf.h>

/* Design notes. What the loader fills a slot with: the function of this module that its symbol
 * names, unless another module defines it as well, which is then as good as an import. */

static sj_import_slot read_slot(uint64_t address, sj_slice symbols, uint32_t index)
{
    sj_import_slot slot = {.address = address, .kind = SJ_SLOT_ANY};
    if (index >= symbols.size / sizeof(Elf64_Sym)) {
        return slot;
    }
    sj_reader reader =
        sj_reader_of(symbols.data + (size_t)index * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    (void)sj_read_u32(&reader);
    const uint8_t type = ELF64_ST_TYPE(sj_read_u8(&reader));
    (void)sj_read_u8(&reader);
    const bool is_defined = sj_read_u16(&reader) != SHN_UNDEF;
    slot.function = sj_read_u64(&reader);
    if (!is_defined) {
        slot.kind = SJ_SLOT_OTHER_MODULE;
    } else if (type != STT_GNU_IFUNC) {
        slot.kind = SJ_SLOT_OWN;
    }
    return slot;
}

static sj_status read_slots(const sj_module *module, const sj_elf_section *section,
                            sj_import_slots *slots)
{
    const sj_slice bytes = sj_elf_section_bytes(&module->elf, section);
    const sj_slice symbols =
        section->link < module->elf.section_count
            ? sj_elf_section_bytes(&module->elf, &module->elf.sections[section->link])
            : (sj_slice){0};
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    while (sj_reader_left(&reader) >= sizeof(Elf64_Rela)) {
        const uint64_t address = sj_read_u64(&reader);
        const uint64_t info = sj_read_u64(&reader);
        (void)sj_read_u64(&reader);
        const uint32_t type = (uint32_t)info;
        if (type != module->machine->relocation_slot && type != module->machine->relocation_data) {
            continue;
        }
        const sj_import_slot slot = read_slot(address, symbols, (uint32_t)(info >> 32));
        SJ_TRY(sj_grow(&slots->items, &slots->capacity, slots->count, 1, sizeof(*slots->items)));
        slots->items[slots->count++] = slot;
    }
    return SJ_OK;
}

static int compare_slots(const void *left, const void *right)
{
    const sj_import_slot *a = left;
    const sj_import_slot *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

sj_status sj_import_slots_read(const sj_module *module, sj_import_slots *slots)
{
    for (uint32_t i = 0; i < module->elf.section_count; i++) {
        const sj_elf_section *section = &module->elf.sections[i];
        if (section->type == SHT_RELA && (section->flags & SHF_ALLOC) != 0) {
            SJ_TRY(read_slots(module, section, slots));
        }
    }
    if (slots->count > 0) {
        qsort(slots->items, slots->count, sizeof(*slots->items), compare_slots);
    }
    return SJ_OK;
}

const sj_import_slot *sj_import_slot_of(const sj_module *module, const sj_import_slots *slots,
                                        const sj_code *code)
{
    if ((code->flags & SJ_CODE_RELATIVE) == 0 || slots->count == 0) {
        return NULL;
    }
    const sj_import_slot key = {.address = sj_module_address(module, sj_code_target(code))};
    return bsearch(&key, slots->items, slots->count, sizeof(key), compare_slots);
}
