/* Design notes
 *
 * A region serves 1 GiB of addresses, and its pages are created on use. The kernel reports which
 * pages exist, so the cost depends on the depth of the stacks, not on their size. If a word no
 * longer holds the thunk's address, the call of its slot has returned. */
#include "agent/attach/return_slots.h"

#include "agent/abi/page.h"
#include "agent/abi/return_slots.h"
#include "agent/ptrace/proc_status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    SLOTS_AT_ONCE = SJ_PAGE_LEAST_BYTES / sizeof(sj_return_slot),
    PAGES_AT_ONCE = 8192,
    REGIONS_AT_ONCE = 8192
};

/* Bits of /proc/PID/pagemap. */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)

typedef struct slot_restore {
    const sj_tracee *target;
    uint64_t thunk;
    int pagemap;
    uint64_t pages[PAGES_AT_ONCE];
    uint64_t regions[REGIONS_AT_ONCE];
} slot_restore;

/* Restores the return addresses of some slots of one page. If the stack cannot be read, it was
 * unmapped, so it has no calls. */
static sj_status restore_slots(const slot_restore *run, uint64_t slots_at, uint64_t stack)
{
    sj_return_slot slots[SLOTS_AT_ONCE];
    uint64_t words[SLOTS_AT_ONCE];
    SJ_TRY(sj_tracee_read(run->target, slots_at, slots, sizeof(slots)));
    if (sj_tracee_read(run->target, stack, words, sizeof(words)) != SJ_OK) {
        return SJ_OK;
    }
    for (uint32_t i = 0; i < SLOTS_AT_ONCE; i++) {
        if (slots[i].return_address != 0 && words[i] == run->thunk) {
            SJ_TRY(sj_tracee_write(run->target, stack + i * sizeof(words[0]),
                                   &slots[i].return_address, sizeof(words[0])));
        }
    }
    return SJ_OK;
}

static sj_status restore_page(const slot_restore *run, uint64_t slots_at, uint64_t stack)
{
    for (uint64_t done = 0; done < sj_page_bytes();
         done += SLOTS_AT_ONCE * sizeof(sj_return_slot)) {
        SJ_TRY(restore_slots(run, slots_at + done,
                             stack + done / sizeof(sj_return_slot) * sizeof(uint64_t)));
    }
    return SJ_OK;
}

static sj_status restore_region(slot_restore *run, uint64_t slots_at, uint64_t stack)
{
    const uint64_t page_bytes = sj_page_bytes();
    const uint64_t stack_bytes = page_bytes / sizeof(sj_return_slot) * sizeof(uint64_t);
    const uint64_t page_count = SJ_RETURN_REGION_BYTES / page_bytes;
    for (uint64_t page = 0; page < page_count; page += PAGES_AT_ONCE) {
        const off_t place = (off_t)((slots_at / page_bytes + page) * sizeof(run->pages[0]));
        if (pread(run->pagemap, run->pages, sizeof(run->pages), place) !=
            (ssize_t)sizeof(run->pages)) {
            return SJ_EIO;
        }
        for (uint64_t i = 0; i < PAGES_AT_ONCE; i++) {
            if ((run->pages[i] & (PAGE_PRESENT | PAGE_SWAPPED)) != 0) {
                SJ_TRY(restore_page(run, slots_at + (page + i) * page_bytes,
                                    stack + (page + i) * stack_bytes));
            }
        }
    }
    return SJ_OK;
}

static sj_status restore_regions(slot_restore *run, uint64_t regions_at)
{
    for (uint64_t first = 0; first < SJ_RETURN_REGIONS; first += REGIONS_AT_ONCE) {
        SJ_TRY(sj_tracee_read(run->target, regions_at + first * sizeof(run->regions[0]),
                              run->regions, sizeof(run->regions)));
        for (uint64_t i = 0; i < REGIONS_AT_ONCE; i++) {
            if (run->regions[i] != 0) {
                SJ_TRY(restore_region(run, run->regions[i], (first + i) << SJ_RETURN_REGION_SHIFT));
            }
        }
    }
    return SJ_OK;
}

sj_status sj_return_slots_restore(const sj_tracee *target, const sj_agent_state *state)
{
    char path[64];
    if (state->return_regions == 0) {
        return SJ_EIO;
    }
    slot_restore *run = malloc(sizeof(*run));
    if (run == NULL) {
        return SJ_ENOMEM;
    }
    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)sj_proc_living(target->pid));
    run->target = target;
    run->thunk = state->return_thunk;
    run->pagemap = open(path, O_RDONLY | O_CLOEXEC);
    const sj_status status =
        run->pagemap >= 0 ? restore_regions(run, state->return_regions) : SJ_EIO;
    if (run->pagemap >= 0) {
        close(run->pagemap);
    }
    free(run);
    return status;
}
