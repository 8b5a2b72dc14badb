/* Design notes
 *
 * A program that loads the runtime itself finds its functions by dlsym. The agent cannot call a
 * module that was just loaded, because its constructors have not run. So it patches the functions
 * that initialise the runtime to jump to its own. These restore the original code and call it. A
 * process initialises only one runtime, so no instruction has to be relocated. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/recorder/recorder.h"

#include <string.h>

typedef void *(*init_runtime)(const char *name, const char *version);

static void *wrap_init(const char *name, const char *version);
static void *wrap_init_version(const char *name, const char *version);

typedef struct launch_function {
    const char *name;
    init_runtime replacement;
    init_runtime original;
    sj_hooked_module hook;
    _Atomic uint32_t is_patched;
} launch_function;

static launch_function functions[] = {
    {.name = "mono_jit_init", .replacement = wrap_init},
    {.name = "mono_jit_init_version", .replacement = wrap_init_version},
};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

static void (*start)(void);

/* Restores the code of both functions, unless another thread has done so. Returns false if the code
 * cannot be written; then the runtime must not be called. */
static bool restore_functions(void)
{
    bool is_restored = true;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint32_t expected = 1;
        if (atomic_compare_exchange_strong(&functions[i].is_patched, &expected, 0)) {
            is_restored = sj_hooks_unpatch(&functions[i].hook) == SJ_OK && is_restored;
        }
    }
    return is_restored;
}

static void *start_once(const launch_function *function, const char *name, const char *version)
{
    if (!restore_functions()) {
        return NULL;
    }
    if (sj_recorder_is_armed() && sj_mono_profiler() == NULL) {
        start();
    }
    return function->original(name, version);
}

static void *wrap_init(const char *name, const char *version)
{
    return start_once(&functions[0], name, version);
}

static void *wrap_init_version(const char *name, const char *version)
{
    return start_once(&functions[1], name, version);
}

static void patch_function(launch_function *function)
{
    uint8_t code[SJ_RETURN_PATCH_BYTES];
    const uint64_t address = sj_definition_find(function->name, NULL);
    if (function->original != NULL || address == 0) {
        return;
    }
    memcpy(code, (const void *)(uintptr_t)address, sizeof(code));
    function->original = (init_runtime)(uintptr_t)address;
    atomic_store(&function->is_patched, 1);
    if (sj_hooks_redirect(address, code, sizeof(code), (uint64_t)(uintptr_t)function->replacement,
                          false, &function->hook) != SJ_OK) {
        atomic_store(&function->is_patched, 0);
    }
}

void sj_mono_watch_for_launch(void (*start_recording)(void))
{
    start = start_recording;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        patch_function(&functions[i]);
    }
}
