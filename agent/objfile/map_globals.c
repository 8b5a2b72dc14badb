#include "agent/objfile/map_globals.h"

#include "agent/objfile/map_file.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sj_status read_file(const char *path, uint8_t **bytes, size_t *size, sj_error *error)
{
    FILE *file = fopen(path, "rbe");
    long end = -1;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET) != 0) {
        sj_fail(error, SJ_ENOTFOUND, "cannot read map file %s: %s", path, strerror(errno));
        if (file != NULL) {
            fclose(file);
        }
        return SJ_ENOTFOUND;
    }
    *bytes = malloc((size_t)end + 1);
    *size = *bytes != NULL ? fread(*bytes, 1, (size_t)end, file) : 0;
    fclose(file);
    return *bytes != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "no memory for map file %s", path);
}

/* Returns the data section that contains an address, or NULL. */
static const sj_elf_section *find_data(const sj_elf *elf, uint64_t address)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const sj_elf_section *section = &elf->sections[i];
        const bool is_data =
            (section->flags & SHF_ALLOC) != 0 && (section->flags & (SHF_EXECINSTR | SHF_TLS)) == 0;
        if (is_data && address >= section->address && address - section->address < section->size) {
            return section;
        }
    }
    return NULL;
}

static int compare_addresses(const void *left, const void *right)
{
    const sj_symbol *a = left;
    const sj_symbol *b = right;
    return a->address != b->address ? (a->address < b->address ? -1 : 1) : strcmp(a->name, b->name);
}

/* Removes the symbols that are not in a data section, and sorts the others by address. */
static void keep_data(const sj_elf *elf, sj_symbols *symbols)
{
    size_t kept_count = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        if (find_data(elf, symbols->items[i].address) != NULL) {
            symbols->items[kept_count++] = symbols->items[i];
        }
    }
    symbols->count = kept_count;
    if (kept_count != 0) {
        qsort(symbols->items, kept_count, sizeof(*symbols->items), compare_addresses);
    }
}

/* Gives each symbol without a size the bytes up to the next symbol or the end of its section. */
static void fill_sizes(const sj_elf *elf, sj_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++) {
        sj_symbol *symbol = &symbols->items[i];
        const sj_elf_section *section = find_data(elf, symbol->address);
        uint64_t end = section->address + section->size;
        for (size_t next = i + 1; next < symbols->count; next++) {
            if (symbols->items[next].address > symbol->address) {
                end = symbols->items[next].address < end ? symbols->items[next].address : end;
                break;
            }
        }
        symbol->size = symbol->size != 0 ? symbol->size : end - symbol->address;
    }
}

sj_status sj_map_globals_read(const char *program, const char *map_file, sj_map_globals *globals,
                              sj_error *error)
{
    sj_elf elf = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    *globals = (sj_map_globals){0};
    SJ_TRY(read_file(map_file, &bytes, &size, error));
    sj_status status =
        sj_map_parse((sj_slice){.data = bytes, .size = size}, &globals->names, &globals->symbols);
    free(bytes);
    if (status != SJ_OK) {
        sj_fail(error, status, "map file %s has no line of a known format", map_file);
    } else {
        status = sj_elf_open(program, &elf, error);
    }
    if (status == SJ_OK) {
        keep_data(&elf, &globals->symbols);
        fill_sizes(&elf, &globals->symbols);
    } else {
        sj_map_globals_deinit(globals);
    }
    sj_elf_close(&elf);
    return status;
}

void sj_map_globals_deinit(sj_map_globals *globals)
{
    free(globals->symbols.items);
    free(globals->names);
    *globals = (sj_map_globals){0};
}
