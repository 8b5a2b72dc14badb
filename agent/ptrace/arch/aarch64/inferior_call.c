/* Design notes
 *
 * The call uses the frame that the kernel writes for a signal handler. It holds a siginfo, a
 * context with all registers and the signal mask, and records of the vector state. The function
 * returns by x30 to the restorer, and rt_sigreturn restores the thread. The kernel does so also if
 * the tracer is gone. rt_sigreturn is not skipped, as it is on x86-64, because a tracer cannot set
 * x7 where a system call begins.
 *
 * A thread that was inside a system call is on the call's instruction again: the kernel has rewound
 * it before the stop. So it makes the call again. A wait for a period begins again with the whole
 * period, because rt_sigreturn forgets how much of it has passed.
 *
 * x18, the frame pointer and TPIDR_EL0 keep their values during the call. */
#include "agent/ptrace/arch.h"

#include "agent/ptrace/call_wait.h"

#include <elf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

enum {
    STACK_ALIGNMENT = 16,
    SIGINFO_BYTES = 128,
    RECORDS_BYTES = 4096,
    TEXT_MAX_BYTES = 4200,
    NUMBER_REGISTER = 8,
    LINK_REGISTER = 30,
    VECTOR_REGISTERS = 32,
    SET_WIDE = 0x405,      /* NT_ARM_SVE */
    SET_STREAMING = 0x40b, /* NT_ARM_SSVE */
    SET_MATRIX = 0x40c,    /* NT_ARM_ZA */
    IS_WIDE = 1            /* the wide registers are in use */
};

#define VECTOR_MAGIC UINT32_C(0x46508001)
#define WIDE_MAGIC UINT32_C(0x53564501)
/* The bits of the branch type and of a single step. They are cleared, because they would apply to
 * the function's first instruction. */
#define STATE_BITS_CLEARED ((UINT64_C(3) << 10) | (UINT64_C(1) << 21))

typedef struct record_head {
    uint32_t magic;
    uint32_t bytes;
} record_head;

typedef struct vector_record {
    record_head head;
    uint32_t status;
    uint32_t control;
    uint64_t registers[2 * VECTOR_REGISTERS];
} vector_record;

/* The kernel's struct user_sve_header: the first bytes that ptrace returns. */
typedef struct wide_head {
    uint32_t size;
    uint32_t max_size;
    uint16_t vector_bytes;
    uint16_t max_vector_bytes;
    uint16_t flags;
    uint16_t reserved;
} wide_head;

typedef struct wide_record {
    record_head head;
    uint16_t vector_bytes;
    uint16_t reserved[3];
} wide_record;

typedef struct signal_frame {
    uint8_t siginfo[SIGINFO_BYTES];
    uint64_t flags;
    uint64_t link;
    uint64_t stack_pointer; /* describes the alternate stack */
    uint64_t stack_flags;
    uint64_t stack_size;
    uint64_t signal_mask;
    uint8_t more_signals[120];
    uint64_t padding;
    uint64_t fault_address;
    struct user_regs_struct registers;
    uint64_t more_padding;
    uint8_t records[RECORDS_BYTES];
} signal_frame;

_Static_assert(offsetof(signal_frame, registers) == SIGINFO_BYTES + 184, "the kernel's layout");
_Static_assert(offsetof(signal_frame, records) == SIGINFO_BYTES + 464, "the kernel's layout");

/* The state that a thread gets back after the call. */
typedef struct thread_context {
    struct user_regs_struct registers;
    struct user_fpsimd_struct vector;
    struct iovec wide; /* what ptrace read of the wide registers; empty: they are not in use */
    uint64_t mask;
    signal_frame *frame;
    uint64_t frame_at;
} thread_context;

static bool get_set(pid_t tid, uintptr_t set, void *bytes, size_t *size)
{
    struct iovec buffer = {.iov_base = bytes, .iov_len = *size};
    const bool done = ptrace(PTRACE_GETREGSET, tid, (void *)set, &buffer) == 0;
    *size = buffer.iov_len;
    return done;
}

static bool put_set(pid_t tid, uintptr_t set, void *bytes, size_t size)
{
    struct iovec buffer = {.iov_base = bytes, .iov_len = size};
    return ptrace(PTRACE_SETREGSET, tid, (void *)set, &buffer) == 0;
}

