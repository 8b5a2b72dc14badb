/* Design notes
 *
 * The runtime tells which method an address belongs to, but does not list its methods. Its code
 * lies in mappings that are writable and executable. Each address there at which code may begin is
 * asked about. Such a mapping can vanish at any time, so it is read by system calls only. Dynamic
 * methods and methods of other domains are left out: their code can be freed, and its bytes may be
 * another method when hooks are removed. */
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
    WORDS = 512, /* How many words are read at once. */
    TOKEN_BITS = 24,
    TOKEN_TABLE = 0x06
};

typedef struct area {
    uint64_t low;
    uint64_t high;
} area;

/* The methods of one area, in one mapping. */
typedef struct found_methods {
    bool is_again; /* True if an earlier selection is recorded already. */
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

/* True if no callback reports the method. In an attached process this is a method that is not in
 * the table, or that an earlier agent has hooked. After a change of the policy it is one that was
 * not wanted until now. */
static bool is_unreported(const sj_mono_method *known, bool is_again)
{
    if (known == NULL) {
        return true;
    }
    const uint32_t state = atomic_load(&known->state);
    return is_again ? state == SJ_MONO_NEVER_ENTERED : state == SJ_MONO_IS_PATCHED;
}

/* Adds a method; dynamic methods, which have no token, are left out. */
static void add_method(found_methods *found, void *method, uint64_t start, uint32_t bytes)
{
    if (found->count == METHODS_PER_AREA ||
        sj_mono_runtime.method_token(method) >> TOKEN_BITS != TOKEN_TABLE ||
        !is_unreported(sj_mono_find_method(method), found->is_again)) {
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

static void plan_compiled(bool is_again)
{
    area areas[AREAS_MAX];
    const uint32_t count = find_areas(areas);
    for (uint32_t i = 0; i < count; i++) {
        found_methods *found = sj_sys_allocate(sizeof(*found));
        if (found == NULL) {
            break;
        }
        found->is_again = is_again;
        find_methods(&areas[i], found);
        if (found->count != 0) {
            sj_mono_hook_code(found->functions, found->methods, found->count, true, found->marks);
        }
        (void)sj_sys_unmap(found, sizeof(*found));
    }
}

/* True if hooks cannot be prepared, or are not needed. */
static bool is_needless(void)
{
    return !sj_recorder_may_call() || sj_mono_runtime.is_shutting_down() != 0;
}

bool sj_mono_plan_compiled(void)
{
    static bool is_done;
    if (is_done || is_needless()) {
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
    if (is_needless()) {
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
