/* What is kept in a signal's frame of a thread that was interrupted in a stub. */
#ifndef SJ_AGENT_INPROC_CORE_SAVED_CONTEXT_H
#define SJ_AGENT_INPROC_CORE_SAVED_CONTEXT_H

#include <stdint.h>

typedef struct sj_saved_context {
    uint64_t magic; /* 0: it was in no stub */
    uint64_t pc;    /* where it was */
    uint64_t sp;
    uint64_t link;
    uint64_t shown_pc; /* what the program's handler sees */
    uint64_t shown_sp;
} sj_saved_context;

#endif
