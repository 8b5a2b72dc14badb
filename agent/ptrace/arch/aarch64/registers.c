/* Design notes
 *
 * The kernel rewinds an interrupted system call before it stops the thread. The program counter is
 * then on the call's instruction again, and x0 has its first argument. The kernel does not report
 * the call's number. So the instruction at the program counter, or the one before it, decides
 * whether the thread is in a system call. The number stays in x8.
 *
 * A signal handler returns by x30, which the handler saves anywhere in its frame, perhaps signed.
 * So a signal frame is recognised by its content: the kernel's context always begins its extended
 * records with the vector registers. */
#include "agent/abi/saved_context.h"
#include "agent/ptrace/arch.h"

#include <elf.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

enum {
    CODE_BYTES = 4, /* of one instruction */
    PC_IN_CONTEXT = 440,
    RECORDS_IN_CONTEXT = 464,
    RECORDS_BYTES = 4096,
    VECTOR_RECORD_BYTES = 528,
    LINK_REGISTER = 30,
    NUMBER_REGISTER = 8,
    RESTORER_MAX_BYTES = 1 << 16 /* the kernel's own library is not larger */
};

#define CODE_SIGRETURN UINT32_C(0xd2801168) /* mov x8, #139 */
#define VECTOR_RECORD_MAGIC UINT32_C(0x46508001)
#define SET_PAC_MASK 0x406 /* NT_ARM_PAC_MASK, which older headers lack */

static sj_status get_registers(pid_t tid, struct user_regs_struct *now)
{
    struct iovec buffer = {.iov_base = now, .iov_len = sizeof(*now)};
    return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &buffer) == 0 &&
                   buffer.iov_len == sizeof(*now)
               ? SJ_OK
               : SJ_ECLOSED;
}

/* Returns the bits of a return address that hold its signature. 0: the processor does not sign. */
static uint64_t signature_bits(pid_t tid)
{
    struct {
        uint64_t data;
        uint64_t code;
    } masks = {0};
    struct iovec buffer = {.iov_base = &masks, .iov_len = sizeof(masks)};
    return ptrace(PTRACE_GETREGSET, tid, (void *)SET_PAC_MASK, &buffer) == 0 ? masks.code : 0;
}

/* True if the instruction at `address` is a system call. A stopped thread's text can be read. */
static bool is_system_call(pid_t tid, uint64_t address)
{
    const uint64_t word_at = address & ~UINT64_C(7);
    const long word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)word_at, NULL);
    return (uint32_t)((uint64_t)word >> (address != word_at ? 32 : 0)) == SJ_MACHINE_SYSTEM_CALL;
}

sj_status sj_registers_get(pid_t tid, sj_registers *state)
{
    struct user_regs_struct now;
    SJ_TRY(get_registers(tid, &now));
    const bool is_before = is_system_call(tid, now.pc);
    *state = (sj_registers){.pc = now.pc,
                            .sp = now.sp,
                            .in_syscall = is_before || is_system_call(tid, now.pc - CODE_BYTES),
                            .signature_bits = signature_bits(tid),
                            .register_count = LINK_REGISTER + 2};
    state->syscall = state->in_syscall ? (int64_t)now.regs[NUMBER_REGISTER] : -1;
    /* Behind the instruction, x0 holds the result. */
    state->argument = is_before ? now.regs[0] : 0;
    memcpy(state->registers, now.regs, sizeof(now.regs));
    state->registers[LINK_REGISTER] &= ~state->signature_bits;
    state->registers[SJ_MACHINE_DWARF_SP] = now.sp;
    return SJ_OK;
}

sj_status sj_registers_set_pc(pid_t tid, uint64_t pc)
{
    enum { BRANCH_TYPE_BITS = 3 << 10 };
    struct user_regs_struct now;
    struct iovec buffer = {.iov_base = &now, .iov_len = sizeof(now)};
    SJ_TRY(get_registers(tid, &now));
    now.pc = pc;
    now.pstate &= ~(uint64_t)BRANCH_TYPE_BITS; /* no landing pad is needed there */
    return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &buffer) == 0 ? SJ_OK : SJ_ECLOSED;
}

bool sj_jump_follow(uint64_t address, const uint8_t *bytes, uint32_t count, uint64_t *to)
{
    uint32_t code = 0;
    if (count >= sizeof(code)) {
        memcpy(&code, bytes, sizeof(code));
    }
    if (code >> 26 != 5) { /* b */
        return false;
    }
    *to = address + (uint64_t)((int64_t)((uint64_t)code << 38) >> 36);
    return true;
}

