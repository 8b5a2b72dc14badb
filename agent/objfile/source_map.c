#include "agent/objfile/source_map.h"

#include "agent/objfile/debug_file.h"
#include "agent/objfile/symbol_file.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct source_entry {
    uint64_t offset;
    char *file; /* owned */
    bool is_from_dwarf;
} source_entry;

struct sj_source_map {
    source_entry *entries; /* sorted by offset; entries from DWARF precede those from symbols */
    size_t count;
    size_t capacity;
};

static sj_status add_entry(sj_source_map *map, uint64_t offset, const char *file,
                           bool is_from_dwarf)
{
    SJ_TRY(sj_array_reserve(&map->entries, &map->capacity, map->count, 1, sizeof(*map->entries)));
    char *copy = strdup(file);
    if (copy == NULL) {
        return SJ_ENOMEM;
    }
    map->entries[map->count++] =
        (source_entry){.offset = offset, .file = copy, .is_from_dwarf = is_from_dwarf};
    return SJ_OK;
}

static sj_status add_line(void *context, uint64_t address, const char *file, int line)
{
    (void)line;
    return add_entry(context, address, file, true);
}

static sj_status add_source(void *context, uint64_t address, const char *file)
{
    return add_entry(context, address, file, false);
}

/* Adds the source files that a module or debug file names. Ignores a file that cannot be opened. */
static sj_status read_file(sj_source_map *map, const char *path)
{
    const sj_symbol_visitor visitor = {.context = map, .line = add_line, .source = add_source};
    sj_symbol_file *file = NULL;
    if (sj_symbol_file_open(path, &file, NULL) != SJ_OK) {
        return SJ_OK;
    }
    const sj_status status = sj_symbol_file_read(file, &visitor);
    sj_symbol_file_close(file);
    return status;
}

/* Adds the source files that the module's separate debug file names, if there is one. */
static sj_status read_debug_file(sj_source_map *map, const char *path)
{
    sj_elf elf;
    sj_elf debug;
    char debug_path[PATH_MAX];
    if (sj_elf_open(path, &elf, NULL) != SJ_OK) {
        return SJ_OK;
    }
    const bool is_found = sj_debug_file_find(&elf, path, "/usr/lib/debug", &debug, debug_path,
                                             sizeof(debug_path)) == SJ_OK;
    if (is_found) {
        sj_elf_close(&debug);
    }
    sj_elf_close(&elf);
    return is_found ? read_file(map, debug_path) : SJ_OK;
}

static int compare_entries(const void *left, const void *right)
{
    const source_entry *a = left;
    const source_entry *b = right;
    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    return (int)b->is_from_dwarf - (int)a->is_from_dwarf;
}

sj_status sj_source_map_new(const char *path, sj_source_map **map)
{
    sj_source_map *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = read_file(created, path);
    if (status == SJ_OK) {
        status = read_debug_file(created, path);
    }
    if (status != SJ_OK) {
        sj_source_map_free(created);
        return status;
    }
    if (created->count != 0) {
        qsort(created->entries, created->count, sizeof(*created->entries), compare_entries);
    }
    *map = created;
    return SJ_OK;
}

void sj_source_map_free(sj_source_map *map)
{
    if (map == NULL) {
        return;
    }
    for (size_t i = 0; i < map->count; i++) {
        free(map->entries[i].file);
    }
    free(map->entries);
    free(map);
}

const char *sj_source_map_find(const sj_source_map *map, uint64_t offset)
{
    const size_t low = SJ_BISECT(0, map->count, i, map->entries[i].offset < offset);
    return low < map->count && map->entries[low].offset == offset ? map->entries[low].file : NULL;
}
