/* Gates from machine code into C for x86-64. The C behind them is built -mgeneral-regs-only and
 * calls nothing of libc on the slow path, so the vector state needs no saving there. */
    .text

/* In: (%rsp) return address, 8(%rsp) tag. Out: %rcx address of the record. Keeps everything but
 * %rax, %rcx and %rdx, which the stub has saved. Its unwind information leads debuggers and whoever
 * takes stacks to the stub, where they see that nobody knows how to go on; without it they guess. */
    .globl sj_arch_slow_entry
    .hidden sj_arch_slow_entry
    .type sj_arch_slow_entry, @function
sj_arch_slow_entry:
    .cfi_startproc
    pushfq
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    push %r10
    .cfi_adjust_cfa_offset 8
    push %r11
    .cfi_adjust_cfa_offset 8
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    mov 72(%rbp), %edi
    and $-16, %rsp
    cld
    call sj_recorder_slow
    mov %rax, %rcx
    mov %rbp, %rsp
    .cfi_def_cfa_register %rsp
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    pop %r11
    .cfi_adjust_cfa_offset -8
    pop %r10
    .cfi_adjust_cfa_offset -8
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    popfq
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size sj_arch_slow_entry, . - sj_arch_slow_entry

/* In, above the return address: the function, the descriptors, the 152 bytes that the stub stepped
 * over, and the place that the records name. Keeps everything; the vector registers are read only,
 * as the C behind is built without them. */
    .globl sj_arch_values_entry
    .hidden sj_arch_values_entry
    .type sj_arch_values_entry, @function
sj_arch_values_entry:
    pushfq
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
    sub $136, %rsp /* sj_value_registers */
    and $-16, %rsp
    mov %rdi, (%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    mov %rcx, 24(%rsp)
    mov %r8, 32(%rsp)
    mov %r9, 40(%rsp)
    movq $0, 48(%rsp)
    movq $0, 56(%rsp)
    movq %xmm0, 64(%rsp)
    movq %xmm1, 72(%rsp)
    movq %xmm2, 80(%rsp)
    movq %xmm3, 88(%rsp)
    movq %xmm4, 96(%rsp)
    movq %xmm5, 104(%rsp)
    movq %xmm6, 112(%rsp)
    movq %xmm7, 120(%rsp)
    mov %rax, 128(%rsp)
    mov 96(%rbp), %edi
    mov 104(%rbp), %esi
    lea 264(%rbp), %rdx
    mov %rsp, %rcx
    cld
    call sj_recorder_values
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
    popfq
    ret
    .size sj_arch_values_entry, . - sj_arch_values_entry

/* Stands in for the loader's empty debug hook, an ordinary function of the C ABI: the vector
 * registers are dead there, the general ones are kept all the same. */
    .globl sj_arch_state_entry
    .hidden sj_arch_state_entry
    .type sj_arch_state_entry, @function
sj_arch_state_entry:
    pushfq
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
    popfq
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

/* A function of the C ABI with the arguments of a constructor; %r11 is the record of the true one. */
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
    call sj_modules_on_initialisation
    add $8, %rsp
    pop %r11
    pop %rdx
    pop %rsi
    pop %rdi
    jmp *8(%r11) /* sj_dispatch_record: target */
    .size sj_arch_init_entry, . - sj_arch_init_entry

    .bss
    .balign 8
    .globl sj_arch_exec_resume
    .hidden sj_arch_exec_resume
    .type sj_arch_exec_resume, @object
sj_arch_exec_resume:
    .zero 8
    .size sj_arch_exec_resume, 8

    .section .note.GNU-stack, "", @progbits
