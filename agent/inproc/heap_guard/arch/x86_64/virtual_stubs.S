/* Our virtual tables point to these stubs. Stub N is element N of each table, and passes N to the
 * handler. The call returns zero in rax (or the address of a result in memory), rdx, xmm0, xmm1. */
    .text
    .globl sj_arch_virtual_stubs
    .hidden sj_arch_virtual_stubs
    .type sj_arch_virtual_stubs, @function
    .p2align 4
sj_arch_virtual_stubs:
    .cfi_startproc
    .set number, 0
    .rept 1024
    .p2align 4
    endbr64
    mov $number, %edx
    jmp sj_arch_virtual_call
    .set number, number + 1
    .endr
    .cfi_endproc
    .size sj_arch_virtual_stubs, . - sj_arch_virtual_stubs

    .type sj_arch_virtual_call, @function
    .p2align 4
sj_arch_virtual_call:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    mov 8(%rbp), %rcx
    call sj_virtual_call_handler
    pxor %xmm0, %xmm0
    pxor %xmm1, %xmm1
    xor %edx, %edx
    pop %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size sj_arch_virtual_call, . - sj_arch_virtual_call
    .section .note.GNU-stack, "", @progbits
