/* Design notes
 *
 * When the program loads a module, the agent sees the module before the loader relocates it. After
 * relocation, the loader runs the module's initialisers. So the agent changes the module's dynamic
 * section: it makes DT_INIT point to a stub. Without DT_INIT, it makes DT_INIT_ARRAY point to a
 * copy of the array whose first element is the stub. When the stub runs, the array is relocated:
 * the agent copies the other elements and restores the section. A module without initialisers gets
 * no stub. */
#include "agent/inproc/hooks/initialisation.h"

#include "agent/abi/page.h"
#include "agent/inproc/recorder/sys.h"

#include <sys/mman.h>

/* The entries of the dynamic section that name initialisers. */
typedef struct init_entries {
    ElfW(Dyn) * function; /* DT_INIT; NULL: none */
    ElfW(Dyn) * array;    /* DT_INIT_ARRAY; NULL: none */
    uint64_t array_bytes;
} init_entries;

static init_entries find_entries(ElfW(Dyn) * entry)
{
    init_entries found = {0};
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_INIT) {
            found.function = entry;
        } else if (entry->d_tag == DT_INIT_ARRAY) {
            found.array = entry;
        } else if (entry->d_tag == DT_INIT_ARRAYSZ) {
            found.array_bytes = entry->d_un.d_val;
        }
    }
    return found;
}

/* Maps a page with the stub, followed by space for the copy of the array. Returns false if the
 * kernel refuses. */
static bool map_region(sj_initialisation *init, uint64_t array_bytes, void (*entry)(void))
{
    const uint64_t bytes = sj_page_bytes() + sj_page_round_up(array_bytes);
    uint8_t *region = sj_sys_allocate(bytes);
    if (region == NULL) {
        return false;
    }
    init->region = region;
    init->region_bytes = bytes;
    init->record.entry = entry;
    sj_arch_write_stub(region, &init->record);
    return sj_sys_protect(region, sj_page_bytes(), PROT_READ | PROT_EXEC) == 0;
}

/* Returns the new value of the word in the dynamic section: the address of the array's copy, or of
 * the stub, minus `bias`. */
static uint64_t changed_word(const sj_initialisation *init, uint64_t bias)
{
    return (uint64_t)(uintptr_t)(init->region + (init->count != 0 ? sj_page_bytes() : 0)) - bias;
}

bool sj_initialisation_defer(sj_initialisation *init, const sj_dynamic_view *view,
                             void (*entry_point)(void))
{
    const init_entries entries = find_entries(view->dynamic);
    const uint64_t count = entries.function == NULL && entries.array != NULL
                               ? entries.array_bytes / sizeof(uint64_t)
                               : 0;
    if (!view->dynamic_is_writable || (entries.function == NULL && count == 0) ||
        !map_region(init, count * sizeof(uint64_t), entry_point)) {
        return false;
    }
    ElfW(Dyn) *entry = count != 0 ? entries.array : entries.function;
    uint64_t *copy = (uint64_t *)(void *)(init->region + sj_page_bytes());
    if (count != 0) {
        copy[0] = (uint64_t)(uintptr_t)init->region;
    }
    init->count = count;
    init->word = entry->d_un.d_ptr;
    init->place = (uint64_t)(uintptr_t)&entry->d_un.d_ptr;
    entry->d_un.d_ptr = changed_word(init, view->bias);
    return true;
}

/* True if the dynamic section still has the changed word. Otherwise the module was unloaded, and
 * another module lies at its address. */
static bool still_has_change(const sj_initialisation *init, const sj_dynamic_view *view)
{
    const ElfW(Dyn) *entry = view->dynamic;
    while (entry->d_tag != DT_NULL && (uint64_t)(uintptr_t)&entry->d_un.d_ptr != init->place) {
        entry++;
    }
    return entry->d_tag != DT_NULL && entry->d_un.d_ptr == changed_word(init, view->bias);
}

bool sj_initialisation_begin(sj_initialisation *init, const sj_dynamic_view *view)
{
    if (init->place == 0) {
        return true;
    }
    if (!still_has_change(init, view)) {
        init->place = 0;
        return false;
    }
    const uint64_t true_address = view->bias + init->word;
    uint64_t *copy = (uint64_t *)(void *)(init->region + sj_page_bytes());
    init->record.target = true_address;
    if (init->count != 0) {
        const uint64_t *array = (const uint64_t *)true_address;
        init->record.target = array[0];
        for (uint64_t i = 1; i < init->count; i++) {
            copy[i] = array[i];
        }
    }
    (void)sj_slot_write(view, init->place, init->word);
    init->place = 0;
    return true;
}

void sj_initialisation_deinit(sj_initialisation *init)
{
    if (init->region != NULL) {
        (void)sj_sys_unmap(init->region, init->region_bytes);
    }
    *init = (sj_initialisation){0};
}
