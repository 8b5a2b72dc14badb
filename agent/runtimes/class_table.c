#include "agent/runtimes/class_table.h"

#include "agent/objfile/elf_view.h"
#include "agent/objfile/system_library.h"
#include "agent/runtimes/runtime.h"
#include "proto/base/array.h"

#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 4096 };

typedef struct class_entry {
    struct class_entry *next; /* Next entry of the same bucket. */
    sj_known_class class;
} class_entry;

/* A class or metaclass in a file. */
typedef struct class_place {
    uint64_t address; /* Module offset. */
    const class_entry *entry;
    bool is_meta;
} class_place;

typedef struct class_file {
    char *path;
    uint64_t start;      /* Virtual address of the file's first byte. */
    class_place *places; /* Sorted by address. */
    size_t place_count;
    size_t place_capacity;
    bool is_system;
} class_file;

/* A file that a process has mapped. */
typedef struct class_module {
    uint64_t process;
    uint64_t bias;
    size_t file; /* Index in `files`. */
} class_module;

struct sj_class_table {
    pthread_mutex_t mutex; /* Guards all members below. */
    class_entry *buckets[BUCKETS];
    class_file *files;
    size_t file_count;
    size_t file_capacity;
    class_module *modules; /* Only modules that have classes. */
    size_t module_count;
    size_t module_capacity;
};

sj_status sj_class_table_new(sj_class_table **table)
{
    sj_class_table *new_table = calloc(1, sizeof(*new_table));
    if (new_table == NULL) {
        return SJ_ENOMEM;
    }
    pthread_mutex_init(&new_table->mutex, NULL);
    *table = new_table;
    return SJ_OK;
}

static void free_entry(class_entry *entry)
{
    free((char *)(uintptr_t)entry->class.name);
    free((char *)(uintptr_t)entry->class.super);
    free(entry);
}

void sj_class_table_free(sj_class_table *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            class_entry *entry = table->buckets[i];
            table->buckets[i] = entry->next;
            free_entry(entry);
        }
    }
    for (size_t i = 0; i < table->file_count; i++) {
        free(table->files[i].path);
        free(table->files[i].places);
    }
    free(table->files);
    free(table->modules);
    pthread_mutex_destroy(&table->mutex);
    free(table);
}

static class_entry **bucket_of(sj_class_table *table, const char *name)
{
    uint32_t hash = 2166136261U;
    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * 16777619U;
    }
    return &table->buckets[hash % BUCKETS];
}

static const class_entry *find_entry(sj_class_table *table, const char *name)
{
    const class_entry *entry = *bucket_of(table, name);
    while (entry != NULL && strcmp(entry->class.name, name) != 0) {
        entry = entry->next;
    }
    return entry;
}

bool sj_class_table_find(void *context, const char *name, sj_known_class *class)
{
    sj_class_table *table = context;
    pthread_mutex_lock(&table->mutex);
    const class_entry *entry = find_entry(table, name);
    if (entry != NULL) {
        *class = entry->class;
    }
    pthread_mutex_unlock(&table->mutex);
    return entry != NULL;
}

/* Writes the entry of a class to `*named`; adds it if the name is new. */
static sj_status add_name(sj_class_table *table, const sj_runtime_class *class, bool is_system,
                          const class_entry **named)
{
    *named = find_entry(table, class->name);
    if (*named != NULL) {
        return SJ_OK;
    }
    class_entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return SJ_ENOMEM;
    }
    entry->class.name = strdup(class->name);
    entry->class.super = class->super != NULL ? strdup(class->super) : NULL;
    entry->class.is_system = is_system;
    if (entry->class.name == NULL || (class->super != NULL && entry->class.super == NULL)) {
        free_entry(entry);
        return SJ_ENOMEM;
    }
    class_entry **bucket = bucket_of(table, class->name);
    entry->next = *bucket;
    *bucket = entry;
    *named = entry;
    return SJ_OK;
}

