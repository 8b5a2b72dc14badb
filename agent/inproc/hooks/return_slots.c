#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/recorder/sys.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

_Static_assert(sizeof(sj_return_slot) == 2 * sizeof(uint64_t), "the assembly and its CFI say so");
_Static_assert(offsetof(sj_dispatch_record, target) == 8 &&
                   offsetof(sj_dispatch_record, enter_tag) == 16 &&
                   offsetof(sj_dispatch_record, leave_tag) == 20,
               "the assembly says so");

sj_return_slot *sj_return_regions[SJ_RETURN_REGIONS];

bool sj_return_slots_reserve(uint64_t stack)
{
    const uint64_t region = stack >> SJ_RETURN_REGION_SHIFT;
    if (region >= SJ_RETURN_REGIONS) {
        return false;
    }
    sj_return_slot *_Atomic *place = (sj_return_slot * _Atomic *)&sj_return_regions[region];
    if (atomic_load(place) != NULL) {
        return true;
    }
    sj_return_slot *slots = sj_sys_map(NULL, SJ_RETURN_REGION_BYTES, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sj_sys_failed(slots)) {
        return false;
    }
    sj_return_slot *expected = NULL;
    if (!atomic_compare_exchange_strong(place, &expected, slots)) {
        /* Another thread or a signal handler was first. */
        (void)sj_sys_unmap(slots, SJ_RETURN_REGION_BYTES);
    }
    return true;
}

uint64_t sj_return_slots_kept(uint64_t at)
{
    const uint64_t region = at >> SJ_RETURN_REGION_SHIFT;
    const uint64_t within = at & ((UINT64_C(1) << SJ_RETURN_REGION_SHIFT) - 1);
    return region < SJ_RETURN_REGIONS && sj_return_regions[region] != NULL
               ? sj_return_regions[region][within / sizeof(uint64_t)].return_address
               : 0;
}

uint64_t sj_return_slots_true_address(uint64_t at, uint64_t word)
{
    if (!SJ_RETURN_IS_IN_SLOT || word != (uint64_t)(uintptr_t)&sj_arch_return_thunk) {
        return word;
    }
    const uint64_t return_address = sj_return_slots_kept(at);
    return return_address != 0 ? return_address : word;
}

void sj_return_slots_put_back(uint64_t at, uint64_t *words, size_t count)
{
    const uint64_t region = at >> SJ_RETURN_REGION_SHIFT;
    if (region >= SJ_RETURN_REGIONS || sj_return_regions[region] == NULL) {
        return; /* no dispatched call has used this region */
    }
    for (size_t i = 0; i < count; i++) {
        words[i] = sj_return_slots_true_address(at + i * sizeof(words[0]), words[i]);
    }
}

void sj_return_slots_release(void)
{
    for (uint32_t i = 0; i < SJ_RETURN_REGIONS; i++) {
        if (sj_return_regions[i] != NULL) {
            (void)sj_sys_unmap(sj_return_regions[i], SJ_RETURN_REGION_BYTES);
            sj_return_regions[i] = NULL;
        }
    }
}
