/* What every message to a freed object runs. Whatever its result is said to be, it is zero, in
 * whichever registers results are. */
    .text
    .globl sj_arch_objc_answer
    .hidden sj_arch_objc_answer
    .type sj_arch_objc_answer, @function
    .p2align 4
sj_arch_objc_answer:
    .cfi_startproc
    endbr64
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    mov 8(%rbp), %rcx
    call sj_objc_answer
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
    .size sj_arch_objc_answer, . - sj_arch_objc_answer
    .section .note.GNU-stack, "", @progbits