static sj_status add_class(void *context, const sj_runtime_class *class)
{
    sj_class_table *table = context;
    class_file *file = &table->files[table->file_count - 1];
    const class_entry *entry = NULL;
    SJ_TRY(add_name(table, class, file->is_system, &entry));
    SJ_TRY(sj_array_reserve(&file->places, &file->place_capacity, file->place_count, 2,
                            sizeof(*file->places)));
    file->places[file->place_count++] = (class_place){.address = class->address, .entry = entry};
    file->places[file->place_count++] =
        (class_place){.address = class->meta, .entry = entry, .is_meta = true};
    return SJ_OK;
}

static int compare_places(const void *left, const void *right)
{
    const class_place *a = left;
    const class_place *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

bool sj_class_table_find_isa(sj_class_table *table, uint64_t process, uint64_t isa,
                             sj_known_class *class, bool *is_meta)
{
    const class_place *found = NULL;
    pthread_mutex_lock(&table->mutex);
    for (size_t i = 0; i < table->module_count && found == NULL; i++) {
        const class_module *module = &table->modules[i];
        const class_file *file = &table->files[module->file];
        const class_place key = {.address = isa - module->bias};
        if (module->process == process && file->place_count != 0) {
            found = bsearch(&key, file->places, file->place_count, sizeof(key), compare_places);
        }
    }
    if (found != NULL) {
        *class = found->entry->class;
        *is_meta = found->is_meta;
    }
    pthread_mutex_unlock(&table->mutex);
    return found != NULL;
}

bool sj_class_table_meet(sj_class_table *table, pid_t pid, uint64_t isa, sj_known_class *class,
                         bool *is_meta)
{
    sj_live_class live;
    const class_entry *entry = NULL;
    if (pid == 0 || !sj_runtimes_read_live_class(pid, isa, &live)) {
        return false;
    }
    const sj_runtime_class new_table = {.name = live.name,
                                        .super = live.super[0] != '\0' ? live.super : NULL};
    pthread_mutex_lock(&table->mutex);
    if (add_name(table, &new_table, sj_runtimes_is_system_class(live.name), &entry) == SJ_OK) {
        *class = entry->class;
        *is_meta = live.is_meta;
    }
    pthread_mutex_unlock(&table->mutex);
    return entry != NULL;
}

sj_status sj_class_table_add(sj_class_table *table, const char *name, const char *super)
{
    const class_entry *entry = NULL;
    const sj_runtime_class class = {.name = name, .super = super};
    pthread_mutex_lock(&table->mutex);
    const sj_status status = add_name(table, &class, sj_runtimes_is_system_class(name), &entry);
    pthread_mutex_unlock(&table->mutex);
    return status;
}

sj_status sj_class_table_learn(sj_class_table *table, sj_slice lineage)
{
    const char *name = (const char *)lineage.data;
    const char *const end = name + lineage.size;
    sj_status status = SJ_OK;
    pthread_mutex_lock(&table->mutex);
    while (name < end && status == SJ_OK) {
        const class_entry *entry = NULL;
        const char *super = name + strlen(name) + 1;
        /* In a lineage of metaclasses, the name of the root class appears twice: the root metaclass
         * is a subclass of the root class. */
        const bool has_super = super < end && strcmp(super, name) != 0;
        const sj_runtime_class class = {.name = name, .super = has_super ? super : NULL};
        status = add_name(table, &class, sj_runtimes_is_system_class(name), &entry);
        name = super;
    }
    pthread_mutex_unlock(&table->mutex);
    return status;
}

static sj_status read_classes(sj_class_table *table, class_file *file, const char *path)
{
    sj_elf elf = {0};
    sj_error error = {0};
    if (sj_elf_open(path, &elf, &error) != SJ_OK) {
        return SJ_OK;
    }
    for (uint32_t i = 0; i < elf.segment_count; i++) {
        if (elf.segments[i].type == PT_LOAD && elf.segments[i].offset == 0) {
            file->start = elf.segments[i].address;
        }
    }
    const sj_status status = sj_runtimes_find_classes(&elf, add_class, table);
    sj_elf_close(&elf);
    if (file->place_count != 0) {
        qsort(file->places, file->place_count, sizeof(*file->places), compare_places);
    }
    return status;
}

/* Reads the classes of a file unless it was read before. Writes the file's index to `*file_index`.
 */
static sj_status read_file(sj_class_table *table, const char *path, const char *sysroot,
                           size_t *file_index)
{
    char in_root[PATH_MAX];
    for (*file_index = 0; *file_index < table->file_count; ++*file_index) {
        if (strcmp(table->files[*file_index].path, path) == 0) {
            return SJ_OK;
        }
    }
    SJ_TRY(sj_array_reserve(&table->files, &table->file_capacity, table->file_count, 1,
                            sizeof(*table->files)));
    class_file *file = &table->files[table->file_count];
    *file = (class_file){.path = strdup(path), .is_system = sj_is_system_library(path)};
    if (file->path == NULL) {
        return SJ_ENOMEM;
    }
    table->file_count++;
    const bool is_in_root = sysroot != NULL && sysroot[0] != '\0' &&
                            snprintf(in_root, sizeof(in_root), "%s%s", sysroot, path) < PATH_MAX &&
                            access(in_root, R_OK) == 0;
    return read_classes(table, file, is_in_root ? in_root : path);
}

/* Adds a module of a process whose first byte is mapped at `low`. */
static sj_status add_module(sj_class_table *table, uint64_t process, const char *path,
                            const char *sysroot, uint64_t low)
{
    size_t file_index = 0;
    SJ_TRY(read_file(table, path, sysroot, &file_index));
    const class_file *file = &table->files[file_index];
    const class_module module = {.process = process, .bias = low - file->start, .file = file_index};
    for (size_t i = 0; i < table->module_count; i++) {
        class_module *known = &table->modules[i];
        if (known->process == process && known->bias == module.bias) {
            *known = module; /* A module that was unmapped may have had the same bias. */
            return SJ_OK;
        }
    }
    if (file->place_count == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&table->modules, &table->module_capacity, table->module_count, 1,
                            sizeof(*table->modules)));
    table->modules[table->module_count++] = module;
    return SJ_OK;
}

