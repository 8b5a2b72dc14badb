#include "agent/zombies/guard_sites.h"

#include "agent/abi/page.h"
#include "agent/objfile/debug_file.h"
#include "agent/objfile/symbols.h"
#include "agent/policy/pattern.h"

#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEBUG_ROOT "/usr/lib/debug"

/* True if one of the patterns matches the symbol. */
static bool matches_any(const char *patterns, const char *symbol)
{
    const char *end = patterns + SJ_ZOMBIE_PATTERNS_BYTES;
    for (const char *at = patterns; at < end && *at != '\0';
         at += strnlen(at, (size_t)(end - at)) + 1) {
        sj_error error = {0};
        sj_pattern pattern = {0};
        const bool fits = sj_pattern_make(at, &pattern, &error) == SJ_OK &&
                          sj_pattern_matches_symbol(&pattern, symbol);
        sj_pattern_free(&pattern);
        if (fits) {
            return true;
        }
    }
    return false;
}

static void add_site(sj_zombie_region *region, uint64_t low, uint64_t high)
{
    const uint32_t count = atomic_load(&region->site_count);
    for (uint32_t i = 0; i < count && i < SJ_ZOMBIE_SITES; i++) {
        if (region->sites[i].low == low) {
            return;
        }
    }
    if (count < SJ_ZOMBIE_SITES) {
        region->sites[count] = (sj_zombie_site){.low = low, .high = high};
        atomic_store_explicit(&region->site_count, count + 1, memory_order_release);
    }
}

/* Adds the matching functions of one symbol table. */
static void add_table(sj_zombie_region *region, const char *patterns, uint64_t bias,
                      const sj_elf *elf, uint32_t section, sj_symbol_source source)
{
    sj_symbols symbols = {0};
    if (sj_symbols_read(elf, section, source, &symbols) == SJ_OK) {
        for (size_t i = 0; i < symbols.count; i++) {
            const sj_symbol *symbol = &symbols.items[i];
            if (symbol->size != 0 && matches_any(patterns, symbol->name)) {
                add_site(region, bias + symbol->address, bias + symbol->address + symbol->size);
            }
        }
    }
    sj_symbols_free(&symbols);
}

void sj_guard_sites_add(sj_zombie_region *region, const char *patterns, uint64_t bias,
                        const char *path)
{
    char debug_path[PATH_MAX];
    sj_elf elf = {0};
    sj_elf debug = {0};
    sj_error error = {0};
    if (sj_elf_open(path, &elf, &error) != SJ_OK) {
        return;
    }
    add_table(region, patterns, bias, &elf, SHT_SYMTAB, SJ_SYMBOL_SYMTAB);
    add_table(region, patterns, bias, &elf, SHT_DYNSYM, SJ_SYMBOL_DYNSYM);
    if (sj_debug_file_find(&elf, path, DEBUG_ROOT, &debug, debug_path, sizeof(debug_path)) ==
            SJ_OK ||
        sj_mini_debug_open(&elf, &debug) == SJ_OK) {
        add_table(region, patterns, bias, &debug, SHT_SYMTAB, SJ_SYMBOL_DEBUG_FILE);
        sj_elf_close(&debug);
    }
    sj_elf_close(&elf);
}

bool sj_guard_sites_find_bias(const sj_elf *elf, const sj_guard_mapping *mapping, uint64_t *bias)
{
    const uint64_t end = mapping->offset + (mapping->high - mapping->low);
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const sj_elf_segment *segment = &elf->segments[i];
        const uint64_t first = sj_page_start(segment->offset);
        const uint64_t last = sj_page_round_up(segment->offset + segment->file_bytes);
        if (segment->type == PT_LOAD && (segment->flags & PF_X) != 0 && mapping->offset >= first &&
            end <= last) {
            *bias = mapping->low - (segment->address - segment->offset + mapping->offset);
            return true;
        }
    }
    return false;
}

static bool find_bias_in_file(const char *path, const sj_guard_mapping *mapping, uint64_t *bias)
{
    sj_elf elf = {0};
    sj_error error = {0};
    if (sj_elf_open(path, &elf, &error) != SJ_OK) {
        return false;
    }
    const bool found = sj_guard_sites_find_bias(&elf, mapping, bias);
    sj_elf_close(&elf);
    return found;
}

void sj_guard_sites_add_mapped(sj_zombie_region *region, const char *patterns, pid_t pid)
{
    char name[64];
    char line[PATH_MAX + 128];
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    FILE *maps = patterns[0] != '\0' ? fopen(name, "re") : NULL;
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        sj_guard_mapping mapping = {0};
        uint64_t bias = 0;
        char *path = strchr(line, '/');
        if (path != NULL && sscanf(line, "%" SCNx64 "-%" SCNx64 " r%*cxp %" SCNx64, &mapping.low,
                                   &mapping.high, &mapping.offset) == 3) {
            path[strcspn(path, "\n")] = '\0';
            if (find_bias_in_file(path, &mapping, &bias)) {
                sj_guard_sites_add(region, patterns, bias, path);
            }
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}
