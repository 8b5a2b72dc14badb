/* Calls a function of JNI that returns a float or double, and returns its bits. The agent's own code
 * uses no vector register (own_values.h). */
    .text
    .globl sj_arch_jvm_real_field
    .hidden sj_arch_jvm_real_field
    .type sj_arch_jvm_real_field, @function
    .p2align 4
sj_arch_jvm_real_field:
    .cfi_startproc
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    blr x3
    fmov x0, d0
    ldp x29, x30, [sp], #16
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size sj_arch_jvm_real_field, . - sj_arch_jvm_real_field
    .section .note.GNU-stack, "", @progbits