/* True if a set of matrix or streaming registers is in use. A function cannot be called then. */
static bool is_streaming(pid_t tid, uintptr_t set)
{
    wide_head head = {0};
    size_t size = sizeof(head);
    return get_set(tid, set, &head, &size) && head.size > sizeof(head);
}

/* Appends the record of the wide registers at `*at`, if they are in use, and advances `*at`. */
static sj_status add_wide(pid_t tid, thread_context *before, size_t *at)
{
    wide_head head = {0};
    size_t size = sizeof(head);
    if (!get_set(tid, SET_WIDE, &head, &size) || (head.flags & IS_WIDE) == 0) {
        return SJ_OK;
    }
    const size_t bytes = sizeof(wide_record) + ((head.size - sizeof(head) + 15) & ~(size_t)15);
    if (*at + bytes + sizeof(record_head) > RECORDS_BYTES) {
        return SJ_EUNSUPPORTED;
    }
    before->wide = (struct iovec){.iov_base = calloc(1, head.size), .iov_len = head.size};
    if (before->wide.iov_base == NULL) {
        return SJ_ENOMEM;
    }
    if (!get_set(tid, SET_WIDE, before->wide.iov_base, &before->wide.iov_len)) {
        return SJ_ECLOSED;
    }
    const wide_record record = {.head = {WIDE_MAGIC, (uint32_t)bytes},
                                .vector_bytes = head.vector_bytes};
    /* The status and control registers, the last bytes that ptrace returns, are not copied: the
     * vector record has them. */
    memcpy(before->frame->records + *at, &record, sizeof(record));
    memcpy(before->frame->records + *at + sizeof(record),
           (const uint8_t *)before->wide.iov_base + sizeof(head),
           before->wide.iov_len - sizeof(head));
    *at += bytes;
    return SJ_OK;
}

static sj_status fill_frame(pid_t tid, thread_context *before)
{
    signal_frame *frame = before->frame;
    size_t at = sizeof(vector_record);
    const struct user_fpsimd_struct *vector = &before->vector;
    vector_record record = {
        .head = {VECTOR_MAGIC, sizeof(record)}, .status = vector->fpsr, .control = vector->fpcr};
    memcpy(record.registers, vector->vregs, sizeof(record.registers));
    memcpy(frame->records, &record, sizeof(record));
    frame->signal_mask = before->mask;
    frame->registers = before->registers;
    /* An invalid value, so that rt_sigreturn does not change the alternate stack. */
    frame->stack_flags = 0x7fff;
    return add_wide(tid, before, &at);
}

/* Reads all that the call may change. */
static sj_status read_context(pid_t tid, thread_context *before)
{
    size_t size = sizeof(before->registers);
    size_t vector_size = sizeof(before->vector);
    if (!get_set(tid, NT_PRSTATUS, &before->registers, &size) ||
        !get_set(tid, NT_FPREGSET, &before->vector, &vector_size) ||
        ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(before->mask), &before->mask) != 0) {
        return SJ_ECLOSED;
    }
    /* A program of 32 bits has fewer registers. */
    if (size != sizeof(before->registers) || is_streaming(tid, SET_STREAMING) ||
        is_streaming(tid, SET_MATRIX)) {
        return SJ_EUNSUPPORTED;
    }
    return fill_frame(tid, before);
}

/* Writes the text and the frame below the thread's stack pointer. Stores the registers for the call
 * in `*call`. */
static sj_status write_frame(const sj_tracee *target, thread_context *before,
                             const sj_inferior_call *wanted, struct user_regs_struct *call)
{
    uint64_t at = before->registers.sp;
    *call = before->registers;
    memcpy(call->regs, wanted->arguments, sizeof(wanted->arguments));
    if (wanted->text != NULL) {
        const size_t bytes = strlen(wanted->text) + 1;
        if (bytes > TEXT_MAX_BYTES) {
            return SJ_ELIMIT;
        }
        at -= bytes;
        SJ_TRY(sj_tracee_write(target, at, wanted->text, bytes));
        call->regs[0] = at;
    }
    at = (at - sizeof(signal_frame)) & ~(uint64_t)(STACK_ALIGNMENT - 1);
    SJ_TRY(sj_tracee_write(target, at, before->frame, sizeof(*before->frame)));
    before->frame_at = at;
    call->sp = at;
    call->pc = wanted->function;
    call->regs[LINK_REGISTER] = wanted->restorer;
    call->pstate &= ~STATE_BITS_CLEARED;
    return SJ_OK;
}

static bool is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
           signal == SIGSYS || signal == SIGABRT;
}

