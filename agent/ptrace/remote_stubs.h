/* The agent's code in a foreign process: its module, its stub areas, and the thunk. The agent
 * replaces return addresses on stacks by the address of the thunk. An unwinder that knows this code
 * can omit the agent's frames. */
#ifndef SJ_AGENT_PTRACE_REMOTE_STUBS_H
#define SJ_AGENT_PTRACE_REMOTE_STUBS_H

#include "agent/abi/stub_map.h"
#include "agent/ptrace/tracee_modules.h"

typedef struct sj_remote_stubs {
    sj_remote_range agent; /* code of the agent itself */
    sj_remote_range *areas;
    size_t count;
    uint64_t thunk; /* 0: the agent has not replaced any return address */
    uint64_t return_regions;
} sj_remote_stubs;

/* Reads where the stubs are. If threads of the process run meanwhile, stubs that they add may be
 * missing. Returns SJ_ENOTFOUND if the process has no agent. Returns SJ_EVERSION if the agent has
 * another version. Returns SJ_EIO or SJ_ENOMEM. Free with sj_remote_stubs_deinit. Blocks while it
 * reads files of /proc. Thread-safe for different targets. */
SJ_MUST_CHECK sj_status sj_remote_stubs_read(const sj_tracee *target, sj_remote_stubs *stubs);
void sj_remote_stubs_deinit(sj_remote_stubs *stubs);

/* Returns the area that contains `pc`, or NULL. Borrowed from `stubs`. */
const sj_remote_range *sj_remote_stubs_find(const sj_remote_stubs *stubs, uint64_t pc);

/* Replaces the thunk's address by the original return addresses in `bytes`. These are a copy of
 * `size` bytes of a stack, from the address `low` on. The threads must have been stopped since the
 * copy was made. */
void sj_remote_stubs_put_back(const sj_remote_stubs *stubs, const sj_tracee *target, uint64_t low,
                              uint8_t *bytes, size_t size);

#endif
