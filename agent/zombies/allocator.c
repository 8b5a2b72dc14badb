#include "agent/zombies/allocator.h"

#include "agent/objfile/symbols.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Facts from the dynamic symbols of a module's file. */
typedef struct file_traits {
    bool has_malloc;
    bool has_free;
    bool has_new;
    bool is_sanitizer;
    bool is_collector;
} file_traits;

struct sj_allocator_files {
    sj_allocator_files *next;
    file_traits traits;
    char path[];
};

static void check_symbol(file_traits *traits, const char *name)
{
    static const char *const sanitizers[] = {"__asan_init", "__lsan_init", "__tsan_init",
                                             "__msan_init", "__hwasan_init"};
    for (size_t i = 0; i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++) {
        traits->is_sanitizer = traits->is_sanitizer || strcmp(name, sanitizers[i]) == 0;
    }
    traits->is_collector = traits->is_collector || strcmp(name, "GC_malloc") == 0;
    traits->has_malloc = traits->has_malloc || strcmp(name, "malloc") == 0;
    traits->has_free = traits->has_free || strcmp(name, "free") == 0;
    traits->has_new = traits->has_new || strcmp(name, "_Znwm") == 0;
}

/* Reads the traits of a file. All are false if it cannot be read. */
static file_traits read_traits(const char *path)
{
    sj_elf elf = {0};
    sj_symbols symbols = {0};
    sj_error error = {0};
    file_traits traits = {0};
    if (sj_elf_open(path, &elf, &error) != SJ_OK) {
        return traits;
    }
    if (sj_symbols_read(&elf, SHT_DYNSYM, SJ_SYMBOL_DYNSYM, &symbols) == SJ_OK) {
        for (size_t i = 0; i < symbols.count; i++) {
            check_symbol(&traits, symbols.items[i].name);
        }
    }
    sj_symbols_free(&symbols);
    sj_elf_close(&elf);
    return traits;
}

/* Returns the traits of a file, from the cache if possible. */
static file_traits traits_of(sj_allocator_files **files, const char *path)
{
    for (const sj_allocator_files *at = *files; at != NULL; at = at->next) {
        if (strcmp(at->path, path) == 0) {
            return at->traits;
        }
    }
    const file_traits traits = read_traits(path);
    const size_t bytes = strlen(path) + 1;
    sj_allocator_files *new_file = malloc(sizeof(*new_file) + bytes);
    if (new_file != NULL) {
        *new_file = (sj_allocator_files){.next = *files, .traits = traits};
        memcpy(new_file->path, path, bytes);
        *files = new_file;
    }
    return traits;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* If the file defines malloc and free, makes it the allocator. The program's own malloc replaces a
 * library's; otherwise, the first file wins. */
static void add_allocator(sj_allocator *found, const char *path, const file_traits *traits,
                          bool is_program)
{
    if (!traits->has_malloc || !traits->has_free || (found->allocator[0] != '\0' && !is_program)) {
        return;
    }
    snprintf(found->allocator, sizeof(found->allocator), "%s", path);
    found->is_program = is_program;
    found->why_not = traits->is_sanitizer   ? SJ_ZOMBIE_SANITIZER
                     : traits->is_collector ? SJ_ZOMBIE_COLLECTOR
                                            : SJ_ZOMBIE_MONITORED;
}

/* True for musl's C library, which is also its loader. */
static bool is_musl(const char *name)
{
    return begins_with(name, "ld-musl-") || strcmp(name, "libc.so") == 0;
}

static void add_file(sj_allocator_files **files, sj_allocator *found, const char *path,
                     const char *program)
{
    const char *name = strrchr(path, '/') + 1;
    if (strcmp(name, "libc.so.6") == 0) {
        snprintf(found->library, sizeof(found->library), "%s", path);
        return;
    }
    if (is_musl(name)) {
        snprintf(found->library, sizeof(found->library), "%s", path);
        found->is_musl = true;
        return;
    }
    if (begins_with(name, "ld-linux") || begins_with(name, "libsojourn-")) {
        return;
    }
    const file_traits traits = traits_of(files, path);
    add_allocator(found, path, &traits, strcmp(path, program) == 0);
    if (traits.has_new && (begins_with(name, "libstdc++.so.") || begins_with(name, "libc++"))) {
        snprintf(found->operators, sizeof(found->operators), "%s", path);
    }
}

static void find_program(pid_t pid, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    const ssize_t bytes = readlink(link, path, PATH_MAX - 1);
    path[bytes > 0 ? bytes : 0] = '\0';
}

void sj_allocator_find(sj_allocator_files **files, pid_t pid, sj_allocator *found)
{
    char name[64];
    char program[PATH_MAX];
    char line[PATH_MAX + 128];
    memset(found, 0, sizeof(*found));
    find_program(pid, program);
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        char *path = strchr(line, '/');
        const char *protection = strchr(line, ' ');
        if (path != NULL && protection != NULL && protection[3] == 'x') {
            path[strcspn(path, "\n")] = '\0';
            add_file(files, found, path, program);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    if (found->is_musl) {
        found->why_not = SJ_ZOMBIE_MUSL;
    }
    if (found->allocator[0] != '\0' && traits_of(files, found->allocator).has_new) {
        found->operators[0] = '\0';
    }
}

void sj_allocator_files_free(sj_allocator_files *files)
{
    while (files != NULL) {
        sj_allocator_files *freed = files;
        files = freed->next;
        free(freed);
    }
}
