/* Some processors take every interrupt of a short loop at the same place. So tests move a stopped
 * victim to the place that they need. */
#ifndef SJ_TESTS_AGENT_PTRACE_VICTIM_PLACE_H
#define SJ_TESTS_AGENT_PTRACE_VICTIM_PLACE_H

#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

/* Two windows, of which the first is patched, and a jump back: nop, lfence, nop, lfence, jmp. */
static const uint8_t victim_loop[] = {0x90, 0x0f, 0xae, 0xe8, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf6};

enum { PLACE_INSIDE = 4, PLACE_BEHIND = 5 };

/* Moves the thread `tid` to the instruction at `offset` in the loop at `text`. Does nothing if the
 * thread is not in the loop. The caller must have stopped the thread by ptrace. */
static inline void place_victim(pid_t tid, uint64_t text, uint64_t offset)
{
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, tid, NULL, &registers) == 0 &&
        registers.rip - text < sizeof(victim_loop)) {
        registers.rip = text + offset;
        (void)ptrace(PTRACE_SETREGS, tid, NULL, &registers);
    }
}

#endif
