/* Gates from machine code into C for AArch64. The C behind them is built -mgeneral-regs-only and
 * calls nothing of libc on the slow path, so the vector state needs no saving there. */
    .text

/* Keeps x2 to x15, x18 and the flags; 160 bytes of stack. */
    .macro keep_registers
    stp x29, x30, [sp, #-160]!
    mov x29, sp
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp x8, x9, [sp, #64]
    stp x10, x11, [sp, #80]
    stp x12, x13, [sp, #96]
    stp x14, x15, [sp, #112]
    mrs x16, nzcv
    stp x18, x16, [sp, #128]
    .endm

    .macro restore_registers
    ldp x18, x16, [sp, #128]
    msr nzcv, x16
    ldp x14, x15, [sp, #112]
    ldp x12, x13, [sp, #96]
    ldp x10, x11, [sp, #80]
    ldp x8, x9, [sp, #64]
    ldp x6, x7, [sp, #48]
    ldp x4, x5, [sp, #32]
    ldp x2, x3, [sp, #16]
    ldp x29, x30, [sp], #160
    .endm

/* In: w1 tag. Out: x0 address of the record. Keeps everything but x0, x1, x16 and x17, which the
 * stub has saved. */
    .globl sj_arch_slow_entry
    .hidden sj_arch_slow_entry
    .type sj_arch_slow_entry, %function
    .p2align 4
sj_arch_slow_entry:
    hint #38 /* bti jc */
    keep_registers
    mov w0, w1
    bl sj_recorder_slow
    restore_registers
    ret
    .size sj_arch_slow_entry, . - sj_arch_slow_entry

/* In: w0 function, w1 descriptors; above the stack pointer what the stub has saved: x29 and x30, x16
 * and x17, x0 and x1, and then the place that the records name. Keeps the rest. */
    .globl sj_arch_values_entry
    .hidden sj_arch_values_entry
    .type sj_arch_values_entry, %function
    .p2align 4
sj_arch_values_entry:
    hint #38 /* bti jc */
    keep_registers
    sub sp, sp, #144 /* sj_value_registers */
    ldp x16, x17, [x29, #192]
    stp x16, x17, [sp]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp d0, d1, [sp, #64]
    stp d2, d3, [sp, #80]
    stp d4, d5, [sp, #96]
    stp d6, d7, [sp, #112]
    str x16, [sp, #128]
    add x2, x29, #208
    mov x3, sp
    bl sj_recorder_values
    mov sp, x29
    restore_registers
    ret
    .size sj_arch_values_entry, . - sj_arch_values_entry

/* Stands in for the loader's empty debug hook, an ordinary function of the C ABI: the vector
 * registers are dead there, the general ones are kept all the same but x16 and x17, which belong to
 * the linker at every call. */
    .globl sj_arch_state_entry
    .hidden sj_arch_state_entry
    .type sj_arch_state_entry, %function
    .p2align 4
sj_arch_state_entry:
    hint #38 /* bti jc */
    stp x0, x1, [sp, #-16]!
    keep_registers
    bl sj_modules_on_loader_event
    restore_registers
    ldp x0, x1, [sp], #16
    ret
    .size sj_arch_state_entry, . - sj_arch_state_entry

/* A function of the C ABI with the arguments of a constructor; x16 is the record of the true one. */
    .globl sj_arch_init_entry
    .hidden sj_arch_init_entry
    .type sj_arch_init_entry, %function
    .p2align 4
sj_arch_init_entry:
    hint #38 /* bti jc */
    stp x0, x1, [sp, #-48]!
    stp x2, x16, [sp, #16]
    str x30, [sp, #32]
    bl sj_modules_on_initialisation
    ldr x30, [sp, #32]
    ldp x2, x16, [sp, #16]
    ldp x0, x1, [sp], #48
    ldr x17, [x16, #8] /* sj_dispatch_record: target */
    br x17
    .size sj_arch_init_entry, . - sj_arch_init_entry

/* An ordinary function of the C ABI up to the system call. */
    .globl sj_arch_exec_entry
    .hidden sj_arch_exec_entry
    .type sj_arch_exec_entry, %function
    .p2align 4
sj_arch_exec_entry:
    hint #38 /* bti jc */
    stp x29, x30, [sp, #-48]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    bl sj_exec_try
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    mov x8, #221 /* execve: the instruction that was replaced */
    adrp x16, sj_arch_exec_resume
    ldr x16, [x16, #:lo12:sj_arch_exec_resume]
    br x16
    .size sj_arch_exec_entry, . - sj_arch_exec_entry

    .bss
    .balign 8
    .globl sj_arch_exec_resume
    .hidden sj_arch_exec_resume
    .type sj_arch_exec_resume, %object
sj_arch_exec_resume:
    .zero 8
    .size sj_arch_exec_resume, 8

    .section .note.GNU-stack, "", %progbits
