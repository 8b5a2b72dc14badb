/* Design notes
 *
 * Libraries are left out, because another thread may unload them. The program's writable data is
 * left out, because it may be unmapped or protected. Nothing is known of stacks of coroutines and
 * signal handlers. */
#include "agent/inproc/recorder/readable.h"

#include "agent/inproc/recorder/internal.h"

#include <link.h>
#include <sys/auxv.h>

enum { RANGES = 8 };

static sj_stack_bounds ranges[RANGES]; /* low to high, of the program's segments */
static uint32_t range_count;

void sj_recorder_note_program(void)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    const uint64_t count = getauxval(AT_PHNUM);
    uint64_t bias = 0;
    bool is_known = false;
    if (headers == NULL || range_count != 0) {
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_PHDR) {
            bias = (uint64_t)(uintptr_t)headers - headers[i].p_vaddr;
            is_known = true;
        }
    }
    for (uint64_t i = 0; is_known && i < count && range_count < RANGES; i++) {
        const ElfW(Phdr) *segment = &headers[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & (PF_R | PF_W)) == PF_R) {
            ranges[range_count].low = bias + segment->p_vaddr;
            ranges[range_count++].high = bias + segment->p_vaddr + segment->p_filesz;
        }
    }
}

/* Returns the calling thread's slot if `here` lies on its own stack, else NULL. */
static const sj_thread_slot *own_stack(uint64_t here)
{
    const sj_thread_slot *slot = sj_recorder_self.slot;
    const bool is_own = slot != NULL && sj_recorder_self.has_own_stack && here >= slot->stack_low &&
                        here < slot->stack_high;
    return is_own ? slot : NULL;
}

size_t sj_recorder_stack_space(void)
{
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const sj_thread_slot *slot = own_stack(here);
    if (slot == NULL) {
        return 0;
    }
    const bool is_alternate = sj_recorder_is_on_alternate(&sj_recorder_self, here);
    return here - (is_alternate ? sj_recorder_self.alternate_low : slot->stack_low);
}

size_t sj_recorder_readable(uint64_t address)
{
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const sj_thread_slot *slot = own_stack(here);
    for (uint32_t i = 0; i < range_count; i++) {
        if (address >= ranges[i].low && address < ranges[i].high) {
            return ranges[i].high - address;
        }
    }
    return slot != NULL && address >= here && address < slot->stack_high
               ? slot->stack_high - address
               : 0;
}
