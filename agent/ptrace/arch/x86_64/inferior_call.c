/* Design notes
 *
 * The call uses the frame that the kernel writes for a signal handler. It holds the return address
 * (the restorer), a ucontext with all registers and the signal mask, and the vector state. The
 * called function returns to the restorer. If the tracer is gone, the restorer's rt_sigreturn
 * restores the thread. A living tracer sees the thread enter rt_sigreturn, skips it, and restores
 * the thread itself: rt_sigreturn would end timed sleeps with EINTR.
 *
 * A thread that was inside a system call is sent back to the instruction that makes it. The kernel
 * does the same for a signal without a handler. */
#include "agent/ptrace/arch.h"

#include "agent/ptrace/call_wait.h"

#include <cpuid.h>
#include <elf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>

enum {
    RED_ZONE_BYTES = 128,
    VECTOR_ALIGNMENT = 64,
    VECTOR_MAX_BYTES = 32 * 1024,
    TEXT_MAX_BYTES = 4200,
    SOFTWARE_OFFSET = 464, /* in the legacy area: bytes that the kernel uses itself */
    HEADER_OFFSET = 512,
    STATE_LEAF = 0xd,
    /* tile registers; a thread has memory for them only if it asked for it */
    MATRIX_FEATURES = 3 << 17,
    FRAME_FLAGS = 7 /* vector state, stack segment, strict restore */
};

/* Results of an interrupted system call. These numbers are internal to the kernel and never reach
 * programs. */
enum { RESTART_SYS = 512, RESTART_NO_INTERRUPT = 513, RESTART_NO_HAND = 514, RESTART_BLOCK = 516 };

typedef struct vector_state {
    uint8_t bytes[VECTOR_MAX_BYTES]; /* in the layout that rt_sigreturn expects */
    size_t size;
    uint8_t original[VECTOR_MAX_BYTES]; /* in the layout that ptrace expects */
    size_t original_size;
} vector_state;

/* The state that a thread gets back after the call. */
typedef struct thread_context {
    struct user_regs_struct registers;
    uint64_t mask;
    vector_state *vector;
} thread_context;

/* The kernel's struct _fpx_sw_bytes. It describes the content of the vector state to
 * rt_sigreturn. */
typedef struct software_bytes {
    uint32_t magic;
    uint32_t extended_size;
    uint64_t features;
    uint32_t state_size;
    uint32_t padding[7];
} software_bytes;

typedef struct signal_frame {
    uint64_t restorer;
    uint64_t flags;
    uint64_t link;
    uint64_t stack_pointer; /* describes the alternate stack */
    uint64_t stack_flags;
    uint64_t stack_size;
    gregset_t registers;
    uint64_t vector;
    uint64_t reserved[8];
    uint64_t signal_mask;
} signal_frame;

/* Returns how many bytes the features take in the uncompacted layout. */
static uint32_t state_bytes(uint64_t features)
{
    uint32_t end = HEADER_OFFSET + 64;
    for (uint32_t i = 2; i < 63; i++) {
        unsigned size;
        unsigned offset;
        unsigned c;
        unsigned d;
        if ((features >> i & 1) != 0) {
            __cpuid_count(STATE_LEAF, i, size, offset, c, d);
            end = offset + size > end ? offset + size : end;
        }
    }
    return end;
}

/* Reads the vector state and converts it to what rt_sigreturn expects. */
static sj_status read_vector(pid_t tid, vector_state *state)
{
    struct iovec buffer = {.iov_base = state->bytes, .iov_len = sizeof(state->bytes) - 64};
    uint64_t features;
    uint64_t used;
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &buffer) != 0 ||
        buffer.iov_len < HEADER_OFFSET + 64) {
        return SJ_EUNSUPPORTED;
    }
    memcpy(state->original, state->bytes, buffer.iov_len);
    state->original_size = buffer.iov_len;
    memcpy(&features, state->bytes + SOFTWARE_OFFSET, sizeof(features));
    memcpy(&used, state->bytes + HEADER_OFFSET, sizeof(used));
    if ((used & MATRIX_FEATURES) == 0) {
        features &= ~(uint64_t)MATRIX_FEATURES;
    }
    const uint32_t size = state_bytes(features);
    const uint32_t magic = 0x46505845;
    if (size > buffer.iov_len) {
        return SJ_EUNSUPPORTED;
    }
    const software_bytes software = {.magic = 0x46505853,
                                     .extended_size = size + (uint32_t)sizeof(magic),
                                     .features = features,
                                     .state_size = size};
    memcpy(state->bytes + SOFTWARE_OFFSET, &software, sizeof(software));
    memcpy(state->bytes + size, &magic, sizeof(magic));
    state->size = size + sizeof(magic);
    return SJ_OK;
}

