/* Runs for every message to a freed object. Returns zero in every result register: rax, rdx, xmm0,
 * xmm1 and x87. */
    .text
    .globl sj_arch_freed_message
    .hidden sj_arch_freed_message
    .type sj_arch_freed_message, @function
    .p2align 4
sj_arch_freed_message:
    .cfi_startproc
    endbr64
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    mov 8(%rbp), %rcx
    call sj_objc_handle_freed_message
    pxor %xmm0, %xmm0
    pxor %xmm1, %xmm1
    test %edx, %edx
    jz 1f
    fldz
    dec %edx
    jz 1f
    fldz
1:  xor %edx, %edx
    pop %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size sj_arch_freed_message, . - sj_arch_freed_message
    .section .note.GNU-stack, "", @progbits
