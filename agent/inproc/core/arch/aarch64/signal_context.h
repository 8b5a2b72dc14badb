/* What a signal's frame says of the interrupted thread, and room of the frame's that the kernel
 * does not read: behind the last record of extended registers. */
#ifndef SJ_AGENT_INPROC_CORE_ARCH_AARCH64_SIGNAL_CONTEXT_H
#define SJ_AGENT_INPROC_CORE_ARCH_AARCH64_SIGNAL_CONTEXT_H

#include "agent/abi/saved_context.h"
#include "agent/abi/stub_map.h"

#include <stddef.h>
#include <ucontext.h>

enum { SJ_CONTEXT_LINK = 30 };

static inline sj_stub_state sj_context_get(const void *frame)
{
    const ucontext_t *context = frame;
    return (sj_stub_state){.pc = context->uc_mcontext.pc,
                           .sp = context->uc_mcontext.sp,
                           .link = context->uc_mcontext.regs[SJ_CONTEXT_LINK]};
}

static inline void sj_context_set(void *frame, const sj_stub_state *state)
{
    ucontext_t *context = frame;
    context->uc_mcontext.pc = state->pc;
    context->uc_mcontext.sp = state->sp;
    context->uc_mcontext.regs[SJ_CONTEXT_LINK] = state->link;
}

/* sj_context_saved returns that room; NULL: the frame has none. */
static inline sj_saved_context *sj_context_saved(void *frame)
{
    ucontext_t *context = frame;
    uint8_t *records = (uint8_t *)context->uc_mcontext.__reserved;
    const size_t most = sizeof(context->uc_mcontext.__reserved);
    struct {
        uint32_t magic;
        uint32_t bytes;
    } record = {0, 0};
    size_t at = 0;
    do {
        if (most - at < sizeof(record)) {
            return NULL;
        }
        __builtin_memcpy(&record, records + at, sizeof(record));
        if (record.magic == 0) {
            at += 2 * sizeof(record);
            return at <= most && most - at >= sizeof(sj_saved_context)
                       ? (sj_saved_context *)(void *)(records + at)
                       : NULL;
        }
        at += record.bytes;
    } while (record.bytes != 0 && at <= most);
    return NULL;
}

#endif
