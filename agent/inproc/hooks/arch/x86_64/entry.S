/* From generated machine code into C for x86-64. That C is built -mgeneral-regs-only and
 * calls nothing of libc on the slow path, so the vector state needs no saving there. */
    .text

/* Sets the status flags and the direction as %eax, of pushfq, has them; %eax and %edx are lost. Not
 * by popfq: where a debugger steps, pushfq has saved the trap flag, too, and that must not come back
 * after the debugger has gone. */
.macro GIVE_FLAGS
    test $0x400, %eax
    jz 1f
    std
1:  mov %eax, %edx
    shr $11, %edx
    and $1, %edx
    mov %al, %ah
    mov %dl, %al
    add $127, %al
    sahf
.endm

/* In: (%rsp) return address, 8(%rsp) tag. Out: %rcx address of the record. Keeps everything but
 * %rax, %rcx and %rdx, which the stub has saved. Its unwind information leads unwinders to the
 * stub, which has none, so that they stop there; without it they would guess callers. */
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
    pop %rax
    .cfi_adjust_cfa_offset -8
    GIVE_FLAGS
    ret
    .cfi_endproc
    .size sj_arch_slow_entry, . - sj_arch_slow_entry

/* In, above the return address: the function, the descriptors, the 152 bytes that the stub stepped
 * over, and the stack address of the records. Keeps everything; the vector registers are only
 * read, as the C code is built without them. */
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
    sub $144, %rsp /* sj_value_registers */
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
    movq $0, 136(%rsp)
    mov 96(%rbp), %edi
    mov 104(%rbp), %esi
    lea 264(%rbp), %rdx
    mov %rsp, %rcx
    cld
    call sj_recorder_values
    test %eax, %eax
    jnz .Lvalues_changed
.Lvalues_keep:
    mov %rbp, %rsp
    mov 80(%rbp), %eax
    GIVE_FLAGS
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
    lea 8(%rsp), %rsp
    ret
.Lvalues_changed: /* rules set some of sj_value_registers; vectors keep their upper parts */
    mov (%rsp), %rcx
    mov %rcx, 40(%rbp)
    mov 8(%rsp), %rcx
    mov %rcx, 48(%rbp)
    mov 16(%rsp), %rcx
    mov %rcx, 56(%rbp)
    mov 24(%rsp), %rcx
    mov %rcx, 64(%rbp)
    mov 32(%rsp), %rcx
    mov %rcx, 16(%rbp)
    mov 40(%rsp), %rcx
    mov %rcx, 24(%rbp)
    mov 128(%rsp), %rcx
    mov %rcx, 72(%rbp)
    movlps 64(%rsp), %xmm0
    movlps 72(%rsp), %xmm1
    movlps 80(%rsp), %xmm2
    movlps 88(%rsp), %xmm3
    movlps 96(%rsp), %xmm4
    movlps 104(%rsp), %xmm5
    movlps 112(%rsp), %xmm6
    movlps 120(%rsp), %xmm7
    cmp $2, %eax /* SJ_VALUES_RETURN */
    jne .Lvalues_keep
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
    lea 184(%rsp), %rsp /* to the address that the function would return to */
    ret
    .size sj_arch_values_entry, . - sj_arch_values_entry

    .section .note.GNU-stack, "", @progbits
