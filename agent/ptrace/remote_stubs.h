/* The agent's code in a foreign process: its module, its stub areas, and the thunk that stands in
 * the place of return addresses. With it, a stack shows the program's code only. */
#ifndef SJ_AGENT_PTRACE_REMOTE_STUBS_H
#define SJ_AGENT_PTRACE_REMOTE_STUBS_H

#include "agent/abi/stub_map.h"
#include "agent/ptrace/tracee_modules.h"

typedef struct sj_remote_stubs {
    sj_remote_range agent; /* the code of the agent itself */
    sj_remote_range *areas;
    size_t count;
    uint64_t thunk; /* 0: no return address is replaced */
    uint64_t return_regions;
} sj_remote_stubs;

/* sj_remote_stubs_read reads where the stubs are while all threads are stopped. SJ_ENOTFOUND there
 * is no agent, SJ_EVERSION it is another version's, SJ_EIO, SJ_ENOMEM. Free with
 * sj_remote_stubs_deinit. Blocking: reads files of /proc. Thread-safe for different targets. */
SJ_MUST_CHECK sj_status sj_remote_stubs_read(const sj_tracee *target, sj_remote_stubs *stubs);
void sj_remote_stubs_deinit(sj_remote_stubs *stubs);

/* sj_remote_stubs_find returns the area that holds `pc`; NULL if none does. Borrowed. */
const sj_remote_range *sj_remote_stubs_find(const sj_remote_stubs *stubs, uint64_t pc);

/* sj_remote_stubs_put_back replaces the thunk's address by the true return addresses in a copy of
 * `size` bytes of a stack, which begins at `low`. The threads are still stopped. */
void sj_remote_stubs_put_back(const sj_remote_stubs *stubs, const sj_tracee *target, uint64_t low,
                              uint8_t *bytes, size_t size);

#endif
