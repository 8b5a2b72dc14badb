#include "agent/runtimes/runtime.h"

#include "agent/runtimes/mono/methods.h"
#include "agent/runtimes/mono/mono.h"
#include "agent/runtimes/objc/objc.h"

const sj_runtime *const sj_runtimes[SJ_RUNTIMES] = {&sj_runtime_objc, &sj_runtime_mono};

bool sj_runtime_of_method(const char *name, size_t *place)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->is_method(name)) {
            *place = i;
            return true;
        }
    }
    return false;
}

bool sj_runtimes_is_system_class(const char *name)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->is_system_class(name)) {
            return true;
        }
    }
    return false;
}

bool sj_runtimes_read_live_class(pid_t pid, uint64_t address, sj_live_class *class)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtimes[i]->read_live_class(pid, address, class)) {
            return true;
        }
    }
    return false;
}

sj_status sj_runtimes_find_functions(const sj_elf *elf, sj_runtime_sink sink, void *context)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        SJ_TRY(sj_runtimes[i]->find_functions(elf, sink, context));
    }
    return SJ_OK;
}

sj_status sj_runtimes_find_classes(const sj_elf *elf, sj_runtime_class_sink sink, void *context)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        SJ_TRY(sj_runtimes[i]->find_classes(elf, sink, context));
    }
    return SJ_OK;
}

static const sj_container_reader readers[SJ_LINK_LANGUAGES] = {
    [SJ_LINK_LANGUAGE_OBJC] = {.name = "objc"},
    [SJ_LINK_LANGUAGE_MONO] = {.name = "mono",
                               .read = sj_mono_read_file,
                               .read_classes = sj_mono_read_classes},
    [SJ_LINK_LANGUAGE_JVM] = {.name = "jvm"},
};

const sj_container_reader *sj_container_reader_of(uint32_t language)
{
    return language < SJ_LINK_LANGUAGES ? &readers[language] : NULL;
}
