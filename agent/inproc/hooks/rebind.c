/* Design notes
 *
 * The agent does not remember changed slots, because their module may have been unloaded since. It
 * finds the slots to restore as it finds the slots to change: by their relocation and their value.
 * A slot that was bound lazily gets the function's address when it is restored. */
#include "agent/inproc/hooks/rebind.h"

#include "agent/inproc/hooks/dynamic_view.h"
#include "agent/inproc/hooks/module_walk.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

typedef struct rebind_run {
    const sj_rebinding *rebindings;
    uint32_t count;
    bool restore;
    sj_rebound rebound;
} rebind_run;

/* True if a slot with the value `held` is relocated. The loader announces a module before it
 * relocates it. Until then a slot holds an offset in the module or 0, and must stay unchanged. */
static bool is_relocated(const sj_dynamic_view *view, uint64_t held)
{
    const uint64_t largest_module = UINT64_C(1) << 32;
    return view->bias == 0 || held >= largest_module;
}

static void rebind_slot(rebind_run *run, const sj_dynamic_view *view, const sj_slot *slot)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const sj_rebinding *rebinding = &run->rebindings[i];
        const uint64_t wanted = run->restore ? rebinding->real : rebinding->replacement;
        const uint64_t held = *(const volatile uint64_t *)slot->address;
        if (rebinding->real == 0 || strcmp(slot->name, rebinding->name) != 0 || held == wanted ||
            (run->restore && held != rebinding->replacement)) {
            continue;
        }
        if (!is_relocated(view, held)) {
            run->rebound.not_relocated++;
        } else {
            run->rebound.changed += sj_slot_write(view, slot->address, wanted) ? 1 : 0;
        }
    }
}

static void rebind_slots(rebind_run *run, const sj_dynamic_view *view)
{
    for (sj_slot slot = {0}; sj_slot_next(view, &slot);) {
        rebind_slot(run, view, &slot);
    }
}

static int rebind_module(struct dl_phdr_info *info, size_t size, void *context)
{
    sj_dynamic_view view;
    (void)size;
    if (sj_dynamic_view_read(info, &view)) {
        rebind_slots(context, &view);
    }
    return 0;
}

uint32_t sj_rebind(const sj_rebinding *rebindings, uint32_t count, bool restore)
{
    rebind_run run = {.rebindings = rebindings, .count = count, .restore = restore};
    (void)sj_module_walk(rebind_module, &run);
    return run.rebound.changed;
}

sj_rebound sj_rebind_module(const sj_dynamic_view *view, const sj_rebinding *rebindings,
                            uint32_t count, bool restore)
{
    rebind_run run = {.rebindings = rebindings, .count = count, .restore = restore};
    rebind_slots(&run, view);
    return run.rebound;
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
    (void)sj_module_walk(find_in_module, &run);
    return run.found;
}