/* Returns where the code of a restorer begins from `low` to `high`, or 0. */
static uint64_t find_code(const sj_tracee *target, uint64_t low, uint64_t high)
{
    static const uint32_t code[] = {CODE_SIGRETURN, SJ_MACHINE_SYSTEM_CALL};
    uint64_t found = 0;
    uint8_t *bytes = malloc(high - low);
    if (bytes != NULL && sj_tracee_read(target, low, bytes, high - low) == SJ_OK) {
        const uint8_t *at = memmem(bytes, high - low, code, sizeof(code));
        found = at != NULL && (at - bytes) % CODE_BYTES == 0 ? low + (uint64_t)(at - bytes) : 0;
    }
    free(bytes);
    return found;
}

/* The kernel's own library has the restorer, unless the C library gives one to sigaction. */
uint64_t sj_restorer_find_in(const sj_tracee *target, uint64_t low, uint64_t high)
{
    char line[512];
    uint64_t found = 0;
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)target->pid);
    FILE *file = fopen(line, "re");
    while (file != NULL && found == 0 && fgets(line, sizeof(line), file) != NULL) {
        uint64_t first;
        uint64_t end;
        if (strstr(line, "[vdso]") != NULL &&
            sscanf(line, "%" SCNx64 "-%" SCNx64, &first, &end) == 2 &&
            end - first <= RESTORER_MAX_BYTES) {
            found = find_code(target, first, end);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found != 0 ? found : find_code(target, low, high);
}

bool sj_signal_is_frame(const sj_signal_returns *returns, const uint8_t *bytes, size_t count)
{
    uint64_t flags_and_link[2];
    uint32_t record[2];
    (void)returns;
    if (count < SJ_SIGNAL_FRAME_BYTES) {
        return false;
    }
    memcpy(flags_and_link, bytes, sizeof(flags_and_link));
    memcpy(record, bytes + RECORDS_IN_CONTEXT, sizeof(record));
    return flags_and_link[0] == 0 && flags_and_link[1] == 0 && record[0] == VECTOR_RECORD_MAGIC &&
           record[1] == VECTOR_RECORD_BYTES;
}

/* Returns the address after the last record of a context, where the agent saves its own. Returns 0
 * if the records do not end. */
static uint64_t find_end_of_records(const sj_tracee *target, uint64_t context)
{
    uint32_t record[2] = {0, 0};
    for (uint64_t at = 0; at + sizeof(record) <= RECORDS_BYTES; at += record[1]) {
        const uint64_t address = context + RECORDS_IN_CONTEXT + at;
        if (sj_tracee_read(target, address, record, sizeof(record)) != SJ_OK) {
            return 0;
        }
        if (record[0] == 0) {
            return address + 2 * sizeof(record);
        }
        if (record[1] < sizeof(record)) {
            return 0;
        }
    }
    return 0;
}

sj_status sj_signal_find_pc(const sj_tracee *target, const sj_signal_returns *returns,
                            uint64_t word, uint64_t at, uint64_t *pc_at, bool *is_shown)
{
    const uint64_t saved_at = find_end_of_records(target, at);
    uint64_t magic = 0;
    (void)word;
    if (returns->of_agent != 0 && saved_at != 0) {
        SJ_TRY(sj_tracee_read(target, saved_at, &magic, sizeof(magic)));
    }
    *is_shown = magic != SJ_SAVED_CONTEXT_MAGIC;
    *pc_at = *is_shown ? at + PC_IN_CONTEXT : saved_at + offsetof(sj_saved_context, pc);
    return SJ_OK;
}

/* The context lies above the stack pointer, also in the restorer. */
uint64_t sj_signal_context_start(const sj_tracee *target, const sj_registers *state,
                                 const sj_signal_returns *returns)
{
    (void)target;
    (void)returns;
    return state->sp & ~UINT64_C(7);
}

bool sj_inferior_call_is_allowed(int64_t syscall)
{
    static const int64_t forbidden[] = {SYS_brk,     SYS_mmap,       SYS_munmap,       SYS_mremap,
                                        SYS_madvise, SYS_mprotect,   SYS_clone,        SYS_execve,
                                        SYS_exit,    SYS_exit_group, SYS_rt_sigreturn, SYS_openat,
                                        SYS_clone3};
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (syscall == forbidden[i]) {
            return false;
        }
    }
    return true;
}
