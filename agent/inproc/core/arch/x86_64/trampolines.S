/* Trampolines for x86-64: between the agent and patched places of the C library and of modules. */
    .text

/* Replaces the loader's empty debug hook, an ordinary function of the C ABI. The vector registers
 * and the flags are dead there. The general registers are kept all the same. */
    .globl sj_arch_state_entry
    .hidden sj_arch_state_entry
    .type sj_arch_state_entry, @function
sj_arch_state_entry:
    push %rax
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    push %rbp
    mov %rsp, %rbp
    and $-16, %rsp
    cld
    call sj_modules_on_loader_event
    mov %rbp, %rsp
    pop %rbp
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rax
    ret
    .size sj_arch_state_entry, . - sj_arch_state_entry

/* An ordinary function of the C ABI up to the system call. */
    .globl sj_arch_exec_entry
    .hidden sj_arch_exec_entry
    .type sj_arch_exec_entry, @function
sj_arch_exec_entry:
    push %rdi
    push %rsi
    push %rdx
    cld
    call sj_exec_try
    pop %rdx
    pop %rsi
    pop %rdi
    mov $59, %eax /* execve: the instruction that was replaced */
    jmp *sj_arch_exec_resume(%rip)
    .size sj_arch_exec_entry, . - sj_arch_exec_entry

/* Runs before an execveat. Its arguments are in the registers in which the kernel expects them. */
.macro EXECAT_ENTRY name, resume
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    push %rbp
    mov %rsp, %rbp
    push %rdi
    push %rsi
    push %rdx
    push %r10
    push %r8
    and $-16, %rsp
    cld
    mov %r10, %rcx
    call sj_exec_try_at
    lea -40(%rbp), %rsp
    pop %r8
    pop %r10
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rbp
    mov $322, %eax /* execveat: the instruction that was replaced */
    jmp *\resume(%rip)
    .size \name, . - \name
.endm
    EXECAT_ENTRY sj_arch_execveat_entry, sj_arch_execveat_resume
    EXECAT_ENTRY sj_arch_fexecve_entry, sj_arch_fexecve_resume

/* Runs before a prlimit64. Its resource and limit are in the registers in which the kernel expects
 * them. So is the process, unless it is the calling one. Keeps all registers except %rcx and %r11,
 * which system calls lose. */
.macro LIMIT_ENTRY name, resume, process
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    lea -128(%rsp), %rsp
    push %rbp
    mov %rsp, %rbp
    push %rdi
    push %rsi
    push %rdx
    push %r10
    push %r8
    push %r9
    and $-16, %rsp
    cld
    mov \process, %edi
    call sj_limits_on_change
    lea -48(%rbp), %rsp
    pop %r9
    pop %r8
    pop %r10
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rbp
    lea 128(%rsp), %rsp
    mov $302, %eax /* prlimit64: the instruction that was replaced */
    jmp *\resume(%rip)
    .size \name, . - \name
.endm
    LIMIT_ENTRY sj_arch_setrlimit_entry, sj_arch_setrlimit_resume, $0
    LIMIT_ENTRY sj_arch_prlimit_entry, sj_arch_prlimit_resume, %edi

/* A function of the C ABI with the arguments of a constructor. %r11 is the record of the module's
 * own initialisation function. */
    .globl sj_arch_init_entry
    .hidden sj_arch_init_entry
    .type sj_arch_init_entry, @function
sj_arch_init_entry:
    push %rdi
    push %rsi
    push %rdx
    push %r11
    sub $8, %rsp
    cld
    call sj_agent_on_initialisation
    add $8, %rsp
    pop %r11
    pop %rdx
    pop %rsi
    pop %rdi
    jmp *8(%r11) /* sj_dispatch_record: target */
    .size sj_arch_init_entry, . - sj_arch_init_entry

/* Calls sj_filters_on_call with %rax and the first arguments of a system call. Keeps all registers
 * except %rcx and %r11, which system calls lose. The zero flag is set if the call must not be
 * made. */
.macro ASK_ABOUT_CALL
    lea -128(%rsp), %rsp
    push %rax
    push %rdi
    push %rsi
    push %rdx
    push %r10
    push %r8
    push %r9
    push %rbp
    mov %rsp, %rbp
    and $-16, %rsp
    cld
    mov %r8, %r9
    mov %r10, %r8
    mov %rdx, %rcx
    mov %rsi, %rdx
    mov %rdi, %rsi
    mov %rax, %rdi
    call sj_filters_on_call
    test %al, %al
    mov %rbp, %rsp
    pop %rbp
    pop %r9
    pop %r8
    pop %r10
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    lea 128(%rsp), %rsp
.endm

#define SYSCALL_BYTES 2
#define INVALID -22

    .globl sj_arch_prctl_entry
    .hidden sj_arch_prctl_entry
    .type sj_arch_prctl_entry, @function
sj_arch_prctl_entry:
    mov $157, %eax /* prctl: the instruction that was replaced */
    ASK_ABOUT_CALL
    mov sj_arch_prctl_resume(%rip), %rcx
    jmp .Lreturn_or_resume
    .size sj_arch_prctl_entry, . - sj_arch_prctl_entry

    .globl sj_arch_syscall_entry
    .hidden sj_arch_syscall_entry
    .type sj_arch_syscall_entry, @function
sj_arch_syscall_entry:
    ASK_ABOUT_CALL
    mov 8(%rsp), %r9 /* the instruction that was replaced */
    mov sj_arch_syscall_resume(%rip), %rcx
.Lreturn_or_resume:
    jnz 1f
    mov $INVALID, %rax
    lea SYSCALL_BYTES(%rcx), %rcx
1:  jmp *%rcx
    .size sj_arch_syscall_entry, . - sj_arch_syscall_entry

    .bss
    .balign 8
    .globl sj_arch_exec_resume
    .hidden sj_arch_exec_resume
    .type sj_arch_exec_resume, @object
sj_arch_exec_resume:
    .zero 8
    .size sj_arch_exec_resume, 8
    .globl sj_arch_execveat_resume
    .hidden sj_arch_execveat_resume
    .type sj_arch_execveat_resume, @object
sj_arch_execveat_resume:
    .zero 8
    .size sj_arch_execveat_resume, 8
    .globl sj_arch_fexecve_resume
    .hidden sj_arch_fexecve_resume
    .type sj_arch_fexecve_resume, @object
sj_arch_fexecve_resume:
    .zero 8
    .size sj_arch_fexecve_resume, 8
    .globl sj_arch_setrlimit_resume
    .hidden sj_arch_setrlimit_resume
    .type sj_arch_setrlimit_resume, @object
sj_arch_setrlimit_resume:
    .zero 8
    .size sj_arch_setrlimit_resume, 8
    .globl sj_arch_prlimit_resume
    .hidden sj_arch_prlimit_resume
    .type sj_arch_prlimit_resume, @object
sj_arch_prlimit_resume:
    .zero 8
    .size sj_arch_prlimit_resume, 8
    .globl sj_arch_prctl_resume
    .hidden sj_arch_prctl_resume
    .type sj_arch_prctl_resume, @object
sj_arch_prctl_resume:
    .zero 8
    .size sj_arch_prctl_resume, 8
    .globl sj_arch_syscall_resume
    .hidden sj_arch_syscall_resume
    .type sj_arch_syscall_resume, @object
sj_arch_syscall_resume:
    .zero 8
    .size sj_arch_syscall_resume, 8

    .section .note.GNU-stack, "", @progbits
