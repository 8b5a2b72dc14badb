#include "agent/livepatch/unhooked_set.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    MAPPED_BYTES = 2 * SJ_UNHOOKED_SET_FUNCTIONS * sizeof(uint32_t), /* Size of both arrays. */
    IS_FREE = 1,
    TIMES = 64 /* Times of the latest changes that are kept. */
};

struct sj_unhooked_set {
    _Atomic uint32_t owners;
    _Atomic uint32_t changes;
    _Atomic uint64_t times[TIMES];
    /* [SJ_UNHOOKED_SET_FUNCTIONS]: twice the number of its last change, plus 1 while it is
     * unhooked. Mapped lazily. */
    _Atomic uint32_t *changes_of;
    /* [SJ_UNHOOKED_SET_FUNCTIONS]: the function that is hooked instead of this one. 0: itself.
     * Mapped lazily. */
    _Atomic uint32_t *hooked_as;
};

sj_status sj_unhooked_set_new(sj_unhooked_set **freed)
{
    sj_unhooked_set *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    void *memory = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(made);
        return SJ_ENOMEM;
    }
    made->owners = 1;
    made->changes_of = memory;
    made->hooked_as = made->changes_of + SJ_UNHOOKED_SET_FUNCTIONS;
    *freed = made;
    return SJ_OK;
}

sj_unhooked_set *sj_unhooked_set_share(sj_unhooked_set *freed)
{
    atomic_fetch_add(&freed->owners, 1);
    return freed;
}

void sj_unhooked_set_release(sj_unhooked_set *freed)
{
    if (freed != NULL && atomic_fetch_sub(&freed->owners, 1) == 1) {
        munmap(freed->changes_of, MAPPED_BYTES);
        free(freed);
    }
}

void sj_unhooked_set_add(sj_unhooked_set *freed, const uint32_t *functions, size_t count,
                         uint64_t ticks)
{
    const uint32_t change = atomic_load(&freed->changes) + 1;
    for (size_t i = 0; i < count; i++) {
        if (functions[i] < SJ_UNHOOKED_SET_FUNCTIONS) {
            atomic_store_explicit(&freed->changes_of[functions[i]], change << 1 | IS_FREE,
                                  memory_order_relaxed);
        }
    }
    atomic_store(&freed->times[change % TIMES], ticks);
    /* Pairs with the load in sj_unhooked_set_changes: a reader that sees the change sees its
     * functions and time. */
    atomic_store(&freed->changes, change);
}

void sj_unhooked_set_remove(sj_unhooked_set *freed, const uint32_t *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (functions[i] < SJ_UNHOOKED_SET_FUNCTIONS) {
            atomic_fetch_and(&freed->changes_of[functions[i]], ~(uint32_t)IS_FREE);
        }
    }
}

void sj_unhooked_set_follow(sj_unhooked_set *freed, uint32_t function, uint32_t hooked)
{
    if (function < SJ_UNHOOKED_SET_FUNCTIONS && hooked < SJ_UNHOOKED_SET_FUNCTIONS) {
        atomic_store_explicit(&freed->hooked_as[function], hooked, memory_order_relaxed);
    }
}

/* Returns the member of changes_of for the function that is hooked instead of this one. */
static uint32_t last_change(const sj_unhooked_set *freed, uint32_t function)
{
    if (function >= SJ_UNHOOKED_SET_FUNCTIONS) {
        return 0;
    }
    const uint32_t hooked = atomic_load_explicit(&freed->hooked_as[function], memory_order_relaxed);
    return atomic_load_explicit(&freed->changes_of[hooked != 0 ? hooked : function],
                                memory_order_relaxed);
}

uint32_t sj_unhooked_set_changes(const sj_unhooked_set *freed)
{
    return atomic_load(&freed->changes);
}

uint64_t sj_unhooked_set_time(const sj_unhooked_set *freed, uint32_t change)
{
    const uint32_t changes = sj_unhooked_set_changes(freed);
    const uint32_t oldest = changes >= TIMES ? changes - TIMES + 1 : 0;
    return atomic_load(&freed->times[(change > oldest ? change : oldest) % TIMES]);
}

uint32_t sj_unhooked_set_changes_until(const sj_unhooked_set *freed, uint64_t ticks)
{
    uint32_t change = sj_unhooked_set_changes(freed);
    while (change > 0 && sj_unhooked_set_time(freed, change) > ticks) {
        change--;
    }
    return change;
}

bool sj_unhooked_set_has(void *context, uint32_t function)
{
    const sj_unhooked_set_since *since = context;
    return last_change(since->freed, function) >> 1 > since->seen;
}

bool sj_unhooked_set_is_free(const sj_unhooked_set *freed, uint32_t function, uint32_t change)
{
    const uint32_t last = last_change(freed, function);
    return (last & IS_FREE) != 0 && last >> 1 <= change;
}

bool sj_unhooked_set_was_changed(void *freed, uint32_t function)
{
    return last_change(freed, function) != 0;
}
