#include "agent/inproc/hooks/definition.h"

#include "agent/inproc/hooks/dynamic_view.h"
#include "agent/inproc/hooks/module_walk.h"

#include <elf.h>
#include <string.h>

enum { VERSION_MASK = 0x7fff, VERSION_HIDDEN = 0x8000, FIRST_VERSION = 2 };

typedef struct definition_search {
    const char *name;
    const char *version;
    uint32_t hash;
    uint32_t named; /* number of defined symbols with that name */
    uint32_t count; /* number of those that match the version, too */
    uint8_t type;
    uint64_t address;
} definition_search;

/* Returns the name of version `number` that the module defines, or NULL if the module does not
 * define it. */
static const char *defined_version(const sj_dynamic_view *view, uint16_t number)
{
    const uint8_t *at = (const uint8_t *)view->defined;
    for (bool has_more = at != NULL; has_more;) {
        const ElfW(Verdef) *entry = (const ElfW(Verdef) *)(const void *)at;
        if ((entry->vd_ndx & VERSION_MASK) == number && entry->vd_cnt != 0) {
            const ElfW(Verdaux) *detail = (const ElfW(Verdaux) *)(const void *)(at + entry->vd_aux);
            return view->strings + detail->vda_name;
        }
        has_more = entry->vd_next != 0;
        at += entry->vd_next;
    }
    return NULL;
}

/* True if the symbol has the wanted version. If no version is wanted, or if the symbol has none,
 * true unless the symbol is hidden. */
static bool has_version(const definition_search *search, const sj_dynamic_view *view,
                        uint32_t symbol)
{
    const uint16_t number = view->versions != NULL ? view->versions[symbol] : 1;
    if (search->version == NULL || (number & VERSION_MASK) < FIRST_VERSION) {
        return (number & VERSION_HIDDEN) == 0;
    }
    const char *version = defined_version(view, number & VERSION_MASK);
    return version != NULL && strcmp(version, search->version) == 0;
}

/* Counts a module without a hash table as two definitions and stops: the module cannot be searched,
 * so no definition is certain. */
static int search_module(struct dl_phdr_info *info, size_t size, void *context)
{
    definition_search *search = context;
    sj_dynamic_view view;
    (void)size;
    if (!sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    if (view.hash == NULL) {
        search->count += 2;
        return 1;
    }
    for (uint32_t index = 0; sj_symbol_next(&view, search->name, search->hash, &index);) {
        const ElfW(Sym) *symbol = &view.symbols[index];
        search->named++;
        if (has_version(search, &view, index)) {
            search->count++;
            search->type = ELF64_ST_TYPE(symbol->st_info);
            search->address = view.bias + symbol->st_value;
        }
    }
    return 0;
}

/* Returns the address of the function that was found. Calls the resolver of an indirect function.
 * Returns 0 for data, and if only the loader can resolve the function. */
static uint64_t address_of_function(const definition_search *search)
{
    if (search->type == STT_GNU_IFUNC && SJ_MACHINE_RESOLVERS_ARE_BARE) {
        /* On other machines a resolver needs arguments that only the loader has. */
        return ((uint64_t(*)(void))search->address)();
    }
    return search->type == STT_FUNC ? search->address : 0;
}

uint64_t sj_definition_find(const char *name, const char *version)
{
    definition_search search = {.name = name, .version = version, .hash = sj_symbol_hash(name)};
    (void)sj_module_walk(search_module, &search);
    return search.count == 1 ? address_of_function(&search) : 0;
}

/* Stops at the first module that defines the name. */
static int search_oldest(struct dl_phdr_info *info, size_t size, void *context)
{
    definition_search *search = context;
    sj_dynamic_view view;
    (void)size;
    if (!sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    for (uint32_t index = 0; sj_symbol_next(&view, search->name, search->hash, &index);) {
        const uint16_t number = view.versions != NULL ? view.versions[index] & VERSION_MASK : 0;
        const ElfW(Sym) *symbol = &view.symbols[index];
        search->named++;
        if (number == FIRST_VERSION) {
            search->type = ELF64_ST_TYPE(symbol->st_info);
            search->address = view.bias + symbol->st_value;
        }
    }
    return search->named != 0;
}

uint64_t sj_definition_oldest(const char *name)
{
    definition_search search = {.name = name, .hash = sj_symbol_hash(name)};
    (void)sj_module_walk(search_oldest, &search);
    return search.named > 1 && search.address != 0 ? address_of_function(&search) : 0;
}

bool sj_definition_is_missing(const char *name)
{
    definition_search search = {.name = name, .hash = sj_symbol_hash(name)};
    (void)sj_module_walk(search_module, &search);
    return search.named == 0 && search.count == 0;
}

typedef struct code_search {
    uint64_t address;
    bool is_code;
} code_search;

static int search_segments(struct dl_phdr_info *info, size_t size, void *context)
{
    code_search *search = context;
    (void)size;
    for (uint32_t i = 0; i < info->dlpi_phnum && !search->is_code; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        search->is_code = segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 &&
                          search->address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz;
    }
    return search->is_code;
}

bool sj_definition_is_code(uint64_t address)
{
    code_search search = {.address = address};
    (void)sj_module_walk(search_segments, &search);
    return search.is_code;
}
