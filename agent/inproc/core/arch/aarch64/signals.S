/* Signals on AArch64: gates in front of the program's handlers, and the return from these
 * handlers. */
    .text

/* The kernel's frame: siginfo, then the context. */
#define CONTEXT 128
#define CONTEXT_REGISTERS 184
#define CONTEXT_PC 440

/* Eight gates of 16 bytes. In: w0 signal, x30 return address, and the kernel's frame at the stack
 * pointer. x1 and x2 contain its siginfo and context only with SA_SIGINFO. Otherwise they contain
 * the interrupted code's values. The program's handler gets the same registers. */
    .globl sj_arch_signal_gates
    .hidden sj_arch_signal_gates
    .type sj_arch_signal_gates, %function
    .p2align 4
sj_arch_signal_gates:
    .cfi_startproc
    .set gate, 0
    .rept 8
    .p2align 4
    hint #34 /* bti c */
    mov w3, #gate
    b .Lenter
    .set gate, gate + 1
    .endr
    .p2align 4
.Lenter:
    stp x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset 29, 0
    .cfi_rel_offset 30, 8
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    add x1, sp, #48
    add x2, x1, #CONTEXT
    mov x4, x30
    bl sj_signals_enter
    mov x16, x0
    ldr x2, [sp, #32]
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #48
    .cfi_restore 29
    .cfi_restore 30
    .cfi_adjust_cfa_offset -48
    br x16
    .cfi_endproc
    .size sj_arch_signal_gates, . - sj_arch_signal_gates

/* Describes where the kernel's frame, at the stack pointer, saves the register of a DWARF number.
 * 96 is libgcc's number for the address at which an interrupted thread continues. */
.macro KEPT number, offset
    .cfi_escape 0x10, \number, 3, 0x8f, (\offset & 0x7f) | 0x80, \offset >> 7
.endm

/* The restorer, to which a handler returns. Unwinders look up the instruction before a return
 * address, so the nop belongs to the frame. */
    .p2align 4
    .cfi_startproc
    .cfi_signal_frame
    .cfi_return_column 96
    .cfi_escape 0x0f, 4, 0x8f, 0xb0, 0x04, 0x06 /* CFA: the word at 560 */
    .set number, 0
    .rept 31
    KEPT number, (CONTEXT + CONTEXT_REGISTERS + 8 * number)
    .set number, number + 1
    .endr
    KEPT 96, (CONTEXT + CONTEXT_PC)
    nop
    .globl sj_arch_signal_return
    .hidden sj_arch_signal_return
    .type sj_arch_signal_return, %function
sj_arch_signal_return:
    hint #36 /* bti j */
    add x0, sp, #CONTEXT
    bl sj_signals_return
    mov x8, #139 /* rt_sigreturn */
    svc #0
    brk #0
    .cfi_endproc
    .size sj_arch_signal_return, . - sj_arch_signal_return

/* Replaces the system call. The call's arguments are in their registers. It keeps the registers
 * that system calls keep, all except x0. It may change the flags, on which compiled code does not
 * rely. */
    .globl sj_arch_action_entry
    .hidden sj_arch_action_entry
    .type sj_arch_action_entry, %function
    .p2align 4
sj_arch_action_entry:
    hint #38 /* bti jc */
    stp x29, x30, [sp, #-176]!
    mov x29, sp
    stp x1, x2, [sp, #16]
    stp x3, x4, [sp, #32]
    stp x5, x6, [sp, #48]
    stp x7, x9, [sp, #64]
    stp x10, x11, [sp, #80]
    stp x12, x13, [sp, #96]
    stp x14, x15, [sp, #112]
    stp x16, x17, [sp, #128]
    stp x18, x0, [sp, #144]
    bl sj_signals_change
    ldr x18, [sp, #144]
    ldp x16, x17, [sp, #128]
    ldp x14, x15, [sp, #112]
    ldp x12, x13, [sp, #96]
    ldp x10, x11, [sp, #80]
    ldp x7, x9, [sp, #64]
    ldp x5, x6, [sp, #48]
    ldp x3, x4, [sp, #32]
    ldp x1, x2, [sp, #16]
    ldp x29, x30, [sp], #176
    adrp x8, sj_arch_action_resume /* it contained the number of the call */
    ldr x8, [x8, #:lo12:sj_arch_action_resume]
    br x8
    .size sj_arch_action_entry, . - sj_arch_action_entry

    .bss
    .balign 8
    .globl sj_arch_action_resume
    .hidden sj_arch_action_resume
    .type sj_arch_action_resume, %object
sj_arch_action_resume:
    .zero 8
    .size sj_arch_action_resume, 8

    .section .note.GNU-stack, "", %progbits
