#include "agent/planner/map_evidence.h"

#include "agent/planner/machine.h"
#include "proto/base/bisect.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* Design notes. If the map is of this build, a function starts where an unwind range starts. If the
 * map gives sizes, it also ends where the range ends. Labels in hand-written code are exceptions,
 * so one symbol in fifty may differ. A symbol outside of the unwind tables does not count:
 * hand-written code and start files have no unwind tables.
 *
 * Without unwind tables, the bytes before each function are checked. Before a function there is a
 * return, a jump, a call or padding. Before an arbitrary address this is so one time in four. */

enum { ALLOWED_IN = 50, ENOUGH_KNOWN = 8, BEHIND_AN_END_PERCENT = 60 };

typedef struct evidence {
    size_t agree;
    size_t differ;
    const sj_symbol *first; /* the first symbol that differs */
    const char *why;
} evidence;

/* Counts a symbol that agrees or differs, and keeps the first one that differs. */
static void count_symbol(evidence *found, bool agrees, const sj_symbol *symbol, const char *why)
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

/* True for an address in a procedure linkage table, which has one unwind range for all its
 * entries. */
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

/* Compares a symbol with the unwind range that contains its first byte. `sized` says that the map
 * gives sizes. */
static void check_range(const sj_module *module, const sj_symbol *symbol, bool sized,
                        evidence *found)
{
    const sj_fde *range = sj_eh_frame_find(&module->unwind, symbol->address);
    if (range == NULL) {
        const sj_fde *last =
            sized ? sj_eh_frame_find(&module->unwind, symbol->address + symbol->size - 1) : NULL;
        if (last != NULL && !is_linkage(module, last->start)) {
            count_symbol(found, false, symbol, "another function begins inside of it");
        }
    } else if (range->start == symbol->address) {
        count_symbol(found, !sized || range->end - range->start == symbol->size, symbol,
                     "the function there has another size");
    } else if (!is_linkage(module, symbol->address)) {
        count_symbol(found, false, symbol, "no function begins there");
    }
}

static void check_unwind_tables(const sj_module *module, const sj_map_symbols *map, bool sized,
                                evidence *found)
{
    for (size_t i = 0; i < map->count; i++) {
        const sj_symbol *symbol = &map->items[i];
        if (is_in_text(module, symbol->address) && (!sized || symbol->size != 0)) {
            check_range(module, symbol, sized, found);
        }
    }
}

static int compare_names(const void *left, const void *right)
{
    const sj_symbol *const *a = left;
    const sj_symbol *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Checks whether a symbol of the map has the name and the address of `own`, a symbol of the
 * module. */
static void check_name(const sj_symbol *own, const sj_symbol **sorted, size_t count,
                       evidence *found)
{
    const size_t first = SJ_BISECT(0, count, i, strcmp(sorted[i]->name, own->name) < 0);
    size_t low = first;
    while (low < count && strcmp(sorted[low]->name, own->name) == 0) {
        if (sorted[low++]->address == own->address) {
            count_symbol(found, true, NULL, NULL);
            return;
        }
    }
    if (low != first) {
        count_symbol(found, false, sorted[first], "the program has it elsewhere");
    }
}

/* Looks up the module's own global functions in the map by name. */
static sj_status check_names(const sj_module *module, size_t own_count, const sj_map_symbols *map,
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
            check_name(own, sorted, map->count, found);
        }
    }
    free(sorted);
    return SJ_OK;
}

/* Reads address and size of the output section .text from a line of a map. GNU ld writes them after
 * the name, and lld before it. Returns false for other lines. */
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

/* Compares address and size of .text in the linker's map with those in the file. */
static sj_status check_section(const sj_module *module, const sj_map_symbols *map, sj_error *error)
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

/* Checks that the bytes before each function of the map may end a function. */
static void check_code(const sj_module *module, const sj_map_symbols *map, evidence *found)
{
    enum { LONGEST = 8 };
    for (size_t i = 0; i < map->count; i++) {
        const uint64_t address = map->items[i].address;
        if (is_in_text(module, address) && address - module->text_low >= LONGEST) {
            count_symbol(
                found,
                module->machine->ends_before(module->text + (uint32_t)(address - module->text_low)),
                &map->items[i], "it is in the middle of code");
        }
    }
}

/* Returns the number of a symbol's line in the map file, from 1. */
static unsigned line_of(const sj_map_symbols *map, const sj_symbol *symbol)
{
    const size_t end = (size_t)(symbol->name - map->names);
    unsigned line = 1;
    for (size_t i = 0; i < end && i < map->bytes.size; i++) {
        line += map->bytes.data[i] == '\n';
    }
    return line;
}

static sj_status report_mismatch(const sj_map_symbols *map, const evidence *found, sj_error *error)
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
    SJ_TRY(check_section(module, map, error));
    check_unwind_tables(module, map, has_sizes(map), &tables);
    if (tables.differ * ALLOWED_IN > tables.agree + tables.differ) {
        return report_mismatch(map, &tables, error);
    }
    if (check_names(module, own_count, map, &names) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory for symbols");
    }
    if (names.differ * ALLOWED_IN > names.agree + names.differ) {
        return report_mismatch(map, &names, error);
    }
    if (tables.agree + names.agree >= ENOUGH_KNOWN) {
        return SJ_OK;
    }
    check_code(module, map, &code);
    const size_t checked = code.agree + code.differ;
    if (checked >= ENOUGH_KNOWN && code.agree * 100 < checked * BEHIND_AN_END_PERCENT) {
        return report_mismatch(map, &code, error);
    }
    return SJ_OK;
}
