/* Design notes
 *
 * Up to three modules get plans: the allocator, the C library, and the C++ library if the allocator
 * does not define operator new.
 *
 * The planner plans patches for the entries and exits of functions. Here only the patch of a
 * function's entry is kept, which is the last of its patches; the exits keep their original code.
 * The stub must begin with the entry probe: the agent replaces it by code that has to run before
 * the function's first instruction. */
#include "agent/zombies/heap_entries.h"

#include "agent/abi/heap_entry_names.h"
#include "agent/abi/plan_crc.h"
#include "agent/objfile/symbols.h"
#include "agent/planner/planner.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANDING_BYTES = 4 }; /* Size of endbr64. */

/* The agent finds the module of each part by the address of this function. */
static const char *const anchors[SJ_HEAP_PARTS] = {"malloc", "gnu_get_libc_version", "_Znwm"};

/* True if the heap cannot be monitored without patching this entry. Other freeing entries must also
 * be patched if they exist, because the program may pass guarded blocks to them (check_entries).
 * All other entries are optional. */
static bool is_needed(uint32_t entry)
{
    return entry <= SJ_ENTRY_CALLOC || entry == SJ_ENTRY_FREE || entry == SJ_ENTRY_REALLOC ||
           entry == SJ_ENTRY_SIGACTION;
}

static bool is_freeing(uint32_t entry)
{
    return entry >= SJ_ENTRY_FREE && entry < SJ_ENTRY_SIGACTION;
}

static bool is_operator(uint32_t entry)
{
    return (entry >= SJ_ENTRY_NEW && entry < SJ_ENTRY_FREE) ||
           (entry >= SJ_ENTRY_DELETE && entry < SJ_ENTRY_SIGACTION);
}

/* True if this entry is patched in this module. */
static bool is_patched_in(const sj_heap_entry_module *module, uint32_t entry)
{
    switch (module->part) {
    case SJ_HEAP_LIBRARY:
        return entry >= SJ_ENTRY_SIGACTION;
    case SJ_HEAP_OPERATORS:
        return is_operator(entry);
    default:
        /* If a program defines operator new, it has its own heap or calls malloc: not patched. */
        return (module->is_c_library || entry < SJ_ENTRY_SIGACTION) &&
               !(module->is_program && entry >= SJ_ENTRY_NEW && entry < SJ_ENTRY_FREE);
    }
}

typedef struct module_entries {
    const sj_heap_entry_module *module;
    uint64_t offsets[SJ_HEAP_ENTRIES]; /* 0 if the module does not define it, or if not patched. */
    uint8_t is_forwarding[SJ_HEAP_ENTRIES];
    uint64_t anchor; /* Offset of the function in `anchors`. */
} module_entries;

/* True if an operator new allocates by another entry. Operators of the C++ library call malloc. An
 * operator that begins with a jump calls another operator. */
static bool is_forwarding(const sj_elf *elf, const module_entries *entries, uint32_t entry)
{
    static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    if (!is_operator(entry) || is_freeing(entry) || entries->offsets[entry] == 0) {
        return false;
    }
    sj_slice code = sj_elf_at(elf, entries->offsets[entry]);
    if (code.size > sizeof(landing) && memcmp(code.data, landing, sizeof(landing)) == 0) {
        code.data += sizeof(landing);
        code.size -= sizeof(landing);
    }
    return entries->module->part == SJ_HEAP_OPERATORS ||
           (code.size > 0 && (code.data[0] == 0xe9 || code.data[0] == 0xeb));
}

static void find_symbols(const sj_symbols *symbols, module_entries *entries)
{
    for (size_t i = 0; i < symbols->count; i++) {
        const sj_symbol *symbol = &symbols->items[i];
        if (strcmp(symbol->name, anchors[entries->module->part]) == 0) {
            entries->anchor = symbol->address;
        }
        for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
            if (strcmp(symbol->name, sj_heap_entry_names[entry]) == 0 &&
                is_patched_in(entries->module, entry)) {
                entries->offsets[entry] = symbol->address;
            }
        }
    }
}

