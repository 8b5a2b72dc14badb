/* Entries from generated machine code into C for x86-64. The C code is built with
 * -mgeneral-regs-only, and does not call libc on the slow path. So sj_arch_slow_entry does not save
 * vector registers. */
#include "agent/inproc/hooks/arch/x86_64/frames.inc"

    .text

/* Sets the status flags and the direction flag to those in %eax, which came from pushfq. Changes
 * %eax and %edx. Does not use popfq: if a debugger steps, pushfq has saved the trap flag, and popfq
 * would set it after the debugger has detached. */
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

.macro RESERVE_STACK
    pushfq
    .cfi_adjust_cfa_offset 8
    lea -RESERVED(%rsp), %rsp
    .cfi_adjust_cfa_offset RESERVED
.endm

/* In: (%rsp) return address, 8(%rsp) tag. Out: %rcx address of the record. Keeps all registers
 * except %rax, %rcx and %rdx, which the stub has saved. */
    .globl sj_arch_slow_entry
    .hidden sj_arch_slow_entry
    .type sj_arch_slow_entry, @function
sj_arch_slow_entry:
    .cfi_startproc
    RESERVE_STACK
    KEEP %rsi
    KEEP %rdi
    KEEP %r8
    KEEP %r9
    KEEP %r10
    KEEP %r11
    KEEP %rbp
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    mov 72 + RESERVED(%rbp), %edi
    and $-16, %rsp
    cld
    call sj_recorder_slow
    mov %rax, %rcx
    mov %rbp, %rsp
    .cfi_def_cfa_register %rsp
    RESTORE_KEPT %rbp
    RESTORE_KEPT %r11
    RESTORE_KEPT %r10
    RESTORE_KEPT %r9
    RESTORE_KEPT %r8
    RESTORE_KEPT %rdi
    RESTORE_KEPT %rsi
    lea RESERVED(%rsp), %rsp
    .cfi_adjust_cfa_offset -RESERVED
    pop %rax
    .cfi_adjust_cfa_offset -8
    GIVE_FLAGS
    ret
    .cfi_endproc
    .size sj_arch_slow_entry, . - sj_arch_slow_entry

.macro POP_VALUES
    mov %rbp, %rsp
    .cfi_def_cfa_register %rsp
    RESTORE_KEPT %rbp
    RESTORE_KEPT %r11
    RESTORE_KEPT %r10
    RESTORE_KEPT %r9
    RESTORE_KEPT %r8
    RESTORE_KEPT %rdi
    RESTORE_KEPT %rsi
    RESTORE_KEPT %rdx
    RESTORE_KEPT %rcx
    RESTORE_KEPT %rax
.endm

/* In, above the return address: the function, the descriptors, the 152 bytes that the stub stepped
 * over. Above them is the stack address of the records. Keeps every register, except those that
 * rules set. The C code does not use vector registers, so they are not saved. */
    .globl sj_arch_values_entry
    .hidden sj_arch_values_entry
    .type sj_arch_values_entry, @function
sj_arch_values_entry:
    .cfi_startproc
    RESERVE_STACK
    KEEP %rax
    KEEP %rcx
    KEEP %rdx
    KEEP %rsi
    KEEP %rdi
    KEEP %r8
    KEEP %r9
    KEEP %r10
    KEEP %r11
    KEEP %rbp
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
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
    mov 96 + RESERVED(%rbp), %edi
    mov 104 + RESERVED(%rbp), %esi
    lea 264 + RESERVED(%rbp), %rdx
    mov %rsp, %rcx
    cld
    call sj_recorder_values
    test %eax, %eax
    jnz .Lvalues_changed
.Lvalues_keep:
    mov %rbp, %rsp
    mov 80 + RESERVED(%rbp), %eax
    GIVE_FLAGS
    .cfi_remember_state
    POP_VALUES
    lea RESERVED + 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -(RESERVED + 8)
    ret
    .cfi_restore_state
.Lvalues_changed: /* Rules have set some of sj_value_registers. Upper halves of vectors are kept. */
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
    POP_VALUES
    lea RESERVED + 184(%rsp), %rsp /* points to the function's own return address */
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size sj_arch_values_entry, . - sj_arch_values_entry

    .section .note.GNU-stack, "", @progbits
