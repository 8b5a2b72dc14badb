/* Trampolines for AArch64: between the agent and patched places of the C library and of modules. */
    .text

#include "agent/inproc/hooks/arch/aarch64/keep_registers.inc"

/* Replaces the loader's empty debug hook, an ordinary function of the C ABI. The vector registers
 * are dead there. The general registers are kept all the same, except x16 and x17, which belong to
 * the linker at every call. */
    .globl sj_arch_state_entry
    .hidden sj_arch_state_entry
    .type sj_arch_state_entry, %function
    .p2align 4
sj_arch_state_entry:
    .cfi_startproc
    hint #38 /* bti jc */
    stp x0, x1, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    keep_registers
    bl sj_modules_on_loader_event
    restore_registers
    ldp x0, x1, [sp], #16
    .cfi_adjust_cfa_offset -16
    ret
    .cfi_endproc
    .size sj_arch_state_entry, . - sj_arch_state_entry

/* A function of the C ABI with the arguments of a constructor. x16 is the record of the module's
 * own initialisation function. */
    .globl sj_arch_init_entry
    .hidden sj_arch_init_entry
    .type sj_arch_init_entry, %function
    .p2align 4
sj_arch_init_entry:
    hint #38 /* bti jc */
    stp x0, x1, [sp, #-48]!
    stp x2, x16, [sp, #16]
    str x30, [sp, #32]
    bl sj_agent_on_initialisation
    ldr x30, [sp, #32]
    ldp x2, x16, [sp, #16]
    ldp x0, x1, [sp], #48
    ldr x17, [x16, #8] /* sj_dispatch_record: target */
    br x17
    .size sj_arch_init_entry, . - sj_arch_init_entry

/* An ordinary function of the C ABI up to the system call. */
    .globl sj_arch_exec_entry
    .hidden sj_arch_exec_entry
    .type sj_arch_exec_entry, %function
    .p2align 4
sj_arch_exec_entry:
    hint #38 /* bti jc */
    stp x29, x30, [sp, #-48]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    bl sj_exec_try
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    mov x8, #221 /* execve: the instruction that was replaced */
    adrp x16, sj_arch_exec_resume
    ldr x16, [x16, #:lo12:sj_arch_exec_resume]
    br x16
    .size sj_arch_exec_entry, . - sj_arch_exec_entry

/* Runs before an execveat. Its arguments are in the registers in which the kernel expects them. */
.macro EXECAT_ENTRY name, resume
    .globl \name
    .hidden \name
    .type \name, %function
    .p2align 4
\name:
    hint #38 /* bti jc */
    stp x29, x30, [sp, #-64]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    str x4, [sp, #48]
    bl sj_exec_try_at
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldr x4, [sp, #48]
    ldp x29, x30, [sp], #64
    mov x8, #281 /* execveat: the instruction that was replaced */
    adrp x16, \resume
    ldr x16, [x16, #:lo12:\resume]
    br x16
    .size \name, . - \name
.endm
    EXECAT_ENTRY sj_arch_execveat_entry, sj_arch_execveat_resume
    EXECAT_ENTRY sj_arch_fexecve_entry, sj_arch_fexecve_resume

/* Runs before a prlimit64. Its resource and limit are in the registers in which the kernel expects
 * them. So is the process, unless it is the calling one. */
.macro LIMIT_ENTRY name, resume, process
    .globl \name
    .hidden \name
    .type \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint #38 /* bti jc */
    stp x0, x1, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    keep_registers
    mov x0, \process
    bl sj_limits_on_change
    restore_registers
    ldp x0, x1, [sp], #16
    .cfi_adjust_cfa_offset -16
    mov x8, #261 /* prlimit64: the instruction that was replaced */
    adrp x16, \resume
    ldr x16, [x16, #:lo12:\resume]
    br x16
    .cfi_endproc
    .size \name, . - \name
.endm
    LIMIT_ENTRY sj_arch_setrlimit_entry, sj_arch_setrlimit_resume, xzr
    LIMIT_ENTRY sj_arch_prlimit_entry, sj_arch_prlimit_resume, x0

/* Not used: sj_arch_find_inner_call finds nothing on this machine. */
    .globl sj_arch_prctl_entry
    .hidden sj_arch_prctl_entry
    .type sj_arch_prctl_entry, %function
    .globl sj_arch_syscall_entry
    .hidden sj_arch_syscall_entry
    .type sj_arch_syscall_entry, %function
sj_arch_prctl_entry:
sj_arch_syscall_entry:
    brk #0
    .size sj_arch_prctl_entry, . - sj_arch_prctl_entry
    .size sj_arch_syscall_entry, . - sj_arch_syscall_entry

    .bss
    .balign 8
    .globl sj_arch_exec_resume
    .hidden sj_arch_exec_resume
    .type sj_arch_exec_resume, %object
sj_arch_exec_resume:
    .zero 8
    .size sj_arch_exec_resume, 8
    .globl sj_arch_execveat_resume
    .hidden sj_arch_execveat_resume
    .type sj_arch_execveat_resume, %object
sj_arch_execveat_resume:
    .zero 8
    .size sj_arch_execveat_resume, 8
    .globl sj_arch_fexecve_resume
    .hidden sj_arch_fexecve_resume
    .type sj_arch_fexecve_resume, %object
sj_arch_fexecve_resume:
    .zero 8
    .size sj_arch_fexecve_resume, 8
    .globl sj_arch_setrlimit_resume
    .hidden sj_arch_setrlimit_resume
    .type sj_arch_setrlimit_resume, %object
sj_arch_setrlimit_resume:
    .zero 8
    .size sj_arch_setrlimit_resume, 8
    .globl sj_arch_prlimit_resume
    .hidden sj_arch_prlimit_resume
    .type sj_arch_prlimit_resume, %object
sj_arch_prlimit_resume:
    .zero 8
    .size sj_arch_prlimit_resume, 8
    .globl sj_arch_prctl_resume
    .hidden sj_arch_prctl_resume
    .type sj_arch_prctl_resume, %object
sj_arch_prctl_resume:
    .zero 8
    .size sj_arch_prctl_resume, 8
    .globl sj_arch_syscall_resume
    .hidden sj_arch_syscall_resume
    .type sj_arch_syscall_resume, %object
sj_arch_syscall_resume:
    .zero 8
    .size sj_arch_syscall_resume, 8

    .section .note.GNU-stack, "", %progbits
