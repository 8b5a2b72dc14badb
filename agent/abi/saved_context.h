/* What the agent keeps in a signal's frame of a thread that was interrupted in a stub or in the
 * agent. The frame shows the program's handler another place, which tracers must not take for the
 * true one. */
#ifndef SJ_AGENT_ABI_SAVED_CONTEXT_H
#define SJ_AGENT_ABI_SAVED_CONTEXT_H

#include <stdint.h>

#define SJ_SAVED_CONTEXT_MAGIC UINT64_C(0x4c414e4749534a53) /* "SJSIGNAL" */

/* x86-64: where it is in the kernel's context, behind the registers; 64 bytes. */
enum { SJ_SAVED_CONTEXT_AT = 40 + 24 * 8 };

/* Bytes of the agent's restorer, any of which a thread may return to. */
enum { SJ_SIGNAL_RETURN_BYTES = 32 };

typedef struct sj_saved_context {
    uint64_t magic; /* 0: it was in no stub, and not in the agent */
    uint64_t pc;    /* where it was */
    uint64_t sp;
    uint64_t link;
    uint64_t shown_pc; /* what the program's handler sees */
    uint64_t shown_sp;
    uint64_t room; /* address of its registers, which it had in the agent; 0: none are kept */
} sj_saved_context;

#endif