/* Restores a thread that a signal has stopped in the function. The registers come last, because
 * they make the thread leave the frame. */
static sj_status put_back(pid_t tid, thread_context *before)
{
    const bool done =
        put_set(tid, NT_FPREGSET, &before->vector, sizeof(before->vector)) &&
        (before->wide.iov_len == 0 ||
         put_set(tid, SET_WIDE, before->wide.iov_base, before->wide.iov_len)) &&
        ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(before->mask), &before->mask) == 0 &&
        put_set(tid, NT_PRSTATUS, &before->registers, sizeof(before->registers));
    return done ? SJ_OK : SJ_ECLOSED;
}

/* True if a thread that stopped at a system call is about to leave the call's frame. */
static bool is_leaving(pid_t tid, const thread_context *before)
{
    struct user_regs_struct now;
    size_t size = sizeof(now);
    return get_set(tid, NT_PRSTATUS, &now, &size) &&
           now.regs[NUMBER_REGISTER] == SYS_rt_sigreturn && now.sp == before->frame_at;
}

/* Lets the thread run until it is back where it was. It then stops before its own next instruction.
 * Sets `*is_to_stop` if the process was stopped meanwhile by SIGSTOP, the one signal that cannot be
 * blocked. */
static sj_status await_return(sj_tracee *target, size_t thread, const sj_inferior_call *call,
                              thread_context *before, int timeout_ms, bool *is_to_stop)
{
    const pid_t tid = target->threads[thread].tid;
    bool is_back = false;
    int wait_status = 0;
    sj_call_wait wait = sj_call_wait_begin(call, timeout_ms);
    for (;;) {
        target->threads[thread].stopped = false;
        if (ptrace(is_back ? PTRACE_CONT : PTRACE_SYSCALL, tid, NULL, NULL) != 0) {
            return SJ_ECLOSED;
        }
        SJ_TRY(sj_call_wait_next(&wait, target, &thread, &wait_status));
        if (target->replaced) {
            return SJ_ECLOSED;
        }
        if (WSTOPSIG(wait_status) == (SIGTRAP | 0x80)) {
            is_back = is_back || is_leaving(tid, before);
            if (is_back && ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0) {
                return SJ_ECLOSED;
            }
        } else if (is_back && wait_status >> 16 == PTRACE_EVENT_STOP) {
            return SJ_OK;
        } else if (wait_status >> 16 == 0 && is_crash(WSTOPSIG(wait_status))) {
            const sj_status status = put_back(tid, before);
            return status == SJ_OK ? SJ_EIO : status;
        } else if (wait_status >> 16 == 0 && WSTOPSIG(wait_status) == SIGSTOP) {
            *is_to_stop = true;
        }
    }
}

static sj_status make_call(sj_tracee *target, size_t thread, const sj_inferior_call *call,
                           thread_context *before, int timeout_ms)
{
    const pid_t tid = target->threads[thread].tid;
    const uint64_t held = UINT64_MAX;
    const long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
    struct user_regs_struct registers;
    SJ_TRY(read_context(tid, before));
    SJ_TRY(write_frame(target, before, call, &registers));
    /* Sets the registers first: from then on the frame restores the signal mask in every case. */
    if (ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)options) != 0 ||
        !put_set(tid, NT_PRSTATUS, &registers, sizeof(registers)) ||
        ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(held), &held) != 0) {
        return SJ_ECLOSED;
    }
    bool is_to_stop = false;
    const sj_status status = await_return(target, thread, call, before, timeout_ms, &is_to_stop);
    if (status == SJ_OK || status == SJ_EIO) {
        /* The thread has left the frame. Clears its first record, so that no stack scan takes the
         * frame for a handler's. */
        const record_head none = {0, 0};
        (void)!sj_tracee_write(target, before->frame_at + offsetof(signal_frame, records), &none,
                               sizeof(none));
    }
    if (is_to_stop) {
        (void)kill(target->pid, SIGSTOP);
    }
    return status;
}

sj_status sj_inferior_call_run(sj_tracee *target, size_t thread, const sj_inferior_call *call,
                               int timeout_ms)
{
    thread_context before = {.frame = calloc(1, sizeof(*before.frame))};
    if (before.frame == NULL) {
        return SJ_ENOMEM;
    }
    const sj_status status = make_call(target, thread, call, &before, timeout_ms);
    free(before.wide.iov_base);
    free(before.frame);
    return status;
}
