/* The machine-dependent part of tracing from outside. Each arch folder has one implementation.
 * Threads must be stopped under ptrace when these functions read or change them. */
#ifndef SJ_AGENT_PTRACE_ARCH_H
#define SJ_AGENT_PTRACE_ARCH_H

#include "agent/abi/machine.h"
#include "agent/ptrace/tracee.h"

#include <stdint.h>

typedef struct sj_registers {
    uint64_t pc;
    uint64_t sp;
    bool in_syscall; /* the thread is stopped inside a system call, which continues or restarts */
    int64_t syscall;
    uint64_t argument;       /* first argument of the system call; 0: unknown */
    uint64_t signature_bits; /* bits that sign a return address on a stack; 0: there are none */
    uint64_t registers[32]; /* indexed by DWARF number, as the unwinder expects. If pc has a number,
                               it is also here. */
    uint32_t register_count;
} sj_registers;

/* Reads the registers of a stopped thread. SJ_ECLOSED: the thread is gone. */
SJ_MUST_CHECK sj_status sj_registers_get(pid_t tid, sj_registers *state);

/* Sets the program counter of a stopped thread. SJ_ECLOSED: the thread is gone. */
SJ_MUST_CHECK sj_status sj_registers_set_pc(pid_t tid, uint64_t pc);

/* Bytes of a jump that reaches every stub. A shorter jump leads to an island near by, which holds a
 * long jump. */
enum { SJ_LONG_JUMP_BYTES = SJ_MACHINE_LONG_JUMP_BYTES };

/* Stores in `*to` where the patch `bytes` at `address` jumps to. Returns false if the bytes are not
 * a jump of the kinds that hooks/ writes. */
bool sj_jump_follow(uint64_t address, const uint8_t *bytes, uint32_t count, uint64_t *to);

/* Returns the address in libc's code to which signal handlers return, or 0 if it is not found.
 * Searches from `low` to `high`; reads some MB. */
uint64_t sj_restorer_find_in(const sj_tracee *target, uint64_t low, uint64_t high);

/* The addresses that signal handlers return to: the C library's restorer and the agent's own. 0:
 * unknown, or there is none. */
typedef struct sj_signal_returns {
    uint64_t of_library;
    uint64_t of_agent;
} sj_signal_returns;

/* Bytes of a stack that sj_signal_is_frame reads. */
enum { SJ_SIGNAL_FRAME_BYTES = SJ_MACHINE_SIGNAL_FRAME_BYTES };

/* True if `bytes`, copied from a stack, begin with the return address of a signal handler, followed
 * by the interrupted context. A restorer that `returns` does not name is recognised by that
 * context: for this, `count` must be at least SJ_SIGNAL_FRAME_BYTES. */
bool sj_signal_is_frame(const sj_signal_returns *returns, const uint8_t *bytes, size_t count);

/* Stores the address at which an interrupted context keeps its program counter. The handler's
 * return address is `word`, stored at `at`. If the agent has changed the context, stores the
 * address of the true program counter. `*is_shown` is true if the context itself holds that program
 * counter. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_signal_find_pc(const sj_tracee *target, const sj_signal_returns *returns,
                                          uint64_t word, uint64_t at, uint64_t *pc_at,
                                          bool *is_shown);

/* Returns where the search for the first restorer on a thread's stack begins. This is the stack
 * pointer, or the word below it if the thread is in the restorer and has already popped that
 * address. */
uint64_t sj_signal_context_start(const sj_tracee *target, const sj_registers *state,
                                 const sj_signal_returns *returns);

/* A call of a function of the target, made by one of its threads. The thread's context lies on its
 * stack as in a signal frame, and the function returns into the kernel's normal way of leaving a
 * handler. So the thread resumes its own work even if the tracer is killed. */
typedef struct sj_inferior_call {
    uint64_t function;
    uint64_t restorer;
    const char *text; /* if not NULL, passed as first argument in place of `arguments[0]` */
    uint64_t arguments[3];
    /* If not 0: the other threads stay stopped at first. They are resumed if the thread sleeps when
     * a period of this length ends, because it may wait for a lock of theirs. They are also resumed
     * after one second, or after some hundred system calls. Afterwards the target has only this
     * thread, with index 0. */
    int alone_ms;
} sj_inferior_call;

/* Makes a stopped thread call a function and waits until the function has returned. The thread is
 * then stopped where it was before. A system call that it was in is restarted. On AArch64, a
 * wait for a period begins again with its whole period. The thread handles no signal during the
 * call. Needs SJ_CALL_STACK_BYTES of stack. SJ_ECLOSED: the process ended. SJ_EIO: the function
 * crashed, and the thread is back where it was. SJ_ETIMEDOUT: the call has taken longer than
 * `timeout_ms` altogether; the thread has not returned. */
enum { SJ_CALL_STACK_BYTES = 96 * 1024 };

SJ_MUST_CHECK sj_status sj_inferior_call_run(sj_tracee *target, size_t thread,
                                             const sj_inferior_call *call, int timeout_ms);

/* True if sj_inferior_call_run may interrupt this system call. False for the calls that libc makes
 * while it holds the locks of the allocator or of fork. */
bool sj_inferior_call_is_allowed(int64_t syscall);

#endif
