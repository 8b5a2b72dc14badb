/* State that the agent saves in the signal frame of a thread that was interrupted in a stub or in
 * the agent. The frame shows another pc to the program's handler. A tracer must not mistake that pc
 * for the real one. */
#ifndef SJ_AGENT_ABI_SAVED_CONTEXT_H
#define SJ_AGENT_ABI_SAVED_CONTEXT_H

#include <stdint.h>

#define SJ_SAVED_CONTEXT_MAGIC UINT64_C(0x4c414e4749534a53) /* "SJSIGNAL" */

/* x86-64: offset of the sj_saved_context in the kernel's context: the 64 reserved bytes after the
 * registers. */
enum { SJ_SAVED_CONTEXT_AT = 40 + 24 * 8 };

/* Size of the agent's restorer. A thread may return to any of its bytes. */
enum { SJ_SIGNAL_RETURN_BYTES = 32 };

typedef struct sj_saved_context {
    uint64_t magic; /* 0: the thread was outside of stubs and the agent */
    uint64_t pc;    /* real position of the thread */
    uint64_t sp;
    uint64_t link;
    uint64_t shown_pc; /* position that the program's handler sees */
    uint64_t shown_sp;
    /* Address of the registers that the thread had in the agent. 0: none are saved. */
    uint64_t saved_registers;
} sj_saved_context;

#endif
