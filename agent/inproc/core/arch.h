/* Trampolines: machine code between patched places of the C library and of modules and the agent.
 * None of them is called from C. They are the assembly half of modules.c and exec.c. One file a
 * machine: arch/<machine>/trampolines.S. */
#ifndef SJ_AGENT_INPROC_CORE_ARCH_H
#define SJ_AGENT_INPROC_CORE_ARCH_H

#include <stdint.h>

/* sj_arch_state_entry replaces the loader's debug hook: calls sj_modules_on_loader_event with every
 * register kept. */
void sj_arch_state_entry(void);

/* sj_arch_init_entry stands in front of a module's initialisation function: calls
 * sj_agent_on_initialisation, then goes on to the record's target. */
void sj_arch_init_entry(void);

/* sj_arch_exec_entry stands in front of libc's execve: calls sj_exec_try with its arguments, then
 * goes on as execve does, at sj_arch_exec_resume. */
void sj_arch_exec_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_exec_resume;

/* sj_arch_execveat_entry and sj_arch_fexecve_entry stand in front of the execveat in libc's
 * functions of these names: call sj_exec_try_at, then go on where the resume words say. */
void sj_arch_execveat_entry(void);
void sj_arch_fexecve_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_execveat_resume;
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_fexecve_resume;

/* sj_arch_prctl_entry and sj_arch_syscall_entry stand in front of the system call in libc's prctl
 * and syscall: call sj_filters_on_call with its number and first arguments, then go on at the call,
 * which follows at sj_arch_prctl_resume and sj_arch_syscall_resume, or behind it with EINVAL. */
void sj_arch_prctl_entry(void);
void sj_arch_syscall_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_prctl_resume;
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_syscall_resume;

/* sj_arch_setrlimit_entry and sj_arch_prlimit_entry stand in front of the system call in libc's
 * functions of these names: call sj_limits_on_change, then go on where the resume words say. */
void sj_arch_setrlimit_entry(void);
void sj_arch_prlimit_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_setrlimit_resume;
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_prlimit_resume;

/* sj_arch_signal_gates are SJ_SIGNAL_GATES gates of SJ_SIGNAL_GATE_BYTES: what the kernel calls as
 * a handler. A gate jumps to the handler that sj_signals_enter returns, with the registers and the
 * stack that the kernel made. sj_arch_signal_return is the restorer: calls sj_signals_return, then
 * returns from the signal. */
enum { SJ_SIGNAL_GATES = 8, SJ_SIGNAL_GATE_BYTES = 16 };
void sj_arch_signal_gates(void);
void sj_arch_signal_return(void);

/* sj_arch_action_entry stands in the place of libc's system call rt_sigaction: calls
 * sj_signals_change, then goes on behind the call, at sj_arch_action_resume. */
void sj_arch_action_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_action_resume;

#endif
