#include "agent/planner/builder.h"
#include "agent/planner/machine.h"
#include "proto/base/array.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* Design notes. A module calls another module through an import slot that the loader fills. A slot
 * of the procedure linkage table is used for calls only. Code may also load a data slot, as the
 * address of the function. A program may compare that address, so such a slot is excluded if the
 * code loads it. An import's name is LIBRARY!SYMBOL. The library comes from the symbol's version.
 * Without a version, the name starts with '!'. */

enum { SLOT_BYTES = 8, NAME_MAX_BYTES = 4096 };

typedef struct import_slot {
    uint64_t address;
    uint32_t symbol;
    bool is_data; /* code may load the slot, too */
    bool is_loaded;
} import_slot;

typedef struct import_list {
    import_slot *items;
    size_t count;
    size_t capacity;
    const sj_elf_section *symbols;
} import_list;

typedef struct import_symbol {
    const char *name;
    bool is_function; /* a function that another module defines */
} import_symbol;

static bool is_listed(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* True for functions that return twice, and for functions that use their return address. */
static bool caller_matters(const char *name)
{
    static const char *const names[] = {
        "setjmp",      "_setjmp", "sigsetjmp", "__sigsetjmp", "savectx", "vfork",     "getcontext",
        "swapcontext", "dlopen",  "dlmopen",   "dlsym",       "dlvsym",  "backtrace", "syscall"};
    return is_listed(name, names, sizeof(names) / sizeof(names[0])) ||
           strncmp(name, "_Unwind_", 8) == 0;
}

/* True for functions of start files, profiling and the loader. */
static bool is_support(const char *name)
{
    static const char *const names[] = {"__libc_start_main", "__cxa_finalize", "__gmon_start__",
                                        "__tls_get_addr",    "mcount",         "_mcount",
                                        "__fentry__",        "__morestack"};
    return is_listed(name, names, sizeof(names) / sizeof(names[0])) ||
           strncmp(name, "_ITM_", 5) == 0;
}

/* Reads symbol `index`, and whether it is a function that another module defines. */
static import_symbol read_import(const sj_elf *elf, const sj_elf_section *symbols, uint32_t index)
{
    import_symbol found = {.name = ""};
    sj_elf_symbol symbol;
    if (symbols->link >= elf->section_count ||
        !sj_elf_symbol_at(sj_elf_section_bytes(elf, symbols), index, &symbol)) {
        return found;
    }
    const bool is_special = (symbol.other & STO_AARCH64_VARIANT_PCS) != 0;
    found.name =
        sj_elf_string(sj_elf_section_bytes(elf, &elf->sections[symbols->link]), symbol.name);
    found.is_function = symbol.section == SHN_UNDEF && found.name[0] != 0 && !is_special &&
                        (symbol.type == STT_FUNC || symbol.type == STT_NOTYPE);
    return found;
}

static const sj_elf_section *find_type(const sj_elf *elf, uint32_t type)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (elf->sections[i].type == type) {
            return &elf->sections[i];
        }
    }
    return NULL;
}

/* Returns the name of the library that defines the needed version `index`, or "" if it is
 * unknown. */
static const char *find_version_file(const sj_elf *elf, uint16_t index)
{
    const sj_elf_section *section = find_type(elf, SHT_GNU_verneed);
    if (section == NULL || section->link >= elf->section_count) {
        return "";
    }
    const sj_slice bytes = sj_elf_section_bytes(elf, section);
    const sj_slice strings = sj_elf_section_bytes(elf, &elf->sections[section->link]);
    for (size_t at = 0; at < bytes.size;) {
        sj_reader need = sj_reader_of(bytes.data + at, bytes.size - at);
        (void)sj_read_u16(&need);
        const uint16_t count = sj_read_u16(&need);
        const uint32_t file = sj_read_u32(&need);
        size_t detail_at = at + sj_read_u32(&need);
        const uint32_t next = sj_read_u32(&need);
        for (uint16_t i = 0; i < count && detail_at < bytes.size; i++) {
            sj_reader detail = sj_reader_of(bytes.data + detail_at, bytes.size - detail_at);
            (void)sj_read_u32(&detail);
            (void)sj_read_u16(&detail);
            const uint16_t other = sj_read_u16(&detail);
            (void)sj_read_u32(&detail);
            const uint32_t step = sj_read_u32(&detail);
            if (!detail.bad && other == index) {
                return sj_elf_string(strings, file);
            }
            if (detail.bad || step == 0) {
                break;
            }
            detail_at += step;
        }
        if (need.bad || next == 0) {
            break;
        }
        at += next;
    }
    return "";
}

/* Returns the name of the library that a symbol's version belongs to, or "". */
static const char *find_library(const sj_elf *elf, uint32_t symbol)
{
    enum { VERSION_MASK = 0x7fff, FIRST_NEEDED = 2 };
    const sj_elf_section *section = find_type(elf, SHT_GNU_versym);
    if (section == NULL) {
        return "";
    }
    const sj_slice bytes = sj_elf_section_bytes(elf, section);
    if (symbol >= bytes.size / sizeof(uint16_t)) {
        return "";
    }
    sj_reader reader =
        sj_reader_of(bytes.data + (size_t)symbol * sizeof(uint16_t), sizeof(uint16_t));
    const uint16_t version = sj_read_u16(&reader) & VERSION_MASK;
    return version >= FIRST_NEEDED ? find_version_file(elf, version) : "";
}

