#include "agent/runtimes/runtime.h"

#include "agent/runtimes/jvm/jvm.h"
#include "agent/runtimes/mono/mono.h"
#include "agent/runtimes/objc/objc.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const sj_runtime *const sj_runtimes[SJ_RUNTIMES] = {
    [SJ_LINK_LANGUAGE_OBJC] = &sj_runtime_objc,
    [SJ_LINK_LANGUAGE_MONO] = &sj_runtime_mono,
    [SJ_LINK_LANGUAGE_JVM] = &sj_runtime_jvm,
};

const sj_runtime *sj_runtime_of_language(uint32_t language)
{
    return language < SJ_RUNTIMES ? sj_runtimes[language] : NULL;
}

bool sj_runtime_has_file(const sj_runtime *runtime, const char *file_name)
{
    for (const char *const *file = runtime->files; file != NULL && *file != NULL; file++) {
        if (strncmp(file_name, *file, strlen(*file)) == 0) {
            return true;
        }
    }
    return false;
}

/* True if `file` exists, relative to the folder of `path`. `folder_bytes` is the length of the
 * folder with its slash. */
static bool is_beside(const char *path, size_t folder_bytes, const char *file)
{
    char found[PATH_MAX];
    const int bytes = snprintf(found, sizeof(found), "%.*s%s", (int)folder_bytes, path, file);
    return bytes > 0 && (size_t)bytes < sizeof(found) && access(found, F_OK) == 0;
}

bool sj_runtimes_have_library(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < SJ_RUNTIMES && path[0] == '/'; i++) {
        const char *const *file = sj_runtimes[i]->main_files;
        if (file != NULL && sj_runtime_has_file(sj_runtimes[i], name)) {
            return true;
        }
        for (; file != NULL && *file != NULL; file++) {
            if (is_beside(path, (size_t)(name - path), *file)) {
                return true;
            }
        }
    }
    return false;
}

bool sj_method_part_copy(char part[SJ_METHOD_PART_BYTES], const char *from, size_t bytes)
{
    if (bytes == 0 || bytes >= SJ_METHOD_PART_BYTES) {
        return false;
    }
    memcpy(part, from, bytes);
    part[bytes] = '\0';
    return true;
}

bool sj_runtime_of_method(const char *name, size_t *index)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->is_method != NULL && sj_runtimes[i]->is_method(name)) {
            *index = i;
            return true;
        }
    }
    return false;
}

bool sj_runtimes_is_system_class(const char *name)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->is_system_class != NULL && sj_runtimes[i]->is_system_class(name)) {
            return true;
        }
    }
    return false;
}

bool sj_runtimes_read_live_class(pid_t pid, uint64_t address, sj_live_class *class)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->read_live_class != NULL &&
            sj_runtimes[i]->read_live_class(pid, address, class)) {
            return true;
        }
    }
    return false;
}

sj_status sj_runtimes_find_functions(const sj_elf *elf, sj_runtime_sink sink, void *context)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->find_functions != NULL) {
            SJ_TRY(sj_runtimes[i]->find_functions(elf, sink, context));
        }
    }
    return SJ_OK;
}

sj_status sj_runtimes_find_classes(const sj_elf *elf, sj_runtime_class_sink sink, void *context)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->find_classes != NULL) {
            SJ_TRY(sj_runtimes[i]->find_classes(elf, sink, context));
        }
    }
    return SJ_OK;
}
