/* In an attached process the modules' slots lead to the agent's answers (find_object.c). */
#include "agent/inproc/core/find_object.h"
#include "agent/inproc/hooks/rebind.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static void change_slots(bool restore)
{
    const sj_rebinding rebindings[] = {
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
        {"_dl_find_object", (uint64_t)(uintptr_t)sj_find_object_real,
         (uint64_t)(uintptr_t)_dl_find_object},
#endif
        {"dl_iterate_phdr", sj_rebind_find("dl_iterate_phdr"), (uint64_t)(uintptr_t)dl_iterate_phdr}
    };
    (void)sj_rebind(rebindings, sizeof(rebindings) / sizeof(rebindings[0]), restore);
}

void sj_find_object_begin(void)
{
    const uint64_t found = sj_rebind_find("_dl_find_object");
    memcpy(&sj_find_object_real, &found, sizeof(found));
}

void sj_find_object_bind(void)
{
    change_slots(false);
}

void sj_find_object_release(void)
{
    change_slots(true);
}