static sj_status find_offsets(module_entries *entries, sj_error *error)
{
    sj_elf elf = {0};
    sj_symbols symbols = {0};
    const char *path = entries->module->path;
    SJ_TRY(sj_elf_open(path, &elf, error));
    sj_status status = sj_symbols_read(&elf, SHT_DYNSYM, SJ_SYMBOL_DYNSYM, &symbols);
    if (status == SJ_OK) {
        find_symbols(&symbols, entries);
    }
    for (uint32_t entry = 0; status == SJ_OK && entry < SJ_HEAP_ENTRIES; entry++) {
        entries->is_forwarding[entry] = is_forwarding(&elf, entries, entry);
        if (entries->offsets[entry] == 0 && is_needed(entry) &&
            is_patched_in(entries->module, entry)) {
            status = sj_fail(error, SJ_EUNSUPPORTED, "%.200s has no %s", path,
                             sj_heap_entry_names[entry]);
        }
    }
    sj_symbols_free(&symbols);
    sj_elf_close(&elf);
    return status;
}

/* True if the function at `offset` is an entry, as `wanted` of sj_planner_options. */
static bool is_entry(void *context, const char *name, uint64_t offset, uint32_t size_bytes)
{
    const uint64_t *offsets = context;
    (void)name;
    (void)size_bytes;
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        if (offsets[entry] == offset && offset != 0) {
            return true;
        }
    }
    return false;
}

/* True if the stub of a patch begins with the entry probe. It may free the flags first. */
static bool begins_with_entry(const sj_plan_header *plan, const sj_plan_patch *patch)
{
    const sj_plan_stub *stub = &sj_plan_stubs(plan)[patch->stub];
    const uint8_t *operations = (const uint8_t *)plan + plan->operations_offset + stub->operations;
    const uint32_t first =
        stub->operations_bytes > 1 && operations[0] == SJ_OPERATION_FREE_FLAGS ? 1 : 0;
    return stub->operations_bytes > first && operations[first] == SJ_OPERATION_ENTER;
}

/* Removes all patches of a function except the entry patch, which may come after an endbr64.
 * Returns false if the function is not hooked, or if the entry patch has another kind or offset. */
static bool keep_entry_patch(const sj_plan_header *plan, sj_plan_function *function)
{
    if (!sj_plan_is_hooked(function)) {
        return false;
    }
    const uint32_t last = function->first_patch + function->patch_count - 1;
    const sj_plan_patch *patch = &sj_plan_patches(plan)[last];
    const uint64_t distance = patch->offset - function->offset;
    if (patch->kind != SJ_PATCH_JUMP32 || (distance != 0 && distance != LANDING_BYTES) ||
        !begins_with_entry(plan, patch)) {
        return false;
    }
    function->first_patch = last;
    function->patch_count = 1;
    return true;
}

/* Removes the patches of exits from the plan. For each entry, writes 1 + the index of its function
 * in the plan, or 0. Entries at the same address have the same function. */
static void find_entries(const sj_plan_header *plan, const uint64_t offsets[SJ_HEAP_ENTRIES],
                         uint32_t heap_entries[SJ_HEAP_ENTRIES])
{
    sj_plan_function *functions = (sj_plan_function *)(uintptr_t)sj_plan_functions(plan);
    memset(heap_entries, 0, SJ_HEAP_ENTRIES * sizeof(*heap_entries));
    for (uint32_t i = 0; i < plan->function_count; i++) {
        if (!keep_entry_patch(plan, &functions[i])) {
            functions[i].skip = SJ_SKIP_FILTERED;
            continue;
        }
        for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
            if (functions[i].offset == offsets[entry]) {
                heap_entries[entry] = i + 1;
            }
        }
    }
}

/* Returns whether a function of the plan is freeing or allocating. A freeing entry at the same
 * address makes it freeing. */
static sj_zombie_half half_of(const uint32_t heap_entries[SJ_HEAP_ENTRIES], uint32_t function)
{
    for (uint32_t entry = SJ_ENTRY_FREE; entry < SJ_HEAP_ENTRIES; entry++) {
        if (heap_entries[entry] == function + 1) {
            return SJ_HEAP_FREEING;
        }
    }
    return SJ_HEAP_ALLOCATING;
}

