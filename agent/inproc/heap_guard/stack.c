/* Design notes
 *
 * process_vm_readv reads a stack without faulting, but it is the most expensive step for a freed
 * object. Most threads run on their original stack, whose upper end stays mapped, so plain loads
 * can copy it. The main thread's stack ends with its mapping. The stack of another thread ends at
 * its thread-local storage, which lies in the same mapping. process_vm_readv reads all other
 * stacks. */
#include "agent/inproc/heap_guard/objects.h"

#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/recorder/maps.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum { MAX_SEARCHES = 16 };

typedef struct known_stack {
    uint64_t low;  /* Lowest address that was found mapped. */
    uint64_t high; /* Upper end of the stack; 0 if not known. */
    uint32_t searches;
} known_stack;

static __thread known_stack stack_range __attribute__((tls_model("initial-exec")));

/* Returns the upper end of the calling thread's stack in a mapping, or 0 if not known. */
static uint64_t stack_end_in(const sj_mapping *mapping, uint64_t sp)
{
    const uint64_t self = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    if (mapping->is_stack) {
        return sj_sys_tid() == sj_sys_pid() ? mapping->high : 0;
    }
    return self > sp && self < mapping->high ? self : 0;
}

static void find_stack(uint64_t sp)
{
    char buffer[SJ_MAPS_LITTLE_BYTES];
    sj_maps maps;
    sj_mapping mapping;
    stack_range.searches++;
    stack_range.high = 0;
    if (!sj_maps_open(&maps, buffer, sizeof(buffer))) {
        return;
    }
    while (sj_maps_next(&maps, &mapping)) {
        if (sp >= mapping.low && sp < mapping.high) {
            stack_range.low = mapping.low;
            stack_range.high = stack_end_in(&mapping, sp);
            break;
        }
    }
    sj_maps_close(&maps);
}

static bool is_on_known_stack(uint64_t sp)
{
    if (sp >= stack_range.low && sp < stack_range.high) {
        return true;
    }
    if (stack_range.searches >= MAX_SEARCHES || !sj_recorder_may_call()) {
        return false;
    }
    find_stack(sp);
    return sp >= stack_range.low && sp < stack_range.high;
}

bool sj_stack_has(uint64_t address, uint64_t bytes)
{
    const uint64_t sp = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    return is_on_known_stack(sp) && address > sp && address < stack_range.high &&
           bytes <= stack_range.high - address;
}

/* Copies words in a plain loop, so that the compiler does not call memcpy. */
static inline void copy_words(void *target, const void *source, uint64_t bytes)
{
    uint64_t *to = target;
    const uint64_t *from = source;
    for (uint64_t i = 0; i < bytes / sizeof(uint64_t); i++) {
        to[i] = from[i];
    }
}

void sj_stack_copy_own(sj_zombie_trace *trace, void *stack, uint32_t bytes)
{
    const uint64_t sp = trace->registers[SJ_TRACE_STACK_POINTER];
    if (!is_on_known_stack(sp)) {
        sj_trace_stack(trace, stack, bytes);
        return;
    }
    const uint64_t left = stack_range.high - sp;
    trace->stack_bytes = left < bytes ? (uint32_t)left & ~7U : bytes;
    copy_words(stack, (const void *)(uintptr_t)sp, trace->stack_bytes);
    sj_return_slots_put_back(sp, stack, trace->stack_bytes / sizeof(uint64_t));
}

static __thread uint32_t own_number __attribute__((tls_model("initial-exec")));

uint32_t sj_thread_number(void)
{
    if (own_number == 0 && sj_recorder_may_call()) {
        own_number = sj_sys_tid();
    }
    return own_number;
}

void sj_thread_after_fork(void)
{
    own_number = 0;
}
