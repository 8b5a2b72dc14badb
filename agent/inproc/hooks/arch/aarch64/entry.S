/* Entries from generated machine code into C for AArch64. The C code is built with
 * -mgeneral-regs-only, and does not call libc on the slow path. So sj_arch_slow_entry does not save
 * vector registers. */
    .text

#include "agent/inproc/hooks/arch/aarch64/keep_registers.inc"

/* In: w1 tag. Out: x0 address of the record. Keeps all registers except x0, x1, x16 and x17, which
 * the stub has saved. */
    .globl sj_arch_slow_entry
    .hidden sj_arch_slow_entry
    .type sj_arch_slow_entry, %function
    .p2align 4
sj_arch_slow_entry:
    .cfi_startproc
    hint #38 /* bti jc */
    keep_registers
    mov w0, w1
    bl sj_recorder_slow
    restore_registers
    ret
    .cfi_endproc
    .size sj_arch_slow_entry, . - sj_arch_slow_entry

/* In: w0 function, w1 descriptors. Above the stack pointer lie the registers that the stub has
 * saved: x29 and x30, x16 and x17, x0 and x1. The stack address of the records follows. Keeps all
 * other registers. */
    .globl sj_arch_values_entry
    .hidden sj_arch_values_entry
    .type sj_arch_values_entry, %function
    .p2align 4
sj_arch_values_entry:
    .cfi_startproc
    hint #38 /* bti jc */
    keep_registers
    sub sp, sp, #144 /* sj_value_registers */
    ldp x16, x17, [x29, #KEPT_BYTES + 32]
    stp x16, x17, [sp]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp d0, d1, [sp, #64]
    stp d2, d3, [sp, #80]
    stp d4, d5, [sp, #96]
    stp d6, d7, [sp, #112]
    stp x16, x8, [sp, #128]
    add x2, x29, #KEPT_BYTES + 48
    mov x3, sp
    bl sj_recorder_values
    cbnz w0, .Lvalues_changed
.Lvalues_keep:
    mov sp, x29
    .cfi_remember_state
    restore_registers
    ret
    .cfi_restore_state
.Lvalues_changed: /* Rules have set some of sj_value_registers. Upper halves of vectors are kept. */
    /* Argument 1 and the result share x0. The value that a rule has set is used. */
    ldr x16, [x29, #KEPT_BYTES + 32]
    ldr x17, [sp, #128]
    ldr x1, [sp]
    cmp x17, x16
    csel x16, x1, x17, eq
    cmp w0, #2 /* SJ_VALUES_RETURN */
    csel x16, x17, x16, eq
    ldr x17, [sp, #8]
    stp x16, x17, [x29, #KEPT_BYTES + 32]
    ldp x16, x17, [sp, #16]
    stp x16, x17, [x29, #16]
    ldp x16, x17, [sp, #32]
    stp x16, x17, [x29, #32]
    ldp x16, x17, [sp, #48]
    stp x16, x17, [x29, #48]
    ldp x16, x17, [sp, #64]
    mov v0.d[0], x16
    mov v1.d[0], x17
    ldp x16, x17, [sp, #80]
    mov v2.d[0], x16
    mov v3.d[0], x17
    ldp x16, x17, [sp, #96]
    mov v4.d[0], x16
    mov v5.d[0], x17
    ldp x16, x17, [sp, #112]
    mov v6.d[0], x16
    mov v7.d[0], x17
    b.ne .Lvalues_keep
    mov sp, x29
    restore_registers
    ldp x29, x30, [sp] /* x30 of the program: returns there instead of into the stub */
    .cfi_def_cfa_offset 48
    ldp x16, x17, [sp, #16]
    ldp x0, x1, [sp, #32]
    add sp, sp, #48
    .cfi_def_cfa_offset 0
    hint #7 /* xpaclri: the function may have signed its return address before its probe */
    ret
    .cfi_endproc
    .size sj_arch_values_entry, . - sj_arch_values_entry

    .section .note.GNU-stack, "", %progbits
