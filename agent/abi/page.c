#include "agent/abi/page.h"

#include <stdatomic.h>
#include <sys/auxv.h>

/* Freestanding: linked into the agent. Threads that ask at once store the same value. */
uint64_t sj_page_bytes(void)
{
    static _Atomic uint64_t known;
    uint64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes == 0) {
        bytes = getauxval(AT_PAGESZ);
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}
