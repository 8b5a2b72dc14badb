/* Design notes
 *
 * Nothing is kept about the slots that were changed: a module may have been unloaded since, and
 * the slots to restore are found as those to change are, by their relocation and by what they hold.
 * A slot that was still to be bound lazily comes back bound. */
#include "agent/hooks/rebind.h"

#include "agent/hooks/dynamic_view.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

typedef struct rebind_run {
    const sj_rebinding *rebindings;
    uint32_t count;
    bool restore;
    uint32_t changed;
} rebind_run;

static void rebind_slot(rebind_run *run, const sj_dynamic_view *view, const ElfW(Rela) * relocation)
{
    const uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
    if ((type != SJ_SLOT_JUMP && type != SJ_SLOT_DATA && type != SJ_SLOT_WORD) ||
        (type == SJ_SLOT_WORD && relocation->r_addend != 0)) {
        return;
    }
    const ElfW(Sym) *symbol = &view->symbols[ELF64_R_SYM(relocation->r_info)];
    const char *name = view->strings + symbol->st_name;
    const uint64_t slot = view->bias + relocation->r_offset;
    for (uint32_t i = 0; i < run->count; i++) {
        const sj_rebinding *rebinding = &run->rebindings[i];
        const uint64_t wanted = run->restore ? rebinding->real : rebinding->replacement;
        const uint64_t held = *(const volatile uint64_t *)slot;
        if (rebinding->real == 0 || strcmp(name, rebinding->name) != 0 || held == wanted ||
            (run->restore && held != rebinding->replacement)) {
            continue;
        }
        run->changed += sj_slot_write(view, slot, wanted) ? 1 : 0;
    }
}

static int rebind_module(struct dl_phdr_info *info, size_t size, void *context)
{
    rebind_run *run = context;
    sj_dynamic_view view;
    (void)size;
    if (!sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    for (uint32_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < view.table_bytes[t] / sizeof(ElfW(Rela)); i++) {
            rebind_slot(run, &view, &view.tables[t][i]);
        }
    }
    return 0;
}

uint32_t sj_rebind(const sj_rebinding *rebindings, uint32_t count, bool restore)
{
    rebind_run run = {.rebindings = rebindings, .count = count, .restore = restore};
    (void)dl_iterate_phdr(rebind_module, &run);
    return run.changed;
}

typedef struct find_run {
    const char *name;
    uint32_t hash;
    uint64_t found;
} find_run;

static int find_in_module(struct dl_phdr_info *info, size_t size, void *context)
{
    find_run *run = context;
    sj_dynamic_view view;
    (void)size;
    if (!sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    for (uint32_t index = 0; sj_symbol_next(&view, run->name, run->hash, &index);) {
        const ElfW(Sym) *symbol = &view.symbols[index];
        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC) {
            run->found = view.bias + symbol->st_value;
            return 1;
        }
    }
    return 0;
}

uint64_t sj_rebind_find(const char *name)
{
    find_run run = {.name = name, .hash = sj_symbol_hash(name)};
    (void)dl_iterate_phdr(find_in_module, &run);
    return run.found;
}