/* Lists the slots that the loader fills with functions of other modules. */
static sj_status collect_slots(const sj_module *module, import_list *list)
{
    const sj_machine *machine = module->machine;
    const uint64_t text_end = module->text_low + module->text_bytes;
    sj_elf_relocations walk = {.elf = &module->elf};
    for (sj_elf_relocation relocation; sj_elf_next_relocation(&walk, &relocation);) {
        const uint64_t address = relocation.place;
        const bool is_data = relocation.type == machine->relocation_data;
        if ((!is_data && relocation.type != machine->relocation_slot) ||
            address % SLOT_BYTES != 0 || address < text_end ||
            address - module->text_low > UINT32_MAX - SLOT_BYTES ||
            !read_import(&module->elf, list->symbols, relocation.symbol).is_function) {
            continue;
        }
        SJ_TRY(
            sj_array_reserve(&list->items, &list->capacity, list->count, 1, sizeof(*list->items)));
        list->items[list->count++] = (import_slot){.address = address,
                                                   .symbol = relocation.symbol,
                                                   .is_data = is_data,
                                                   .is_loaded = is_data && !machine->shows_loads};
    }
    return SJ_OK;
}

static int compare_slots(const void *left, const void *right)
{
    const import_slot *a = left;
    const import_slot *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static import_slot *find_slot(const import_list *list, uint64_t address)
{
    const import_slot key = {.address = address};
    return list->count != 0 ? bsearch(&key, list->items, list->count, sizeof(key), compare_slots)
                            : NULL;
}

/* Marks the slots that code reads without calling or jumping through them. */
static void mark_loaded_slots(const sj_module *module, const import_list *list)
{
    for (size_t i = 0; i < module->code_count; i++) {
        const sj_code *code = &module->codes[i];
        const bool is_call =
            code->kind == SJ_CODE_CALL_INDIRECT || code->kind == SJ_CODE_JUMP_INDIRECT;
        if ((code->flags & (SJ_CODE_RELATIVE | SJ_CODE_UNOWNED)) != SJ_CODE_RELATIVE || is_call) {
            continue;
        }
        import_slot *slot = find_slot(list, sj_module_address(module, sj_code_target(code)));
        if (slot != NULL) {
            slot->is_loaded = true;
        }
    }
}

static void remove_duplicates(import_list *list)
{
    size_t kept_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (kept_count == 0 || list->items[kept_count - 1].address != list->items[i].address) {
            list->items[kept_count++] = list->items[i];
        }
    }
    list->count = kept_count;
}

/* Returns the reason not to record calls of an import, or SJ_SKIP_NONE. */
static sj_skip decide_import(const import_slot *slot, const char *name)
{
    if (is_support(name)) {
        return SJ_SKIP_RUNTIME_SUPPORT;
    }
    if (caller_matters(name)) {
        return SJ_SKIP_CALLER_MATTERS;
    }
    return slot->is_data && slot->is_loaded ? SJ_SKIP_ADDRESS_TAKEN : SJ_SKIP_NONE;
}

static sj_status add_import(sj_builder *builder, const import_list *list, const import_slot *slot)
{
    sj_module *module = builder->module;
    char name[NAME_MAX_BYTES];
    const char *symbol = read_import(&module->elf, list->symbols, slot->symbol).name;
    snprintf(name, sizeof(name), "%s!%s", find_library(&module->elf, slot->symbol), symbol);
    sj_code_range range = {.start = (uint32_t)(slot->address - module->text_low),
                           .size = SLOT_BYTES,
                           .source = SJ_SYMBOL_IMPORT};
    SJ_TRY(sj_module_keep_name(module, name, &range.name));
    SJ_TRY(sj_array_reserve(&module->ranges, &module->range_capacity, module->range_count, 1,
                            sizeof(range)));
    const uint32_t index = (uint32_t)module->range_count;
    module->ranges[module->range_count++] = range;
    sj_plan_function *function = &builder->functions[index];
    *function = (sj_plan_function){.offset = slot->address,
                                   .size = SLOT_BYTES,
                                   .source = SJ_SYMBOL_IMPORT,
                                   .skip = (uint8_t)decide_import(slot, symbol)};
    if (function->skip == SJ_SKIP_NONE) {
        function->technique = SJ_TECHNIQUE_GOT;
        function->first_patch = (uint32_t)builder->patch_count;
        function->patch_count = 1;
        builder->function = index;
        sj_patch_slot(builder, slot->address, sj_emit_dispatch_stub(builder));
    }
    return builder->status;
}

static sj_status add_imports(sj_builder *builder, const import_list *list)
{
    size_t capacity = builder->module->range_count + 1;
    SJ_TRY(sj_array_reserve(&builder->functions, &capacity, capacity, list->count,
                            sizeof(*builder->functions)));
    for (size_t i = 0; i < list->count; i++) {
        SJ_TRY(add_import(builder, list, &list->items[i]));
    }
    return SJ_OK;
}

sj_status sj_plan_library_calls(sj_builder *builder)
{
    const sj_module *module = builder->module;
    import_list list = {.symbols = find_type(&module->elf, SHT_DYNSYM)};
    if (module->machine->relocation_slot == 0 || list.symbols == NULL || module->is_go) {
        return SJ_OK;
    }
    sj_status status = collect_slots(module, &list);
    if (status == SJ_OK && list.count > 0) {
        qsort(list.items, list.count, sizeof(*list.items), compare_slots);
        remove_duplicates(&list);
        mark_loaded_slots(module, &list);
        status = add_imports(builder, &list);
    }
    free(list.items);
    return status;
}
