/* What the virtual tables of freed C++ objects lead to: a stub for each place of a table, which
 * says its number. Whatever the result is said to be, it is zero; one in memory is left as it is. */
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
    jmp sj_arch_virtual_answer
    .set number, number + 1
    .endr
    .cfi_endproc
    .size sj_arch_virtual_stubs, . - sj_arch_virtual_stubs

    .type sj_arch_virtual_answer, @function
    .p2align 4
sj_arch_virtual_answer:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    mov 8(%rbp), %rcx
    call sj_virtual_answer
    pxor %xmm0, %xmm0
    pxor %xmm1, %xmm1
    xor %edx, %edx
    pop %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size sj_arch_virtual_answer, . - sj_arch_virtual_answer
    .section .note.GNU-stack, "", @progbits
