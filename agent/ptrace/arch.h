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
    /* the thread is stopped inside a system call, which continues or restarts when the thread runs
     * again */
    bool in_syscall;
    int64_t syscall;
    uint64_t argument;       /* first argument of the system call; 0: unknown */
    uint64_t signature_bits; /* bits that sign a return address on a stack; 0: there are none */
    uint64_t registers[32]; /* indexed by DWARF number, as the unwinder expects. If pc has a number,
                               it is also here. */
    uint32_t register_count;
} sj_registers;

/* Reads the registers of a stopped thread. Returns SJ_ECLOSED if the thread has ended. */
SJ_MUST_CHECK sj_status sj_registers_get(pid_t tid, sj_registers *state);

/* Sets the program counter of a stopped thread. Returns SJ_ECLOSED if the thread has ended. */
SJ_MUST_CHECK sj_status sj_registers_set_pc(pid_t tid, uint64_t pc);

/* Size of a jump that reaches every stub. A shorter jump leads to a branch island, which contains a
 * long jump. */
enum { SJ_LONG_JUMP_BYTES = SJ_MACHINE_LONG_JUMP_BYTES };

/* Stores in `*to` the target of the jump `bytes`, a patch at `address`. Returns false if the bytes
 * are not a jump of the kinds that agent/inproc/hooks writes. */
bool sj_jump_follow(uint64_t address, const uint8_t *bytes, uint32_t count, uint64_t *to);

/* Returns the address in libc's code to which signal handlers return, or 0 if it is not found.
 * Searches from `low` to `high`. Blocks while it reads this whole range from the process. */
uint64_t sj_restorer_find_in(const sj_tracee *target, uint64_t low, uint64_t high);

/* The restorers: the code that signal handlers return to. The C library has one, and the agent has
 * its own. 0: not known, or the process has none. */
typedef struct sj_signal_returns {
    uint64_t of_library;
    uint64_t of_agent;
} sj_signal_returns;

/* Bytes of a stack that sj_signal_is_frame reads. */
enum { SJ_SIGNAL_FRAME_BYTES = SJ_MACHINE_SIGNAL_FRAME_BYTES };

/* True if `bytes`, copied from a stack, begin with the return address of a signal handler, followed
 * by the interrupted context. If `returns` does not contain that return address, the function
 * examines the context. For this, `count` must be at least SJ_SIGNAL_FRAME_BYTES. */
bool sj_signal_is_frame(const sj_signal_returns *returns, const uint8_t *bytes, size_t count);

/* A signal handler with the return address `word`, at the stack address `at`, has interrupted a
 * context. Stores in `*pc_at` the address of that context's saved program counter. If the agent has
 * replaced that program counter, `*pc_at` is the address of the agent's copy of the original.
 * `*is_shown` is then false, else true. Returns SJ_EIO if the stack cannot be read. */
SJ_MUST_CHECK sj_status sj_signal_find_pc(const sj_tracee *target, const sj_signal_returns *returns,
                                          uint64_t word, uint64_t at, uint64_t *pc_at,
                                          bool *is_shown);

/* Returns the stack address at which a search for signal frames must begin. This is the stack
 * pointer. It is the preceding (lower) word if the thread is in a restorer, because the handler has
 * already popped its return address. */
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
    /* If not 0: the other threads stay stopped at first. They are resumed if the calling thread
     * sleeps when a period of this length ends. It may then wait for a lock of another thread. They
     * are also resumed after one second, or after about 200 system calls of the calling thread.
     * After that, sj_tracee.threads contains only the calling thread, with index 0. */
    int alone_ms;
} sj_inferior_call;

enum { SJ_CALL_STACK_BYTES = 96 * 1024 };

/* Makes a stopped thread call a function and waits until the function has returned. Afterwards the
 * thread is stopped where it was before. If it was in a system call, that system call is restarted.
 * On AArch64, a wait for a period begins again with its whole period. The thread handles no signal
 * during the call. Needs SJ_CALL_STACK_BYTES of stack. Returns SJ_ECLOSED if the process ended.
 * Returns SJ_EIO if the function crashed, and the thread is back where it was. Returns SJ_ETIMEDOUT
 * if the function has not returned within `timeout_ms`, and the thread is still in it. Returns
 * SJ_EUNSUPPORTED if the kernel does not give the vector registers, SJ_ELIMIT if the call's text is
 * too long, or SJ_ENOMEM. The thread has then not moved. */
SJ_MUST_CHECK sj_status sj_inferior_call_run(sj_tracee *target, size_t thread,
                                             const sj_inferior_call *call, int timeout_ms);

/* True if sj_inferior_call_run may interrupt this system call. False for the calls that libc makes
 * while it holds the locks of the allocator or of fork. */
bool sj_inferior_call_is_allowed(int64_t syscall);

#endif