/* Reads a line of /proc/PID/maps and adds its module. `*low` is the address at which the latest
 * line mapped the first byte of a file. */
static sj_status parse_line(sj_class_table *table, uint64_t process, char *line,
                            const char *sysroot, uint64_t *low)
{
    uint64_t start = 0;
    uint64_t offset = 0;
    char access_text[8] = "";
    const char *path = strchr(line, '/');
    line[strcspn(line, "\n")] = '\0';
    if (path == NULL ||
        sscanf(line, "%" SCNx64 "-%*x %7s %" SCNx64, &start, access_text, &offset) != 3) {
        return SJ_OK;
    }
    if (offset == 0) {
        *low = start;
    }
    /* Skips mapped data files, which have no executable mapping. An emulator maps its program's
     * code not executable, so there the mapping of the first byte counts. */
    const bool is_code =
        sysroot != NULL && sysroot[0] != '\0' ? offset == 0 : access_text[2] == 'x';
    return is_code ? add_module(table, process, path, sysroot, *low) : SJ_OK;
}

sj_status sj_class_table_read_process(sj_class_table *table, uint64_t file_index, pid_t pid,
                                      const char *sysroot)
{
    char name[64];
    char line[PATH_MAX + 128];
    uint64_t low = 0;
    sj_status status = SJ_OK;
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    if (maps == NULL) {
        return SJ_OK;
    }
    pthread_mutex_lock(&table->mutex);
    while (status == SJ_OK && fgets(line, sizeof(line), maps) != NULL) {
        status = parse_line(table, file_index, line, sysroot, &low);
    }
    pthread_mutex_unlock(&table->mutex);
    fclose(maps);
    return status;
}
