/* Design notes
 *
 * The runtime finds the method at an address, but does not list its methods. Its code lies in
 * mappings that are writable and executable. So the runtime is asked about each address there at
 * which code may begin. The program may unmap a mapping at any time, so process_vm_readv reads it.
 * Dynamic methods and methods of other domains are left out: their code can be freed, and another
 * method may be at its address when the hooks are removed. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/recorder/maps.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <sys/mman.h>

enum {
    AREAS_MAX = 256,
    ALIGNMENT = 8,
    METHODS_PER_AREA = 32768,
    WORDS = 512, /* Words that are read by one system call. */
    TOKEN_BITS = 24,
    TOKEN_TABLE = 0x06
};

typedef struct area {
    uint64_t low;
    uint64_t high;
} area;

/* Methods that were found in one area. */
typedef struct found_methods {
    bool is_reselection; /* True after a change of the policy, false after an attach. */
    uint32_t count;
    sj_link_code_function functions[METHODS_PER_AREA];
    void *methods[METHODS_PER_AREA];
    uint8_t marks[METHODS_PER_AREA];
} found_methods;

static uint32_t find_areas(area areas[AREAS_MAX])
{
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    char buffer[SJ_MAPS_BYTES];
    sj_maps maps;
    sj_mapping mapping;
    uint32_t count = 0;
    if (!sj_maps_open(&maps, buffer, sizeof(buffer))) {
        return 0;
    }
    while (count < AREAS_MAX && sj_maps_next(&maps, &mapping)) {
        if ((mapping.protection & all) == all) {
            areas[count++] = (area){.low = mapping.low, .high = mapping.high};
        }
    }
    sj_maps_close(&maps);
    return count;
}

/* Returns the address of the next word that is not 0. Returns `end` if there is none, or if the
 * memory cannot be read. */
static uint64_t skip_zeros(uint64_t at, uint64_t end)
{
    uint64_t words[WORDS];
    while (at < end) {
        const uint64_t bytes = end - at < sizeof(words) ? end - at : sizeof(words);
        uint64_t here[2] = {(uint64_t)(uintptr_t)words, bytes};
        uint64_t there[2] = {at, bytes};
        const long got = SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), here, 1, there, 1, 0);
        if (got < (long)ALIGNMENT) {
            return end;
        }
        for (long i = 0; i < got / ALIGNMENT; i++) {
            if (words[i] != 0) {
                return at + (uint64_t)i * ALIGNMENT;
            }
        }
        at += (uint64_t)got;
    }
    return end;
}

/* True if no callback records the method. After an attach, these are methods that are not in the
 * table, and methods that an earlier agent has hooked. After a change of the policy, they are
 * methods that were not selected before. */
static bool is_unreported(const sj_mono_method *known, bool is_reselection)
{
    if (known == NULL) {
        return true;
    }
    const uint32_t state = atomic_load(&known->state);
    return is_reselection ? state == SJ_MONO_NEVER_ENTERED : state == SJ_MONO_IS_PATCHED;
}

/* Adds a method if it is selected and no callback records it. Leaves out dynamic methods, which
 * have no token of a method definition. */
static void add_method(found_methods *found, void *method, uint64_t start, uint32_t bytes)
{
    if (found->count == METHODS_PER_AREA ||
        sj_mono_runtime.method_token(method) >> TOKEN_BITS != TOKEN_TABLE ||
        !is_unreported(sj_mono_find_method(method), found->is_reselection)) {
        return;
    }
    const sj_mono_selection selection = sj_mono_selection_of(method);
    if (selection.function == 0 || !sj_mono_set_method(method, selection.function)) {
        return;
    }
    sj_mono_place_values(method, &selection, start);
    found->functions[found->count] =
        (sj_link_code_function){.address = start, .bytes = bytes, .function = selection.function};
    found->methods[found->count++] = method;
}

/* Adds the methods whose code begins in an area. */
static void find_methods(const area *where, found_methods *found)
{
    void *domain = sj_mono_runtime.root_domain();
    for (uint64_t at = skip_zeros(where->low, where->high); at < where->high;) {
        void *code = sj_mono_runtime.find_code(domain, (const void *)(uintptr_t)at);
        if (code == NULL) {
            at = skip_zeros(at + ALIGNMENT, where->high);
            continue;
        }
        const uint64_t start = (uint64_t)(uintptr_t)sj_mono_runtime.code_start(code);
        const uint32_t bytes = (uint32_t)sj_mono_runtime.code_size(code);
        const uint64_t end = start + bytes;
        if (start == at && bytes != 0 && end <= where->high) {
            add_method(found, sj_mono_runtime.code_method(code), start, bytes);
        }
        at = (end > at ? end + ALIGNMENT - 1 : at + ALIGNMENT) & ~(uint64_t)(ALIGNMENT - 1);
    }
}

static void plan_compiled(bool is_reselection)
{
    area areas[AREAS_MAX];
    const uint32_t count = find_areas(areas);
    for (uint32_t i = 0; i < count; i++) {
        found_methods *found = sj_sys_allocate(sizeof(*found));
        if (found == NULL) {
            break;
        }
        found->is_reselection = is_reselection;
        find_methods(&areas[i], found);
        if (found->count != 0) {
            sj_mono_hook_code(found->functions, found->methods, found->count, true, found->marks);
        }
        (void)sj_sys_unmap(found, sizeof(*found));
    }
}

/* True if the agent may make no system calls, or if the runtime is shutting down. */
static bool cannot_hook(void)
{
    return !sj_recorder_may_call() || sj_mono_runtime.is_shutting_down() != 0;
}

bool sj_mono_plan_compiled(void)
{
    static bool is_done;
    if (is_done || cannot_hook()) {
        return true;
    }
    if (sj_mono_runtime.current_domain() == NULL) {
        return false;
    }
    is_done = true;
    sj_mono_hook_precompiled();
    plan_compiled(false);
    return true;
}

bool sj_mono_reselect(void)
{
    if (cannot_hook()) {
        return true;
    }
    if (sj_mono_runtime.current_domain() == NULL) {
        return false;
    }
    sj_mono_ask_again();
    sj_mono_hook_precompiled();
    sj_mono_mute_unwanted();
    plan_compiled(true);
    return true;
}
