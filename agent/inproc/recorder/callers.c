/* Design notes
 *
 * A call leaves its return address on the stack, and that address lies in the code of its caller.
 * Parts of a function that the compiler has moved away (.cold) are not noted as its code. So a call
 * from a .cold part has no known caller. */
#include "agent/inproc/recorder/callers.h"

#include <stdatomic.h>

enum { CALLERS = 1024 };

typedef struct caller {
    _Atomic uint64_t low; /* written last; 0: free */
    _Atomic uint64_t high;
    const void *owner;
    _Atomic uint32_t function;
} caller;

static caller callers[CALLERS];
static _Atomic uint32_t caller_count; /* number of leading places that have ever been in use */

bool sj_recorder_note_function(uint32_t function, uint64_t address, uint32_t bytes,
                               const void *owner)
{
    for (uint32_t i = 0; i < CALLERS; i++) {
        caller *place = &callers[i];
        if (atomic_load_explicit(&place->low, memory_order_relaxed) != 0) {
            continue;
        }
        /* Orders the freeing of the place before the stores below, for readers that see them. */
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&place->high, address + bytes, memory_order_relaxed);
        place->owner = owner;
        atomic_store_explicit(&place->function, function, memory_order_relaxed);
        /* Pairs with sj_recorder_function_at. */
        atomic_store_explicit(&place->low, address, memory_order_release);
        if (i >= atomic_load_explicit(&caller_count, memory_order_relaxed)) {
            atomic_store_explicit(&caller_count, i + 1, memory_order_release);
        }
        return true;
    }
    return false;
}

void sj_recorder_forget_functions(const void *owner)
{
    const uint32_t count = atomic_load_explicit(&caller_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        if (callers[i].owner == owner) {
            atomic_store_explicit(&callers[i].low, 0, memory_order_relaxed);
        }
    }
}

bool sj_recorder_has_noted(const void *owner)
{
    const uint32_t count = atomic_load_explicit(&caller_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        if (callers[i].owner == owner &&
            atomic_load_explicit(&callers[i].low, memory_order_relaxed) != 0) {
            return true;
        }
    }
    return false;
}

uint32_t sj_recorder_function_at(uint64_t address)
{
    const uint32_t count = atomic_load_explicit(&caller_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        const caller *place = &callers[i];
        const uint64_t low = atomic_load_explicit(&place->low, memory_order_acquire);
        if (low == 0 || address < low ||
            address >= atomic_load_explicit(&place->high, memory_order_relaxed)) {
            continue;
        }
        const uint32_t function = atomic_load_explicit(&place->function, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        /* the place was not reused meanwhile */
        if (atomic_load_explicit(&place->low, memory_order_relaxed) == low) {
            return function;
        }
    }
    return 0;
}
