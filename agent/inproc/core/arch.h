/* Trampolines: machine code between the agent and patched places of the C library and of modules. C
 * code never calls them. They are the assembly half of modules.c and exec.c, with one file for each
 * machine: arch/<machine>/trampolines.S. */
#ifndef SJ_AGENT_INPROC_CORE_ARCH_H
#define SJ_AGENT_INPROC_CORE_ARCH_H

#include <stdint.h>

/* Replaces the loader's debug hook. Calls sj_modules_on_loader_event and keeps every register. */
void sj_arch_state_entry(void);

/* Runs before a module's initialisation function. Calls sj_agent_on_initialisation, then jumps to
 * the target of the sj_dispatch_record that the stub has passed. */
void sj_arch_init_entry(void);

/* Runs before libc's execve. Calls sj_exec_try with its arguments, then continues with execve at
 * sj_arch_exec_resume. */
void sj_arch_exec_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_exec_resume;

/* Gates that run before the system call execveat in libc's execveat and fexecve. They call
 * sj_exec_try_at, then continue at sj_arch_execveat_resume or sj_arch_fexecve_resume. */
void sj_arch_execveat_entry(void);
void sj_arch_fexecve_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_execveat_resume;
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_fexecve_resume;

/* Gates that run before the system call in libc's prctl and syscall. They call sj_filters_on_call
 * with the call's number and first arguments. If that allows the call, they continue at the call,
 * at sj_arch_prctl_resume or sj_arch_syscall_resume. Otherwise they continue after it with EINVAL.
 */
void sj_arch_prctl_entry(void);
void sj_arch_syscall_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_prctl_resume;
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_syscall_resume;

/* Gates that run before the system call in libc's setrlimit and prlimit. They call
 * sj_limits_on_change, then continue at sj_arch_setrlimit_resume or sj_arch_prlimit_resume. */
void sj_arch_setrlimit_entry(void);
void sj_arch_prlimit_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_setrlimit_resume;
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_prlimit_resume;

/* sj_arch_signal_gates are SJ_SIGNAL_GATES gates of SJ_SIGNAL_GATE_BYTES, which the kernel calls as
 * handlers. A gate jumps to the handler that sj_signals_enter returns, with the kernel's registers
 * and stack. sj_arch_signal_return is the restorer. It calls sj_signals_return, then returns from
 * the signal. */
enum { SJ_SIGNAL_GATES = 8, SJ_SIGNAL_GATE_BYTES = 16 };
void sj_arch_signal_gates(void);
void sj_arch_signal_return(void);

/* Replaces libc's system call rt_sigaction. Calls sj_signals_change, then continues after the call,
 * at sj_arch_action_resume. */
void sj_arch_action_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_action_resume;

#endif
