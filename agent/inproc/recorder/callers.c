/* Design notes
 *
 * A call leaves its return address on the stack, which lies in the code of its caller. Parts of a
 * function that the compiler has put apart (.cold) are not of its code here: calls from there are
 * called by nobody. */
#include "agent/inproc/recorder/callers.h"

#include <stdatomic.h>

enum { CALLERS = 1024 };

typedef struct caller {
    _Atomic uint64_t low; /* written last; 0: free */
    uint64_t high;
    uint64_t bias;
    uint32_t function;
} caller;

static caller callers[CALLERS];
static _Atomic uint32_t caller_count; /* places that were in use */

void sj_recorder_note_function(uint32_t function, uint64_t bias, uint64_t offset, uint32_t bytes)
{
    for (uint32_t i = 0; i < CALLERS; i++) {
        caller *place = &callers[i];
        if (atomic_load_explicit(&place->low, memory_order_relaxed) != 0) {
            continue;
        }
        place->high = bias + offset + bytes;
        place->bias = bias;
        place->function = function;
        /* Pairs with sj_recorder_function_at. */
        atomic_store_explicit(&place->low, bias + offset, memory_order_release);
        if (i >= atomic_load_explicit(&caller_count, memory_order_relaxed)) {
            atomic_store_explicit(&caller_count, i + 1, memory_order_release);
        }
        return;
    }
}

void sj_recorder_forget_functions(uint64_t bias)
{
    const uint32_t count = atomic_load_explicit(&caller_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        if (callers[i].bias == bias) {
            atomic_store_explicit(&callers[i].low, 0, memory_order_relaxed);
        }
    }
}

uint32_t sj_recorder_function_at(uint64_t address)
{
    const uint32_t count = atomic_load_explicit(&caller_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t low = atomic_load_explicit(&callers[i].low, memory_order_acquire);
        if (low != 0 && address >= low && address < callers[i].high) {
            return callers[i].function;
        }
    }
    return 0;
}
