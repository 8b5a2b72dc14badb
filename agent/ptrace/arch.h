/* What tracing from outside needs to know about a machine: one implementation in each arch folder.
 * Threads are stopped under ptrace when they are asked about. */
#ifndef SJ_AGENT_PTRACE_ARCH_H
#define SJ_AGENT_PTRACE_ARCH_H

#include "agent/ptrace/tracee.h"

#include <stdint.h>

typedef struct sj_registers {
    uint64_t pc;
    uint64_t sp;
    bool in_syscall; /* stopped inside of a system call, which goes on or starts again */
    int64_t syscall;
    uint64_t argument;      /* the first of the system call */
    uint64_t registers[32]; /* by DWARF number, as the unwinder wants them */
    uint32_t register_count;
} sj_registers;

/* sj_registers_get reads the state of a thread. SJ_ECLOSED. */
SJ_MUST_CHECK sj_status sj_registers_get(pid_t tid, sj_registers *state);

/* sj_registers_set_pc moves a thread. SJ_ECLOSED. */
SJ_MUST_CHECK sj_status sj_registers_set_pc(pid_t tid, uint64_t pc);

/* Bytes of a jump to any stub; what is shorter leads to an island near by, which holds one. */
enum { SJ_LONG_JUMP_BYTES = 5 };

/* sj_jump_follow gives where the patch `bytes` at `address` leads to; false when it is not a
 * jump as hooks/ writes them. */
bool sj_jump_follow(uint64_t address, const uint8_t *bytes, uint32_t count, uint64_t *to);

/* sj_restorer_find_in finds, in the code of libc, the return address of signal handlers; 0
 * when it is not there. Reads some MB. */
uint64_t sj_restorer_find_in(const sj_tracee *target, uint64_t low, uint64_t high);

/* What signal handlers return to: the C library's restorer, and that of the agent; 0: not known, or
 * none. */
typedef struct sj_signal_returns {
    uint64_t of_library;
    uint64_t of_agent;
} sj_signal_returns;

/* Bytes of a stack that sj_signal_is_frame looks at. */
enum { SJ_SIGNAL_FRAME_BYTES = 200 };

/* sj_signal_is_frame returns whether `bytes`, which lie on a stack, begin with the return address
 * of a handler, with the context that the handler interrupted behind it. A restorer that `returns`
 * does not name is known by the context; for that, `count` is SJ_SIGNAL_FRAME_BYTES at least. */
bool sj_signal_is_frame(const sj_signal_returns *returns, const uint8_t *bytes, size_t count);

/* sj_signal_find_pc gives the address at which an interrupted context keeps its program counter,
 * when the return address `word` of a handler lies at `at`; of a context that the agent has
 * changed, the true one. `*is_shown` is true if the context itself shows that. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_signal_find_pc(const sj_tracee *target, const sj_signal_returns *returns,
                                          uint64_t word, uint64_t at, uint64_t *pc_at,
                                          bool *is_shown);

/* sj_signal_context_start gives where to look for the first restorer on the stack of a thread: its
 * stack pointer, or the address before it, when the thread is in the restorer and has taken it from
 * the stack already. */
uint64_t sj_signal_context_start(const sj_tracee *target, const sj_registers *state,
                                 const sj_signal_returns *returns);

/* A call of a function of the target in one of its threads, made so that the thread finds back to
 * what it did by itself: the context lies on its stack as that of a signal, and the function
 * returns into the kernel's own way of leaving a handler. So the tracer may be killed any time. */
typedef struct sj_inferior_call {
    uint64_t function;
    uint64_t restorer;
    const char *text; /* passed as first argument when not NULL; else `arguments[0]` */
    uint64_t arguments[3];
    /* Not 0: other threads that are stopped run on when it waits for something for so long, or is
     * given no core for a second; the target has only this one then, with index 0. */
    int alone_ms;
} sj_inferior_call;

/* sj_inferior_call_run makes a stopped thread call a function and waits until it has returned; the
 * thread is then stopped where it was before, a system call that it was in begins again. No signal
 * is handled meanwhile. Needs SJ_CALL_STACK_BYTES of stack. SJ_ECLOSED the process ended, SJ_EIO
 * the function crashed (the thread stands where it was), SJ_ETIMEDOUT. */
enum { SJ_CALL_STACK_BYTES = 96 * 1024 };

SJ_MUST_CHECK sj_status sj_inferior_call_run(sj_tracee *target, size_t thread,
                                             const sj_inferior_call *call, int timeout_ms);

/* sj_inferior_call_is_allowed returns whether a system call may be interrupted for
 * sj_inferior_call_run: none of those that libc makes while it holds the locks of the allocator or
 * of fork. */
bool sj_inferior_call_is_allowed(int64_t syscall);

#endif
