#include "agent/registry/own_libraries.h"

#include "agent/objfile/system_library.h"
#include "agent/runtimes/runtime.h"
#include "proto/base/array.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* True for libjq.so.1 and jq, for libpython3.11.so and python3.11, for libnode.so.108 and node.
 * False if the program's name has one letter. */
static bool has_name_of(const char *program, const char *library)
{
    const char *name = file_name(program);
    const char *stem = file_name(library);
    size_t length = strcspn(name, "-");
    while (length > 0 && (isdigit((unsigned char)name[length - 1]) || name[length - 1] == '.')) {
        length--;
    }
    return length >= 2 && strncmp(stem, "lib", 3) == 0 && strncmp(stem + 3, name, length) == 0 &&
           (isdigit((unsigned char)stem[3 + length]) || strchr(".-", stem[3 + length]) != NULL);
}

/* True if both paths are below the same private folder, such as /usr/lib/R. */
static bool shares_folder(const char *program, const char *library)
{
    static const char *const roots[] = {"/usr/lib/", "/usr/lib64/", "/usr/libexec/"};
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        const size_t root = strlen(roots[i]);
        if (strncmp(program, roots[i], root) != 0) {
            continue;
        }
        /* the folder of an architecture, such as x86_64-linux-gnu, belongs to all programs */
        const char *folder = program + root;
        const size_t first = strcspn(folder, "/");
        const bool is_shared = memmem(folder, first, "-linux-", 7) != NULL;
        folder += is_shared && folder[first] == '/' ? first + 1 : 0;
        if (strncmp(folder, "jvm/", 4) == 0) { /* the folder of all JVMs, not of a program */
            return false;
        }
        const size_t length = strcspn(folder, "/");
        return folder[length] == '/' &&
               strncmp(program, library, (size_t)(folder - program) + length + 1) == 0;
    }
    return false;
}

/* True if one of the files is the library of a runtime. */
static bool has_runtime(const sj_source_files *files)
{
    for (const char *at = files->text; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        const char *name = memrchr(at, '/', length);
        for (size_t i = 0; name != NULL && i < SJ_RUNTIMES; i++) {
            if (sj_runtime_has_file(sj_runtimes[i], name + 1)) {
                return true;
            }
        }
        at += length + (at[length] == '\n');
    }
    return false;
}

/* Returns what is known about a program; reads it if it is new. NULL: out of memory. */
static const sj_own_program *find_program(sj_own_libraries *libraries, const char *path)
{
    for (size_t i = 0; i < libraries->count; i++) {
        if (strcmp(libraries->programs[i].path, path) == 0) {
            return &libraries->programs[i];
        }
    }
    if (sj_array_reserve(&libraries->programs, &libraries->capacity, libraries->count, 1,
                         sizeof(*libraries->programs)) != SJ_OK) {
        return NULL;
    }
    sj_own_program *made = &libraries->programs[libraries->count];
    *made = (sj_own_program){.path = strdup(path)};
    if (made->path == NULL) {
        return NULL;
    }
    /* Programs outside of these folders are not installed by packages. */
    const bool is_installed =
        (strncmp(path, "/usr/", 5) == 0 && strncmp(path, "/usr/local/", 11) != 0) ||
        strncmp(path, "/bin/", 5) == 0 || strncmp(path, "/sbin/", 6) == 0 ||
        sj_is_system_library(path);
    if (is_installed && libraries->database != NULL &&
        sj_source_files_read(libraries->database, path, &made->files) == SJ_OK) {
        made->is_runtime = has_runtime(&made->files);
    }
    libraries->count++;
    return made;
}

bool sj_own_libraries_has(sj_own_libraries *libraries, const char *program, const char *library)
{
    const sj_own_program *known = program[0] == '/' ? find_program(libraries, program) : NULL;
    return known != NULL && !known->is_runtime &&
           (has_name_of(program, library) || shares_folder(program, library) ||
            sj_source_files_has(&known->files, library));
}

void sj_own_libraries_deinit(sj_own_libraries *libraries)
{
    for (size_t i = 0; i < libraries->count; i++) {
        free(libraries->programs[i].path);
        sj_source_files_deinit(&libraries->programs[i].files);
    }
    free(libraries->programs);
    libraries->programs = NULL;
    libraries->count = 0;
    libraries->capacity = 0;
}
