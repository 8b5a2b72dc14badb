/* Design notes
 *
 * In an attached process the modules' slots lead to the agent's functions (find_object.c). The
 * loader announces a module before it relocates it. So the slots of a module that is loaded later
 * are changed when the loader is about to initialise it. None of its code has run by then. Library
 * calls, whose recording changes the same words, are not recorded in attached processes. */
#include "agent/inproc/core/find_object.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/core/arch.h"
#include "agent/inproc/hooks/initialisation.h"
#include "agent/inproc/hooks/module_walk.h"
#include "agent/inproc/hooks/rebind.h"

#include <dlfcn.h>
#include <string.h>

enum { LATE_MOST = 64, REBINDINGS = 2 }; /* few modules contain an unwinder */

/* A module that was loaded later and has slots to be changed. */
typedef struct late_module {
    uint64_t bias; /* 0: the entry is free */
    bool waits;    /* the module is not initialised yet */
    bool is_loaded;
    sj_initialisation init;
} late_module;

static late_module late_modules[LATE_MOST];

static void fill_rebindings(sj_rebinding rebindings[REBINDINGS])
{
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
    rebindings[0] = (sj_rebinding){"_dl_find_object", (uint64_t)(uintptr_t)sj_find_object_real,
                                   (uint64_t)(uintptr_t)_dl_find_object};
#else
    rebindings[0] = (sj_rebinding){"_dl_find_object", 0, 0};
#endif
    rebindings[1] = (sj_rebinding){"dl_iterate_phdr", sj_rebind_find("dl_iterate_phdr"),
                                   (uint64_t)(uintptr_t)dl_iterate_phdr};
}

static void change_slots(bool restore)
{
    sj_rebinding rebindings[REBINDINGS];
    fill_rebindings(rebindings);
    (void)sj_rebind(rebindings, REBINDINGS, restore);
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

static late_module *find_late(uint64_t bias)
{
    for (uint32_t i = 0; i < LATE_MOST; i++) {
        if (late_modules[i].bias == bias) {
            return &late_modules[i];
        }
    }
    return NULL;
}

static void free_late(late_module *late)
{
    sj_initialisation_deinit(&late->init);
    *late = (late_module){0};
}

static int mark_loaded(struct dl_phdr_info *info, size_t size, void *context)
{
    late_module *late = info->dlpi_addr != 0 ? find_late(info->dlpi_addr) : NULL;
    (void)size;
    (void)context;
    if (late != NULL) {
        late->is_loaded = true;
    }
    return 0;
}

/* Frees the data of modules that were unloaded. */
static void free_unloaded(void)
{
    for (uint32_t i = 0; i < LATE_MOST; i++) {
        late_modules[i].is_loaded = false;
    }
    (void)sj_module_walk(mark_loaded, NULL);
    for (uint32_t i = 0; i < LATE_MOST; i++) {
        if (late_modules[i].bias != 0 && !late_modules[i].is_loaded) {
            free_late(&late_modules[i]);
        }
    }
}

void sj_find_object_forget(uint64_t bias)
{
    late_module *late = bias != 0 ? find_late(bias) : NULL;
    if (late != NULL) {
        free_late(late);
    }
}

void sj_find_object_bind_later(const struct dl_phdr_info *info)
{
    sj_rebinding rebindings[REBINDINGS];
    sj_dynamic_view view;
    fill_rebindings(rebindings);
    /* frees the data of an earlier module at this address */
    sj_find_object_forget(info->dlpi_addr);
    if (info->dlpi_addr == 0 || !sj_dynamic_view_read(info, &view) ||
        sj_rebind_module(&view, rebindings, REBINDINGS, false).not_relocated == 0) {
        return;
    }
    free_unloaded();
    late_module *late = find_late(0);
    if (late != NULL && sj_initialisation_defer(&late->init, &view, sj_arch_init_entry)) {
        late->bias = view.bias;
        late->waits = true;
    }
}

/* Changes the slots of a module that the loader has relocated. With `context`, only restores its
 * initialisation. */
static int begin_late(struct dl_phdr_info *info, size_t size, void *context)
{
    const bool is_leaving = context != NULL;
    late_module *late = info->dlpi_addr != 0 ? find_late(info->dlpi_addr) : NULL;
    sj_rebinding rebindings[REBINDINGS];
    sj_dynamic_view view;
    (void)size;
    if (late == NULL || !late->waits || !sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    late->waits = false;
    if (!sj_initialisation_begin(&late->init, &view)) {
        free_late(late);
    } else if (!is_leaving) {
        fill_rebindings(rebindings);
        (void)sj_rebind_module(&view, rebindings, REBINDINGS, false);
    }
    return 0;
}

void sj_find_object_on_initialisation(void)
{
    bool is_leaving = atomic_load(&sojourn_agent_state.is_detaching) != 0;
    (void)sj_module_walk(begin_late, is_leaving ? &is_leaving : NULL);
}

void sj_find_object_release(void)
{
    bool is_leaving = true;
    (void)sj_module_walk(begin_late, &is_leaving);
    for (uint32_t i = 0; i < LATE_MOST; i++) {
        free_late(&late_modules[i]);
    }
    change_slots(true);
}
