/* Calls a function of JNI that returns a float or double, and returns its bits. The agent's own code
 * uses no vector register (own_values.h). */
    .text
    .globl sj_arch_jvm_real_field
    .hidden sj_arch_jvm_real_field
    .type sj_arch_jvm_real_field, @function
    .p2align 4
sj_arch_jvm_real_field:
    .cfi_startproc
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call *%rcx
    movq %xmm0, %rax
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size sj_arch_jvm_real_field, . - sj_arch_jvm_real_field
    .section .note.GNU-stack, "", @progbits
