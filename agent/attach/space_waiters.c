#include "agent/attach/space_waiters.h"

#include "agent/abi/arena.h"
#include "agent/ptrace/proc_status.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* True if the page at `address` is the first page of an arena with waiting threads. */
static bool has_waiters(const sj_tracee *target, uint64_t address)
{
    sj_arena_header header;
    return sj_tracee_read(target, address, &header, sizeof(header)) == SJ_OK &&
           header.magic == SJ_ARENA_MAGIC && atomic_load(&header.drain_waiters) != 0;
}

bool sj_space_waiters_exist(const sj_tracee *target, const sj_agent_state *state)
{
    char path[64];
    char line[PATH_MAX + 128];
    bool exist = false;
    const size_t length = strnlen(state->runtime_directory, SJ_AGENT_STATE_PATH_BYTES);
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)sj_proc_living(target->pid));
    FILE *file = fopen(path, "re");
    while (file != NULL && !exist && fgets(line, sizeof(line), file) != NULL) {
        unsigned long low = 0;
        unsigned long offset = 1;
        const char *name = strchr(line, '/');
        exist = sscanf(line, "%lx-%*x %*s %lx", &low, &offset) == 2 && offset == 0 && length != 0 &&
                name != NULL && strncmp(name, state->runtime_directory, length) == 0 &&
                name[length] == '/' && has_waiters(target, low);
    }
    if (file != NULL) {
        fclose(file);
    }
    return exist;
}