/* Sends a thread back to the system call that it was stopped in. */
static void rewind_syscall(struct user_regs_struct *now)
{
    enum { SYSCALL_BYTES = 2 };
    if ((int64_t)now->orig_rax < 0) {
        return;
    }
    switch (-(int64_t)now->rax) {
    case RESTART_SYS:
    case RESTART_NO_INTERRUPT:
    case RESTART_NO_HAND:
        now->rax = now->orig_rax;
        now->rip -= SYSCALL_BYTES;
        break;
    case RESTART_BLOCK:
        now->rax = SYS_restart_syscall;
        now->rip -= SYSCALL_BYTES;
        break;
    default: /* the system call had already ended */
        break;
    }
    now->orig_rax = UINT64_MAX;
}

static void fill_frame(const struct user_regs_struct *now, uint64_t mask, uint64_t restorer,
                       uint64_t vector, signal_frame *frame)
{
    *frame = (signal_frame){.restorer = restorer,
                            .flags = FRAME_FLAGS,
                            /* An invalid value, so that rt_sigreturn does not change the alternate
                             * stack. */
                            .stack_flags = 0x7fff,
                            .vector = vector,
                            .signal_mask = mask};
    greg_t *to = frame->registers;
    to[REG_R8] = (greg_t)now->r8;
    to[REG_R9] = (greg_t)now->r9;
    to[REG_R10] = (greg_t)now->r10;
    to[REG_R11] = (greg_t)now->r11;
    to[REG_R12] = (greg_t)now->r12;
    to[REG_R13] = (greg_t)now->r13;
    to[REG_R14] = (greg_t)now->r14;
    to[REG_R15] = (greg_t)now->r15;
    to[REG_RDI] = (greg_t)now->rdi;
    to[REG_RSI] = (greg_t)now->rsi;
    to[REG_RBP] = (greg_t)now->rbp;
    to[REG_RBX] = (greg_t)now->rbx;
    to[REG_RDX] = (greg_t)now->rdx;
    to[REG_RAX] = (greg_t)now->rax;
    to[REG_RCX] = (greg_t)now->rcx;
    to[REG_RSP] = (greg_t)now->rsp;
    to[REG_RIP] = (greg_t)now->rip;
    to[REG_EFL] = (greg_t)now->eflags;
    to[REG_CSGSFS] = (greg_t)(now->cs & 0xffff) | (greg_t)((now->ss & 0xffff) << 48);
}

/* Writes the text, the vector state and the frame below the thread's stack pointer. Stores the
 * registers for the call in `*call`. */
static sj_status write_frame(const sj_tracee *target, const struct user_regs_struct *now,
                             vector_state *vector, uint64_t mask, const sj_inferior_call *wanted,
                             struct user_regs_struct *call)
{
    signal_frame frame;
    uint64_t at = now->rsp - RED_ZONE_BYTES;
    *call = *now;
    call->rdi = wanted->arguments[0];
    call->rsi = wanted->arguments[1];
    call->rdx = wanted->arguments[2];
    if (wanted->text != NULL) {
        const size_t bytes = strlen(wanted->text) + 1;
        if (bytes > TEXT_MAX_BYTES) {
            return SJ_ELIMIT;
        }
        at -= bytes;
        SJ_TRY(sj_tracee_write(target, at, wanted->text, bytes));
        call->rdi = at;
    }
    at = (at - vector->size) & ~(uint64_t)(VECTOR_ALIGNMENT - 1);
    SJ_TRY(sj_tracee_write(target, at, vector->bytes, vector->size));
    fill_frame(now, mask, wanted->restorer, at, &frame);
    /* The function must see the stack as it is after a call instruction. */
    at = ((at - sizeof(frame)) & ~UINT64_C(15)) - sizeof(uint64_t);
    SJ_TRY(sj_tracee_write(target, at, &frame, sizeof(frame)));
    call->rsp = at;
    call->rip = wanted->function;
    call->rax = 0;
    call->orig_rax = UINT64_MAX;
    call->eflags &= ~UINT64_C(0x500); /* clears the direction flag and the single-step flag */
    return SJ_OK;
}

