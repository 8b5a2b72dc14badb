/* In an attached process the modules' slots lead to the agent's answers (find_object.c). */
#include "agent/inproc/core/find_object.h"
#include "agent/inproc/hooks/rebind.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#if defined(DLFO_STRUCT_HAS_EH_DBASE)
static sj_rebinding rebinding_of_objects(void)
{
    return (sj_rebinding){"_dl_find_object", (uint64_t)(uintptr_t)sj_find_object_real,
                          (uint64_t)(uintptr_t)_dl_find_object};
}
#endif

/* Modules that are loaded later: they are relocated after the loader tells of them. Programs may
 * ask dlsym for dl_iterate_phdr, and keep it when the agent has gone; that one is not changed. */
static void change_later(bool restore)
{
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
    const sj_rebinding objects = rebinding_of_objects();
    (void)sj_rebind_later(&objects, restore);
#else
    (void)restore;
#endif
}

static void change_slots(bool restore)
{
    const sj_rebinding rebindings[] = {
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
        rebinding_of_objects(),
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
    change_later(false);
    change_slots(false);
}

void sj_find_object_release(void)
{
    change_later(true);
    change_slots(true);
}
