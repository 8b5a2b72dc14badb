#include "agent/registry/library_types.h"

#include "agent/objfile/elf_view.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct library {
    char *path;               /* owned */
    sj_elf elf;               /* zeroed if the file is not ELF */
    sj_function_types *types; /* read when a function needs them; NULL: not yet */
} library;

struct sj_library_types {
    library *items;
    size_t count;
    size_t capacity;
};

static sj_status add_library(sj_library_types *libraries, const char *path)
{
    for (size_t i = 0; i < libraries->count; i++) {
        if (strcmp(libraries->items[i].path, path) == 0) {
            return SJ_OK;
        }
    }
    SJ_TRY(sj_array_reserve(&libraries->items, &libraries->capacity, libraries->count, 1,
                            sizeof(*libraries->items)));
    library *added = &libraries->items[libraries->count];
    *added = (library){.path = strdup(path)};
    if (added->path == NULL) {
        return SJ_ENOMEM;
    }
    libraries->count++;
    return sj_elf_open(path, &added->elf, NULL) == SJ_ENOMEM ? SJ_ENOMEM : SJ_OK;
}

sj_status sj_library_types_new(pid_t pid, const char *besides, sj_library_types **libraries)
{
    char line[PATH_MAX + 128];
    sj_status status = SJ_OK;
    sj_library_types *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(line, "re");
    while (file != NULL && status == SJ_OK && fgets(line, sizeof(line), file) != NULL) {
        const char *path = strchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        /* Devices are not opened, because opening one may have an effect. */
        if (path != NULL && strcmp(path, besides) != 0 && strncmp(path, "/dev/", 5) != 0) {
            status = add_library(made, path);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    if (status != SJ_OK) {
        sj_library_types_free(made);
        return status;
    }
    *libraries = made;
    return SJ_OK;
}

void sj_library_types_free(sj_library_types *libraries)
{
    for (size_t i = 0; libraries != NULL && i < libraries->count; i++) {
        sj_function_types_free(libraries->items[i].types);
        sj_elf_close(&libraries->items[i].elf);
        free(libraries->items[i].path);
    }
    free(libraries != NULL ? libraries->items : NULL);
    free(libraries);
}

static const sj_elf_section *find_type(const sj_elf *elf, uint32_t type)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (elf->sections[i].type == type && elf->sections[i].link < elf->section_count) {
            return &elf->sections[i];
        }
    }
    return NULL;
}

static sj_slice strings_of(const sj_elf *elf, const sj_elf_section *section)
{
    return sj_elf_section_bytes(elf, &elf->sections[section->link]);
}

/* Returns a library's SONAME; "": none. */
static const char *soname_of(const sj_elf *elf)
{
    const sj_elf_section *section = find_type(elf, SHT_DYNAMIC);
    if (section == NULL) {
        return "";
    }
    const sj_slice rows = sj_elf_section_bytes(elf, section);
    sj_reader reader = sj_reader_of(rows.data, rows.size);
    while (!reader.bad) {
        const uint64_t tag = sj_read_u64(&reader);
        const uint64_t value = sj_read_u64(&reader);
        if (reader.bad || tag == DT_NULL) {
            return "";
        }
        if (tag == DT_SONAME) {
            return sj_elf_string(strings_of(elf, section), value);
        }
    }
    return "";
}

static bool has_soname(const sj_elf *elf, const char *name, size_t bytes)
{
    const char *own = soname_of(elf);
    return own[0] != '\0' && strlen(own) == bytes && memcmp(own, name, bytes) == 0;
}

void sj_library_name(const char *path, char *name, size_t capacity)
{
    sj_elf elf;
    name[0] = '\0';
    if (sj_elf_open(path, &elf, NULL) == SJ_OK) {
        const char *own = soname_of(&elf);
        if (strlen(own) < capacity) {
            memcpy(name, own, strlen(own) + 1);
        }
        sj_elf_close(&elf);
    }
}