static bool is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
           signal == SIGSYS || signal == SIGABRT;
}

/* Restores a thread. The registers come last, because they make the thread leave the frame. */
static sj_status put_back(pid_t tid, thread_context *context)
{
    struct iovec buffer = {.iov_base = context->vector->original,
                           .iov_len = context->vector->original_size};
    const bool done =
        ptrace(PTRACE_SETREGSET, tid, (void *)NT_X86_XSTATE, &buffer) == 0 &&
        ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(context->mask), &context->mask) == 0 &&
        ptrace(PTRACE_SETREGS, tid, NULL, &context->registers) == 0;
    return done ? SJ_OK : SJ_ECLOSED;
}

/* Lets the thread run until it is back where it was. Sets `*is_to_stop` if the process was stopped
 * meanwhile by SIGSTOP, the one signal that cannot be blocked. */
static sj_status await_return(sj_tracee *target, size_t thread, const sj_inferior_call *call,
                              uint64_t frame, thread_context *before, int timeout_ms,
                              bool *is_to_stop)
{
    const pid_t tid = target->threads[thread].tid;
    struct user_regs_struct now;
    bool is_back = false;
    int wait_status = 0;
    sj_call_wait wait = sj_call_wait_begin(call, timeout_ms);
    for (;;) {
        target->threads[thread].stopped = false;
        if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) != 0) {
            return SJ_ECLOSED;
        }
        SJ_TRY(sj_call_wait_next(&wait, target, &thread, &wait_status));
        if (target->replaced) {
            return SJ_ECLOSED;
        }
        if (WSTOPSIG(wait_status) == (SIGTRAP | 0x80)) {
            if (is_back) {
                return SJ_OK;
            }
            if (ptrace(PTRACE_GETREGS, tid, NULL, &now) != 0) {
                return SJ_ECLOSED;
            }
            if (now.orig_rax == SYS_rt_sigreturn && now.rsp == frame + sizeof(uint64_t)) {
                SJ_TRY(put_back(tid, before));
                is_back = true;
            }
        } else if (wait_status >> 16 == 0 && is_crash(WSTOPSIG(wait_status))) {
            const sj_status status = put_back(tid, before);
            return status == SJ_OK ? SJ_EIO : status;
        } else if (wait_status >> 16 == 0 && WSTOPSIG(wait_status) == SIGSTOP) {
            *is_to_stop = true;
        }
    }
}

static sj_status make_call(sj_tracee *target, size_t thread, const sj_inferior_call *call,
                           vector_state *vector, int timeout_ms)
{
    const pid_t tid = target->threads[thread].tid;
    const uint64_t held = UINT64_MAX;
    const long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
    thread_context before = {.vector = vector};
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, tid, NULL, &before.registers) != 0 ||
        ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(before.mask), &before.mask) != 0) {
        return SJ_ECLOSED;
    }
    SJ_TRY(read_vector(tid, vector));
    rewind_syscall(&before.registers);
    SJ_TRY(write_frame(target, &before.registers, vector, before.mask, call, &registers));
    /* Sets the registers first: from then on the frame restores the signal mask in every case. */
    if (ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)options) != 0 ||
        ptrace(PTRACE_SETREGS, tid, NULL, &registers) != 0 ||
        ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(held), &held) != 0) {
        return SJ_ECLOSED;
    }
    bool is_to_stop = false;
    const sj_status status =
        await_return(target, thread, call, registers.rsp, &before, timeout_ms, &is_to_stop);
    if (status == SJ_OK || status == SJ_EIO) {
        /* The thread has left the frame. Clears its return address, so that no stack scan takes the
         * frame for a handler's. */
        const uint64_t none = 0;
        (void)!sj_tracee_write(target, registers.rsp, &none, sizeof(none));
    }
    if (is_to_stop) {
        (void)kill(target->pid, SIGSTOP);
    }
    return status;
}

sj_status sj_inferior_call_run(sj_tracee *target, size_t thread, const sj_inferior_call *call,
                               int timeout_ms)
{
    vector_state *vector = malloc(sizeof(*vector));
    if (vector == NULL) {
        return SJ_ENOMEM;
    }
    const sj_status status = make_call(target, thread, call, vector, timeout_ms);
    free(vector);
    return status;
}
