/* objc_msgSend for AArch64. It preserves all argument registers. sj_objc_message uses no vector
 * register. Before sj_objc_new_message, which calls the runtime, the vector registers of arguments
 * are saved: 128 bits each, because no method has a scalable vector as argument. The same code
 * serves objc_msgSend_stret, because the address of a result in memory is in x8. */
    .text
    .globl sj_arch_objc_message
    .hidden sj_arch_objc_message
    .type sj_arch_objc_message, %function
    .globl sj_arch_objc_message_stret
    .hidden sj_arch_objc_message_stret
    .type sj_arch_objc_message_stret, %function
    .p2align 4
sj_arch_objc_message:
sj_arch_objc_message_stret:
    .cfi_startproc
    hint #38 /* bti jc */
    stp x29, x30, [sp, #-224]!
    .cfi_adjust_cfa_offset 224
    .cfi_rel_offset 29, 0
    .cfi_rel_offset 30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    adrp x2, sj_objc_real_message
    ldr x2, [x2, #:lo12:sj_objc_real_message]
    bl sj_objc_message
    cmp x0, #1
    b.eq 2f
3:  mov x16, x0
    ldr x8, [sp, #80]
    ldp x6, x7, [sp, #64]
    ldp x4, x5, [sp, #48]
    ldp x2, x3, [sp, #32]
    ldp x0, x1, [sp, #16]
    .cfi_remember_state
    ldp x29, x30, [sp], #224
    .cfi_adjust_cfa_offset -224
    .cfi_restore 29
    .cfi_restore 30
    cbz x16, 1f
    ldr x17, [x16]
    br x17
1:  adrp x16, sj_objc_real_message
    ldr x16, [x16, #:lo12:sj_objc_real_message]
    br x16
2:  .cfi_restore_state
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    ldp x0, x1, [sp, #16]
    adrp x2, sj_objc_real_message
    ldr x2, [x2, #:lo12:sj_objc_real_message]
    bl sj_objc_new_message
    ldp q6, q7, [sp, #192]
    ldp q4, q5, [sp, #160]
    ldp q2, q3, [sp, #128]
    ldp q0, q1, [sp, #96]
    b 3b
    .cfi_endproc
    .size sj_arch_objc_message, . - sj_arch_objc_message

/* x16 is the record. Calls its target, which returns an address of code. Returns
 * sj_objc_code_behind of this address. */
    .globl sj_arch_objc_plain
    .hidden sj_arch_objc_plain
    .type sj_arch_objc_plain, %function
    .p2align 4
sj_arch_objc_plain:
    .cfi_startproc
    hint #38 /* bti jc */
    stp x29, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_rel_offset 29, 0
    .cfi_rel_offset 30, 8
    mov x29, sp
    ldr x16, [x16, #8]
    blr x16
    ldp x29, x30, [sp], #16
    .cfi_adjust_cfa_offset -16
    .cfi_restore 29
    .cfi_restore 30
    b sj_objc_code_behind
    .cfi_endproc
    .size sj_arch_objc_plain, . - sj_arch_objc_plain

    .section .note.GNU-stack, "", %progbits