/* Writes the plan with only the allocating or only the freeing functions. */
static sj_status write_half(sj_plan_header *plan, uint64_t bytes,
                            const uint32_t heap_entries[SJ_HEAP_ENTRIES], sj_zombie_half half,
                            const char *path, sj_error *error)
{
    sj_plan_header *copy = malloc(bytes);
    if (copy == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    memcpy(copy, plan, bytes);
    sj_plan_function *functions = (sj_plan_function *)(uintptr_t)sj_plan_functions(copy);
    for (uint32_t i = 0; i < copy->function_count; i++) {
        if (half_of(heap_entries, i) != half) {
            functions[i].skip = SJ_SKIP_FILTERED;
        }
    }
    copy->crc32c = 0;
    copy->crc32c = sj_plan_crc(copy, copy->file_bytes);
    const sj_plan kept = {.header = copy, .size_bytes = bytes};
    const sj_status status = sj_plan_write(&kept, path, error);
    free(copy);
    return status;
}

static sj_status check_entries(const module_entries *entries,
                               const uint32_t heap_entries[SJ_HEAP_ENTRIES], sj_error *error)
{
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        if (entries->offsets[entry] != 0 && heap_entries[entry] == 0 &&
            (is_needed(entry) || is_freeing(entry))) {
            return sj_fail(error, SJ_EUNSUPPORTED, "the entry of %s cannot be patched",
                           sj_heap_entry_names[entry]);
        }
    }
    return SJ_OK;
}

static bool has_half(const uint32_t heap_entries[SJ_HEAP_ENTRIES], sj_zombie_half half)
{
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        if (heap_entries[entry] != 0 && (entry < SJ_ENTRY_FREE) == (half == SJ_HEAP_ALLOCATING)) {
            return true;
        }
    }
    return false;
}

static sj_status write_halves(sj_plan_header *plan, uint64_t bytes, const module_entries *entries,
                              const char *stem, sj_heap_entry_plans *plans, sj_error *error)
{
    uint32_t heap_entries[SJ_HEAP_ENTRIES];
    const uint32_t part = entries->module->part;
    sj_heap_plan heap_plan = {.anchor_offset = entries->anchor};
    find_entries(plan, entries->offsets, heap_entries);
    SJ_TRY(check_entries(entries, heap_entries, error));
    for (int half = 0; half < SJ_HEAP_HALVES; half++) {
        if (has_half(heap_entries, (sj_zombie_half)half)) {
            snprintf(heap_plan.paths[half], sizeof(heap_plan.paths[half]), "%.480s.%u.%d.plan",
                     stem, part, half);
            SJ_TRY(write_half(plan, bytes, heap_entries, (sj_zombie_half)half,
                              heap_plan.paths[half], error));
        }
    }
    snprintf(heap_plan.anchor_name, sizeof(heap_plan.anchor_name), "%s", anchors[part]);
    plans->plans[part] = heap_plan;
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        if (heap_entries[entry] != 0) {
            plans->heap_entries[entry] = heap_entries[entry];
            plans->parts[entry] = (uint8_t)part;
            plans->is_forwarding[entry] = entries->is_forwarding[entry];
        }
    }
    return SJ_OK;
}

sj_status sj_heap_entry_plan(const sj_heap_entry_module *module, const char *cache_directory,
                             const char *stem, sj_heap_entry_plans *plans, sj_error *error)
{
    module_entries entries = {.module = module};
    sj_plan plan = {0};
    SJ_TRY(find_offsets(&entries, error));
    const sj_planner_options options = {.module_path = module->path,
                                        .cache_directory = cache_directory,
                                        .wanted = is_entry,
                                        .context = entries.offsets};
    SJ_TRY(sj_plan_make(&options, &plan, error));
    sj_plan_header *copy = malloc(plan.size_bytes);
    sj_status status = SJ_ENOMEM;
    if (copy != NULL) {
        memcpy(copy, plan.header, plan.size_bytes);
        status = write_halves(copy, plan.size_bytes, &entries, stem, plans, error);
    }
    free(copy);
    sj_plan_free(&plan);
    return status;
}