static bool is_exported(const sj_elf_symbol *symbol)
{
    return symbol->type == STT_FUNC && symbol->section != SHN_UNDEF && symbol->binding != STB_LOCAL;
}

/* Returns the address of a function that other modules can call; 0: it does not exist or has
 * several versions. */
static uint64_t find_function(const sj_elf *elf, const char *name)
{
    const sj_elf_section *section = find_type(elf, SHT_DYNSYM);
    uint64_t found = 0;
    if (section == NULL) {
        return 0;
    }
    const sj_slice rows = sj_elf_section_bytes(elf, section);
    const sj_slice strings = strings_of(elf, section);
    sj_elf_symbol symbol;
    for (uint32_t i = 0; sj_elf_symbol_at(rows, i, &symbol); i++) {
        if (!is_exported(&symbol) || strcmp(sj_elf_string(strings, symbol.name), name) != 0) {
            continue;
        }
        if (found != 0 && found != symbol.value) {
            return 0;
        }
        found = symbol.value;
    }
    return found;
}

static int compare_addresses(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left; /* the first member */
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static sj_status add_names(const sj_elf *elf, sj_exported_names *names)
{
    const sj_elf_section *section = find_type(elf, SHT_DYNSYM);
    if (section == NULL) {
        return SJ_OK;
    }
    const sj_slice rows = sj_elf_section_bytes(elf, section);
    const sj_slice strings = strings_of(elf, section);
    sj_elf_symbol symbol;
    for (uint32_t i = 0; sj_elf_symbol_at(rows, i, &symbol); i++) {
        if (is_exported(&symbol)) {
            SJ_TRY(sj_array_reserve(&names->items, &names->capacity, names->count, 1,
                                    sizeof(*names->items)));
            names->items[names->count].address = symbol.value;
            names->items[names->count].name = strdup(sj_elf_string(strings, symbol.name));
            SJ_TRY(names->items[names->count].name != NULL ? SJ_OK : SJ_ENOMEM);
            names->count++;
        }
    }
    return SJ_OK;
}

sj_status sj_exported_names_read(const char *path, sj_exported_names *names)
{
    sj_elf elf;
    const sj_status opened = sj_elf_open(path, &elf, NULL);
    if (opened != SJ_OK) {
        return opened == SJ_ENOMEM ? SJ_ENOMEM : SJ_OK;
    }
    const sj_status status = add_names(&elf, names);
    sj_elf_close(&elf);
    if (names->count != 0) {
        qsort(names->items, names->count, sizeof(*names->items), compare_addresses);
    }
    return status;
}

void sj_exported_names_deinit(sj_exported_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i].name);
    }
    free(names->items);
    *names = (sj_exported_names){0};
}

size_t sj_exported_names_find(const sj_exported_names *names, uint64_t address)
{
    const size_t low = SJ_BISECT(0, names->count, i, names->items[i].address < address);
    return low < names->count && names->items[low].address == address ? low : names->count;
}

sj_status sj_library_types_find(sj_library_types *libraries, const char *import,
                                sj_typed_function **function)
{
    const char *mark = strchr(import, '!');
    const size_t bytes = mark != NULL ? (size_t)(mark - import) : 0;
    library *definer = NULL;
    uint64_t address = 0;
    for (size_t i = 0; mark != NULL && i < libraries->count; i++) {
        library *candidate = &libraries->items[i];
        const bool is_named = bytes == 0 || has_soname(&candidate->elf, import, bytes);
        const uint64_t defined = is_named ? find_function(&candidate->elf, mark + 1) : 0;
        if (defined != 0 && definer != NULL) {
            return SJ_ENOTFOUND;
        }
        definer = defined != 0 ? candidate : definer;
        address = defined != 0 ? defined : address;
    }
    if (definer == NULL) {
        return SJ_ENOTFOUND;
    }
    if (definer->types == NULL) {
        SJ_TRY(sj_function_types_new(definer->path, &definer->types));
    }
    return sj_function_types_find(definer->types, address, mark + 1, function);
}
