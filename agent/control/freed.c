#include "agent/control/freed.h"

#include <sys/mman.h>

enum { MAPPED_BYTES = SJ_FREED_FUNCTIONS * sizeof(uint32_t), IS_FREE = 1 };

sj_status sj_freed_init(sj_freed *freed)
{
    void *memory = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *freed = (sj_freed){.changes_of = memory != MAP_FAILED ? memory : NULL};
    return memory != MAP_FAILED ? SJ_OK : SJ_ENOMEM;
}

void sj_freed_deinit(sj_freed *freed)
{
    if (freed->changes_of != NULL) {
        munmap(freed->changes_of, MAPPED_BYTES);
        freed->changes_of = NULL;
    }
}

void sj_freed_add(sj_freed *freed, const uint32_t *functions, size_t count, uint64_t ticks)
{
    const uint32_t change = atomic_load(&freed->changes) + 1;
    for (size_t i = 0; i < count; i++) {
        if (functions[i] < SJ_FREED_FUNCTIONS) {
            atomic_store_explicit(&freed->changes_of[functions[i]], change << 1 | IS_FREE,
                                  memory_order_relaxed);
        }
    }
    atomic_store(&freed->ticks, ticks);
    /* Pairs with the load in sj_freed_changes: who sees the change sees its functions and time. */
    atomic_store(&freed->changes, change);
}

void sj_freed_remove(sj_freed *freed, const uint32_t *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (functions[i] < SJ_FREED_FUNCTIONS) {
            atomic_fetch_and(&freed->changes_of[functions[i]], ~(uint32_t)IS_FREE);
        }
    }
}

uint32_t sj_freed_changes(const sj_freed *freed, uint64_t *ticks)
{
    const uint32_t changes = atomic_load(&freed->changes);
    *ticks = atomic_load(&freed->ticks);
    return changes;
}

bool sj_freed_has(void *context, uint32_t function)
{
    const sj_freed_since *since = context;
    return function < SJ_FREED_FUNCTIONS &&
           atomic_load_explicit(&since->freed->changes_of[function], memory_order_relaxed) >> 1 >
               since->seen;
}

bool sj_freed_is_free(const sj_freed *freed, uint32_t function, uint32_t change)
{
    const uint32_t last =
        function < SJ_FREED_FUNCTIONS
            ? atomic_load_explicit(&freed->changes_of[function], memory_order_relaxed)
            : 0;
    return (last & IS_FREE) != 0 && last >> 1 <= change;
}
