/* Design notes
 *
 * Every call reads one hash table from MonoMethod* to function id, without a lock. Elements never
 * move. Mono calls the agent's filter for every method that it compiles. So if Mono reuses an
 * address for another method, the element gets the new function id before that method runs. */
#include "agent/inproc/mono/internal.h"

enum { METHODS_MAX = SJ_MONO_METHODS_CAPACITY / 4 * 3 };

sj_mono_method sj_mono_methods[SJ_MONO_METHODS_CAPACITY];
_Atomic uint32_t sj_mono_method_count;
_Atomic uint32_t sj_mono_refused;

sj_owner_lock sj_mono_lock;

/* Adds a method, or sets its function id. Returns false if the table is full. The caller holds the
 * lock. */
static bool add_locked(uint64_t key, uint32_t function)
{
    uint32_t place = sj_mono_place_of(key);
    while (atomic_load(&sj_mono_methods[place].method) != 0) {
        if (atomic_load(&sj_mono_methods[place].method) == key) {
            atomic_store(&sj_mono_methods[place].function, function);
            return true;
        }
        place = (place + 1) % SJ_MONO_METHODS_CAPACITY;
    }
    if (atomic_load(&sj_mono_method_count) >= METHODS_MAX) {
        return false;
    }
    atomic_fetch_add(&sj_mono_method_count, 1);
    atomic_store(&sj_mono_methods[place].function, function);
    atomic_store_explicit(&sj_mono_methods[place].method, key, memory_order_release);
    return true;
}

bool sj_mono_set_method(const void *method, uint32_t function)
{
    sj_mono_method *known = sj_mono_find_method(method);
    if (known != NULL) {
        if (atomic_exchange(&known->function, function) != function) {
            atomic_store(&known->state, SJ_MONO_NEVER_ENTERED);
        }
        return true;
    }
    if (!sj_owner_lock_acquire(&sj_mono_lock)) {
        return false;
    }
    const bool is_added = add_locked((uint64_t)(uintptr_t)method, function);
    sj_owner_lock_free(&sj_mono_lock);
    return is_added;
}

void sj_mono_forget_method(const void *method)
{
    sj_mono_method *known = sj_mono_find_method(method);
    if (known != NULL) {
        atomic_store(&known->function, 0);
        atomic_store(&known->state, SJ_MONO_NEVER_ENTERED);
    }
}

void sj_mono_mute_unwanted(void)
{
    for (uint32_t i = 0; i < SJ_MONO_METHODS_CAPACITY; i++) {
        const uint32_t function = atomic_load(&sj_mono_methods[i].function);
        const uint32_t state = atomic_load(&sj_mono_methods[i].state);
        if (function != 0 && state != SJ_MONO_IS_PATCHED && !sj_mono_is_wanted(function)) {
            atomic_store(&sj_mono_methods[i].function, 0);
            atomic_store(&sj_mono_methods[i].state, SJ_MONO_NEVER_ENTERED);
        }
    }
}

void sj_mono_set_patched(const void *method)
{
    sj_mono_method *known = sj_mono_find_method(method);
    if (known != NULL) {
        atomic_store(&known->state, SJ_MONO_IS_PATCHED);
    }
}

void sj_mono_after_fork(void)
{
    sj_owner_lock_free(&sj_mono_lock);
}
