#include "agent/planner/flags.h"

#include "agent/planner/machine.h"
#include "proto/base/array.h"

#include <elf.h>
#include <stdlib.h>

/* Design notes. The loader fills the slot of a symbol that this module defines with this module's
 * function, or with another module's definition of the symbol. The search for readers of the flags
 * assumes both. */

static sj_import_slot read_slot(const sj_elf_relocation *relocation, sj_slice symbols)
{
    sj_import_slot slot = {.address = relocation->place, .kind = SJ_SLOT_ANY};
    sj_elf_symbol symbol;
    if (!sj_elf_symbol_at(symbols, relocation->symbol, &symbol)) {
        return slot;
    }
    slot.function = symbol.value;
    if (symbol.section == SHN_UNDEF) {
        slot.kind = SJ_SLOT_OTHER_MODULE;
    } else if (symbol.type != STT_GNU_IFUNC) {
        slot.kind = SJ_SLOT_OWN;
    }
    return slot;
}

static int compare_slots(const void *left, const void *right)
{
    const sj_import_slot *a = left;
    const sj_import_slot *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

sj_status sj_import_slots_read(const sj_module *module, sj_import_slots *slots)
{
    const sj_machine *machine = module->machine;
    sj_elf_relocations walk = {.elf = &module->elf};
    for (sj_elf_relocation relocation; sj_elf_next_relocation(&walk, &relocation);) {
        if (relocation.type != machine->relocation_slot &&
            relocation.type != machine->relocation_data) {
            continue;
        }
        SJ_TRY(sj_array_reserve(&slots->items, &slots->capacity, slots->count, 1,
                                sizeof(*slots->items)));
        slots->items[slots->count++] = read_slot(&relocation, walk.symbols);
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
