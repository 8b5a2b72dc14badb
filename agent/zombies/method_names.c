#include "agent/zombies/method_names.h"

#include "agent/objfile/eh_frame.h"
#include "agent/runtimes/runtime.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

typedef struct named_method {
    uint64_t address;
    char *name;
} named_method;

typedef struct named_file {
    struct named_file *next;
    char *path;
    named_method *methods; /* Sorted by address. */
    size_t count;
    size_t capacity;
    sj_eh_frame frames; /* The ranges of functions. */
} named_file;

struct sj_method_names {
    named_file *files;
};

sj_status sj_method_names_new(sj_method_names **names)
{
    *names = calloc(1, sizeof(**names));
    return *names != NULL ? SJ_OK : SJ_ENOMEM;
}

static void free_file(named_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free(file->methods[i].name);
    }
    free(file->methods);
    free(file->path);
    sj_eh_frame_free(&file->frames);
    free(file);
}

void sj_method_names_free(sj_method_names *names)
{
    while (names != NULL && names->files != NULL) {
        named_file *freed = names->files;
        names->files = freed->next;
        free_file(freed);
    }
    free(names);
}

static sj_status add_method(void *context, const sj_runtime_function *function)
{
    named_file *file = context;
    SJ_TRY(
        sj_array_reserve(&file->methods, &file->capacity, file->count, 1, sizeof(*file->methods)));
    char *name = strdup(function->name);
    if (name == NULL) {
        return SJ_ENOMEM;
    }
    file->methods[file->count++] = (named_method){.address = function->address, .name = name};
    return SJ_OK;
}

static int compare_addresses(const void *left, const void *right)
{
    const named_method *a = left;
    const named_method *b = right;
    return a->address < b->address ? -1 : a->address > b->address ? 1 : 0;
}

/* Reads the methods of a file. Leaves them empty if the file cannot be read. */
static void read_file(named_file *file)
{
    sj_elf elf = {0};
    sj_error error = {0};
    if (sj_elf_open(file->path, &elf, &error) != SJ_OK) {
        return;
    }
    const sj_elf_section *section = sj_elf_find_section(&elf, ".eh_frame");
    if (section != NULL && sj_runtimes_find_functions(&elf, add_method, file) == SJ_OK &&
        file->count != 0) {
        qsort(file->methods, file->count, sizeof(*file->methods), compare_addresses);
        (void)!sj_eh_frame_read(sj_elf_section_bytes(&elf, section), section->address,
                                &file->frames);
    }
    sj_elf_close(&elf);
}

/* Returns a file, which is read at its first use. Returns NULL if out of memory. */
static named_file *get_file(sj_method_names *names, const char *path)
{
    for (named_file *at = names->files; at != NULL; at = at->next) {
        if (strcmp(at->path, path) == 0) {
            return at;
        }
    }
    named_file *new_file = calloc(1, sizeof(*new_file));
    if (new_file == NULL) {
        return NULL;
    }
    new_file->path = strdup(path);
    if (new_file->path == NULL) {
        free(new_file);
        return NULL;
    }
    read_file(new_file);
    new_file->next = names->files;
    names->files = new_file;
    return new_file;
}

const char *sj_method_names_find(sj_method_names *names, const char *path, uint64_t offset)
{
    named_file *file = get_file(names, path);
    const sj_fde *range = file != NULL ? sj_eh_frame_find(&file->frames, offset) : NULL;
    if (range == NULL || file->count == 0) {
        return NULL;
    }
    const named_method wanted = {.address = range->start};
    const named_method *found =
        bsearch(&wanted, file->methods, file->count, sizeof(wanted), compare_addresses);
    return found != NULL ? found->name : NULL;
}
