#include "agent/planner/map_evidence.h"

#include "agent/planner/machine.h"
#include "proto/base/bisect.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* Design notes. A symbol outside the unwind tables shows nothing: hand-written code and start files
 * have no unwind tables. A function of the same build starts where an unwind range starts. If the
 * map gives sizes, it ends where the range ends. Labels in hand-written code are the few allowed
 * exceptions.
 *
 * Without unwind tables, a function follows the end of another one: a return, a jump, or padding.
 * An arbitrary address does so one time in four. */

enum { ALLOWED_IN = 50, ENOUGH_KNOWN = 8, BEHIND_AN_END_PERCENT = 60 };

typedef struct evidence {
    size_t agree;
    size_t differ;
    const sj_symbol *first; /* the first one that differs */
    const char *why;
} evidence;

static void note(evidence *found, bool agrees, const sj_symbol *symbol, const char *why)
{
    found->agree += agrees;
    found->differ += !agrees;
    if (!agrees && found->first == NULL) {
        found->first = symbol;
        found->why = why;
    }
}

static bool is_in_text(const sj_module *module, uint64_t address)
{
    return address >= module->text_low && address - module->text_low < module->text_bytes;
}

/* True for a linkage table, which has one unwind range for all entries. */
static bool is_linkage(const sj_module *module, uint64_t address)
{
    for (uint32_t i = 0; i < module->elf.section_count; i++) {
        const sj_elf_section *section = &module->elf.sections[i];
        if (address >= section->address && address - section->address < section->size &&
            strncmp(section->name, ".plt", 4) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_sizes(const sj_map_symbols *map)
{
    for (size_t i = 0; i < map->count; i++) {
        if (map->items[i].size != 0) {
            return true;
        }
    }
    return false;
}

/* Compares one symbol with the unwind range that contains its first byte. */
static void ask_range(const sj_module *module, const sj_symbol *symbol, bool sized, evidence *found)
{
    const sj_fde *range = sj_eh_frame_find(&module->unwind, symbol->address);
    if (range == NULL) {
        const sj_fde *last =
            sized ? sj_eh_frame_find(&module->unwind, symbol->address + symbol->size - 1) : NULL;
        if (last != NULL && !is_linkage(module, last->start)) {
            note(found, false, symbol, "another function begins inside of it");
        }
    } else if (range->start == symbol->address) {
        note(found, !sized || range->end - range->start == symbol->size, symbol,
             "the function there has another size");
    } else if (!is_linkage(module, symbol->address)) {
        note(found, false, symbol, "no function begins there");
    }
}

static void ask_unwind_tables(const sj_module *module, const sj_map_symbols *map, bool sized,
                              evidence *found)
{
    for (size_t i = 0; i < map->count; i++) {
        const sj_symbol *symbol = &map->items[i];
        if (is_in_text(module, symbol->address) && (!sized || symbol->size != 0)) {
            ask_range(module, symbol, sized, found);
        }
    }
}

static int compare_names(const void *left, const void *right)
{
    const sj_symbol *const *a = left;
    const sj_symbol *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Checks whether one of the map's symbols with the name of a symbol of the module has its
 * address. */
static void ask_name(const sj_symbol *own, const sj_symbol **sorted, size_t count, evidence *found)
{
    const size_t first = SJ_BISECT(0, count, i, strcmp(sorted[i]->name, own->name) < 0);
    size_t low = first;
    while (low < count && strcmp(sorted[low]->name, own->name) == 0) {
        if (sorted[low++]->address == own->address) {
            note(found, true, NULL, NULL);
            return;
        }
    }
    if (low != first) {
        note(found, false, sorted[first], "the program has it elsewhere");
    }
}

static sj_status ask_names(const sj_module *module, size_t own_count, const sj_map_symbols *map,
                           evidence *found)
{
    const sj_symbol **sorted = malloc((map->count + 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < map->count; i++) {
        sorted[i] = &map->items[i];
    }
    qsort(sorted, map->count, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < own_count; i++) {
        const sj_symbol *own = &module->symbols.items[i];
        if (!own->is_local && own->kind == SJ_SYMBOL_FUNCTION && own->name[0] != '\0') {
            ask_name(own, sorted, map->count, found);
        }
    }
    free(sorted);
    return SJ_OK;
}

/* Reads address and size from the line of the output section .text: after the name in maps of GNU
 * ld, before it in those of lld. */
static bool read_section_line(const char *line, uint64_t *address, uint64_t *size)
{
    unsigned long long numbers[4];
    int end = 0;
    if (sscanf(line, ".text 0x%llx 0x%llx", &numbers[0], &numbers[2]) == 2) {
        *address = numbers[0];
        *size = numbers[2];
        return true;
    }
    if (sscanf(line, " %llx %llx %llx %llu .text%n", &numbers[0], &numbers[1], &numbers[2],
               &numbers[3], &end) == 4 &&
        end != 0 && line[end] == '\0') {
        *address = numbers[0];
        *size = numbers[2];
        return true;
    }
    return false;
}

/* Compares the place of .text in the linker's map with that in the file. */
static sj_status ask_section(const sj_module *module, const sj_map_symbols *map, sj_error *error)
{
    const sj_elf_section *text = sj_elf_find_section(&module->elf, ".text");
    const char *at = (const char *)map->bytes.data;
    const char *const end = at + map->bytes.size;
    for (unsigned line = 1; at < end && text != NULL; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((newline != NULL ? newline : end) - at);
        char copy[128];
        uint64_t address;
        uint64_t size;
        snprintf(copy, sizeof(copy), "%.*s", (int)(length < sizeof(copy) ? length : 0), at);
        at += length + 1;
        if (read_section_line(copy, &address, &size) &&
            (address != text->address || size != text->size)) {
            return sj_fail(error, SJ_EINVAL,
                           "map file %.200s is of another build: line %u has the section .text at "
                           "%#llx with %#llx bytes, the program has it at %#llx with %#llx",
                           map->path, line, (unsigned long long)address, (unsigned long long)size,
                           (unsigned long long)text->address, (unsigned long long)text->size);
        }
    }
    return SJ_OK;
}

static void ask_code(const sj_module *module, const sj_map_symbols *map, evidence *found)
{
    enum { LONGEST = 8 };
    for (size_t i = 0; i < map->count; i++) {
        const uint64_t address = map->items[i].address;
        if (is_in_text(module, address) && address - module->text_low >= LONGEST) {
            note(
                found,
                module->machine->ends_before(module->text + (uint32_t)(address - module->text_low)),
                &map->items[i], "it is in the middle of code");
        }
    }
}

static unsigned line_of(const sj_map_symbols *map, const sj_symbol *symbol)
{
    const size_t end = (size_t)(symbol->name - map->names);
    unsigned line = 1;
    for (size_t i = 0; i < end && i < map->bytes.size; i++) {
        line += map->bytes.data[i] == '\n';
    }
    return line;
}

static sj_status refuse(const sj_map_symbols *map, const evidence *found, sj_error *error)
{
    return sj_fail(error, SJ_EINVAL,
                   "map file %.200s is of another build: line %u has %.100s at %#llx, but %s (%zu "
                   "of %zu functions are not where it says)",
                   map->path, line_of(map, found->first), found->first->name,
                   (unsigned long long)found->first->address, found->why, found->differ,
                   found->agree + found->differ);
}

sj_status sj_map_evidence_check(const sj_module *module, size_t own_count,
                                const sj_map_symbols *map, sj_error *error)
{
    evidence tables = {0};
    evidence names = {0};
    evidence code = {0};
    SJ_TRY(ask_section(module, map, error));
    ask_unwind_tables(module, map, has_sizes(map), &tables);
    if (tables.differ * ALLOWED_IN > tables.agree + tables.differ) {
        return refuse(map, &tables, error);
    }
    if (ask_names(module, own_count, map, &names) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory for symbols");
    }
    if (names.differ * ALLOWED_IN > names.agree + names.differ) {
        return refuse(map, &names, error);
    }
    if (tables.agree + names.agree >= ENOUGH_KNOWN) {
        return SJ_OK;
    }
    ask_code(module, map, &code);
    const size_t asked = code.agree + code.differ;
    if (asked >= ENOUGH_KNOWN && code.agree * 100 < asked * BEHIND_AN_END_PERCENT) {
        return refuse(map, &code, error);
    }
    return SJ_OK;
}
