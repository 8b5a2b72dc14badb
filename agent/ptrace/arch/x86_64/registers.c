#include "agent/abi/saved_context.h"
#include "agent/ptrace/arch.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

enum {
    OPCODE_JMP32 = 0xe9,
    OPCODE_JMP8 = 0xeb,
    RIP_IN_UCONTEXT = 168,
    SEGMENTS_IN_UCONTEXT = 184, /* four fields of 16 bits: cs, gs, fs, ss */
    RESTORER_BYTES = 9
};

#define USER_CS_AND_SS UINT64_C(0x002b000000000033)
#define CS_AND_SS_BITS UINT64_C(0xffff00000000ffff)

static sj_status get_registers(pid_t tid, struct user_regs_struct *registers)
{
    return ptrace(PTRACE_GETREGS, tid, NULL, registers) == 0 ? SJ_OK : SJ_ECLOSED;
}

sj_status sj_registers_get(pid_t tid, sj_registers *state)
{
    struct user_regs_struct now;
    SJ_TRY(get_registers(tid, &now));
    *state = (sj_registers){.pc = now.rip,
                            .sp = now.rsp,
                            .in_syscall = (int64_t)now.orig_rax >= 0,
                            .syscall = (int64_t)now.orig_rax,
                            .argument = now.rdi,
                            .registers = {now.rax, now.rdx, now.rcx, now.rbx, now.rsi, now.rdi,
                                          now.rbp, now.rsp, now.r8, now.r9, now.r10, now.r11,
                                          now.r12, now.r13, now.r14, now.r15, now.rip},
                            .register_count = 17};
    return SJ_OK;
}

sj_status sj_registers_set_pc(pid_t tid, uint64_t pc)
{
    struct user_regs_struct now;
    SJ_TRY(get_registers(tid, &now));
    now.rip = pc;
    return ptrace(PTRACE_SETREGS, tid, NULL, &now) == 0 ? SJ_OK : SJ_ECLOSED;
}

bool sj_jump_follow(uint64_t address, const uint8_t *bytes, uint32_t count, uint64_t *to)
{
    if (count >= 5 && bytes[0] == OPCODE_JMP32) {
        int32_t distance;
        memcpy(&distance, bytes + 1, sizeof(distance));
        *to = address + 5 + (uint64_t)(int64_t)distance;
        return true;
    }
    if (count >= 2 && bytes[0] == OPCODE_JMP8) {
        *to = address + 2 + (uint64_t)(int64_t)(int8_t)bytes[1];
        return true;
    }
    return false;
}

uint64_t sj_restorer_find_in(const sj_tracee *target, uint64_t low, uint64_t high)
{
    /* mov $15, %rax; syscall */
    static const uint8_t code[RESTORER_BYTES] = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
                                                 0x00, 0x00, 0x0f, 0x05};
    uint64_t found = 0;
    uint8_t *bytes = malloc(high - low);
    if (bytes != NULL && sj_tracee_read(target, low, bytes, high - low) == SJ_OK) {
        const uint8_t *at = memmem(bytes, high - low, code, sizeof(code));
        found = at != NULL ? low + (uint64_t)(at - bytes) : 0;
    }
    free(bytes);
    return found;
}

static bool is_of_agent(const sj_signal_returns *returns, uint64_t pc)
{
    return returns->of_agent != 0 && pc - returns->of_agent < SJ_SIGNAL_RETURN_BYTES;
}

/* True if a word has the segment values that the kernel writes into each context. They also
 * identify contexts whose restorer is unknown. */
static bool has_segments(uint64_t word)
{
    return (word & CS_AND_SS_BITS) == USER_CS_AND_SS;
}

bool sj_signal_is_frame(const sj_signal_returns *returns, const uint8_t *bytes, size_t count)
{
    uint64_t word = 0;
    uint64_t segments = 0;
    const size_t segments_at = sizeof(word) + SEGMENTS_IN_UCONTEXT;
    if (count >= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
    }
    if (count >= SJ_SIGNAL_FRAME_BYTES) {
        memcpy(&segments, bytes + segments_at, sizeof(segments));
    }
    return (word == returns->of_library && word != 0) || is_of_agent(returns, word) ||
           has_segments(segments);
}

sj_status sj_signal_find_pc(const sj_tracee *target, const sj_signal_returns *returns,
                            uint64_t word, uint64_t at, uint64_t *pc_at, bool *is_shown)
{
    const uint64_t context = at + sizeof(uint64_t);
    const uint64_t saved_at = context + SJ_SAVED_CONTEXT_AT;
    uint64_t magic = 0;
    if (is_of_agent(returns, word)) {
        SJ_TRY(sj_tracee_read(target, saved_at, &magic, sizeof(magic)));
    }
    *is_shown = magic != SJ_SAVED_CONTEXT_MAGIC;
    *pc_at = *is_shown ? context + RIP_IN_UCONTEXT : saved_at + offsetof(sj_saved_context, pc);
    return SJ_OK;
}

uint64_t sj_signal_context_start(const sj_tracee *target, const sj_registers *state,
                                 const sj_signal_returns *returns)
{
    const uint64_t sp = state->sp & ~UINT64_C(7);
    uint64_t segments;
    const bool is_returning =
        state->pc - returns->of_library < RESTORER_BYTES || is_of_agent(returns, state->pc) ||
        (sj_tracee_read(target, sp + SEGMENTS_IN_UCONTEXT, &segments, sizeof(segments)) == SJ_OK &&
         has_segments(segments));
    return is_returning ? sp - sizeof(uint64_t) : sp;
}

bool sj_inferior_call_is_allowed(int64_t syscall)
{
    static const int64_t forbidden[] = {SYS_brk,          SYS_mmap,     SYS_munmap, SYS_mremap,
                                        SYS_madvise,      SYS_mprotect, SYS_clone,  SYS_fork,
                                        SYS_vfork,        SYS_execve,   SYS_exit,   SYS_exit_group,
                                        SYS_rt_sigreturn, SYS_openat,   SYS_clone3};
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (syscall == forbidden[i]) {
            return false;
        }
    }
    return true;
}
