#include "agent/runtimes/runtime.h"

static const sj_runtime *const runtimes[] = {&sj_runtime_objc};

sj_status sj_runtimes_find_functions(const sj_elf *elf, sj_runtime_sink sink, void *context)
{
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        SJ_TRY(runtimes[i]->find_functions(elf, sink, context));
    }
    return SJ_OK;
}

sj_status sj_runtimes_find_classes(const sj_elf *elf, sj_runtime_class_sink sink, void *context)
{
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        SJ_TRY(runtimes[i]->find_classes(elf, sink, context));
    }
    return SJ_OK;
}
