#include "agent/ptrace/remote_stubs.h"

#include "agent/abi/agent_state.h"
#include "agent/abi/return_slots.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static sj_status read_areas(const sj_tracee *target, uint64_t ranges_at, sj_remote_stubs *stubs)
{
    uint32_t count = 0;
    SJ_TRY(
        sj_tracee_read(target, ranges_at + offsetof(sj_stub_ranges, count), &count, sizeof(count)));
    if (count > SJ_STUB_RANGES) {
        return SJ_ECORRUPT;
    }
    sj_stub_range *ranges = calloc((size_t)count + 1, sizeof(*ranges));
    stubs->areas = calloc((size_t)count + 1, sizeof(*stubs->areas));
    if (ranges == NULL || stubs->areas == NULL) {
        free(ranges);
        return SJ_ENOMEM;
    }
    const sj_status status = sj_tracee_read(target, ranges_at + offsetof(sj_stub_ranges, ranges),
                                            ranges, count * sizeof(*ranges));
    for (uint32_t i = 0; i < count && status == SJ_OK; i++) {
        const uint64_t low = atomic_load(&ranges[i].low);
        if (low != 0) {
            stubs->areas[stubs->count++] =
                (sj_remote_range){.low = low, .high = low + atomic_load(&ranges[i].bytes)};
        }
    }
    free(ranges);
    return status;
}

sj_status sj_remote_stubs_read(const sj_tracee *target, sj_remote_stubs *stubs)
{
    sj_remote_module module;
    sj_agent_state state;
    uint64_t state_at = 0;
    *stubs = (sj_remote_stubs){0};
    SJ_TRY(sj_remote_module_find(target->pid, "libsojourn-agent", &module));
    SJ_TRY(sj_remote_symbol(target, &module, SJ_AGENT_STATE_SYMBOL, &state_at));
    SJ_TRY(sj_tracee_read(target, state_at, &state, sizeof(state)));
    if (state.magic != SJ_AGENT_STATE_MAGIC || state.version != SJ_AGENT_STATE_VERSION) {
        return SJ_EVERSION;
    }
    stubs->agent = (sj_remote_range){.low = module.code_low, .high = module.code_high};
    stubs->thunk = state.return_regions != 0 ? state.return_thunk : 0;
    stubs->return_regions = state.return_regions;
    return read_areas(target, state.stub_ranges, stubs);
}

void sj_remote_stubs_deinit(sj_remote_stubs *stubs)
{
    free(stubs->areas);
    *stubs = (sj_remote_stubs){0};
}

const sj_remote_range *sj_remote_stubs_find(const sj_remote_stubs *stubs, uint64_t pc)
{
    for (size_t i = 0; i < stubs->count; i++) {
        if (sj_remote_is_in(&stubs->areas[i], pc)) {
            return &stubs->areas[i];
        }
    }
    return NULL;
}

/* Returns the true return address of the stack word at `address`, or 0 if it is unknown. */
static uint64_t read_slot(const sj_remote_stubs *stubs, const sj_tracee *target, uint64_t address)
{
    const uint64_t region = address >> SJ_RETURN_REGION_SHIFT;
    const uint64_t within = address & ((UINT64_C(1) << SJ_RETURN_REGION_SHIFT) - 1);
    uint64_t slots = 0;
    sj_return_slot slot;
    if (region >= SJ_RETURN_REGIONS ||
        sj_tracee_read(target, stubs->return_regions + region * sizeof(slots), &slots,
                       sizeof(slots)) != SJ_OK ||
        slots == 0 ||
        sj_tracee_read(target, slots + within / sizeof(uint64_t) * sizeof(slot), &slot,
                       sizeof(slot)) != SJ_OK) {
        return 0;
    }
    return slot.return_address;
}

void sj_remote_stubs_put_back(const sj_remote_stubs *stubs, const sj_tracee *target, uint64_t low,
                              uint8_t *bytes, size_t size)
{
    uint64_t word;
    const size_t first = (size_t)(-low % sizeof(word));
    for (size_t at = first; stubs->thunk != 0 && at + sizeof(word) <= size; at += sizeof(word)) {
        memcpy(&word, bytes + at, sizeof(word));
        if (word == stubs->thunk) {
            const uint64_t kept = read_slot(stubs, target, low + at);
            memcpy(bytes + at, kept != 0 ? &kept : &word, sizeof(word));
        }
    }
}
