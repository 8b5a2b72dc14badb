/* Dispatch hooks for AArch64: the entry of a dispatched call, and the thunk to which it returns.
 * The contract is in agent/inproc/hooks/dispatch.h. The offsets are those of the structures there.
 *
 * At a function's entry the stack does not hold the return address, so a call's slot is that of its
 * stack pointer. No second open call has the same stack pointer: a function that makes a call has
 * saved x30 on the stack before, and so has moved the stack pointer. The code changes x9 to x15 and
 * x17, because no call passes anything in them. */

#define TARGET 8
#define ENTER_TAG 16
#define LEAVE_TAG 20
#define REGION_SHIFT 30
#define STACK_TAIL_CALL 1
#define RESERVE_BYTES 368 /* the frame's end has space for all registers, see keep_registers.inc */

    .text

/* Writes a record with the tag in w12 and the stack address `above` bytes above the stack pointer.
 * Changes x13 to x15 and x17. emit.c explains how a slot is reserved. */
    .macro record above=0
    mrs x13, cntvct_el0
    mrs x14, tpidr_el0
    adrp x15, :gottprel:sj_recorder_self
    ldr x15, [x15, #:gottprel_lo12:sj_recorder_self]
    add x14, x14, x15
1:  ldxr x15, [x14]
    add x15, x15, #16
    stxr w17, x15, [x14]
    cbnz w17, 1b
    sub x15, x15, #16
    tst x15, #0xf000
    b.ne 2f
    .cfi_remember_state
    sub sp, sp, #32
    .cfi_adjust_cfa_offset 32
    stp x0, x1, [sp]
    stp x16, x30, [sp, #16]
    .cfi_rel_offset 16, 16
    .cfi_rel_offset 30, 24
    mov w1, w12
    bl sj_arch_slow_entry
    mov x15, x0
    ldp x0, x1, [sp]
    ldp x16, x30, [sp, #16]
    add sp, sp, #32
    .cfi_restore_state
    mrs x13, cntvct_el0
2:  add x17, sp, #\above
    bfi x13, x17, #48, #16
    str x13, [x15], #8
    lsr x17, x17, #16
    bfi x17, x12, #32, #32
    stlr x17, [x15]
    .endm

/* Sets x10 to the address of the return slot for the stack address `above` bytes above the stack
 * pointer. Jumps to \missing if the slot's region is not reserved. Changes x9 and x11. */
    .macro find_slot missing above=0
    add x9, sp, #\above
    adrp x11, sj_return_regions
    add x11, x11, #:lo12:sj_return_regions
    lsr x10, x9, #REGION_SHIFT
    ldr x10, [x11, x10, lsl #3]
    .ifnb \missing
    cbz x10, \missing
    .endif
    and x9, x9, #0x3fffffff
    add x10, x10, x9, lsl #1
    .endm

    .globl sj_arch_dispatch_entry
    .hidden sj_arch_dispatch_entry
    .type sj_arch_dispatch_entry, %function
    .p2align 4
sj_arch_dispatch_entry:
    .cfi_startproc
    hint #38 /* bti jc */
.Lfind:
    find_slot .Lreserve
    adr x11, sj_arch_return_thunk
    cmp x30, x11
    b.eq .Ltail_call
    str x30, [x10]
    mov x30, x11
.Lenter:
    ldr w12, [x16, #LEAVE_TAG]
    str w12, [x10, #8]
    ldr w12, [x16, #ENTER_TAG]
    record
.Lgo:
    ldr x17, [x16, #TARGET]
    br x17

/* A recorded call ends by a jump to another dispatched function. The code records its exit before
 * the other call's entry. Both calls use the same slot. */
.Ltail_call:
    ldr w12, [x10, #8]
    record above=STACK_TAIL_CALL
    b .Lenter

.Lreserve:
    stp x29, x30, [sp, #-RESERVE_BYTES]!
    .cfi_adjust_cfa_offset RESERVE_BYTES
    .cfi_rel_offset 29, 0
    .cfi_rel_offset 30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    stp x8, x16, [sp, #80]
    .irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8
    .cfi_rel_offset \register, 16 + 8 * \register
    .endr
    .cfi_rel_offset 16, 88
    add x0, sp, #RESERVE_BYTES
    bl sj_return_slots_reserve
    mov w9, w0
    ldp x8, x16, [sp, #80]
    ldp x6, x7, [sp, #64]
    ldp x4, x5, [sp, #48]
    ldp x2, x3, [sp, #32]
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #RESERVE_BYTES
    .cfi_adjust_cfa_offset -RESERVE_BYTES
    .irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 29, 30
    .cfi_restore \register
    .endr
    tbnz w9, #0, .Lfind
    b .Lgo
    .cfi_endproc
    .size sj_arch_dispatch_entry, . - sj_arch_dispatch_entry

/* The slow part of an entry's probe calls this code if a dispatched call has jumped to a patched
 * function. The probe has saved x0, x1, x16 and x17 in 32 bytes of stack. On return, x30 is the
 * program's return address. On entry, x17 is the thunk's address, plain or signed by one of the
 * keys with the stack pointer. The true return address is signed in the same way. */
    .globl sj_arch_jump_entry
    .hidden sj_arch_jump_entry
    .type sj_arch_jump_entry, %function
sj_arch_jump_entry:
    .cfi_startproc
    hint #38 /* bti jc */
    stp x9, x10, [sp, #-80]!
    .cfi_adjust_cfa_offset 80
    stp x11, x12, [sp, #16]
    stp x13, x14, [sp, #32]
    mrs x16, nzcv
    stp x15, x16, [sp, #48]
    str x30, [sp, #64]
    .cfi_rel_offset 30, 64
    find_slot above=112
    ldr w12, [x10, #8]
    ldr x30, [x10]
    adr x11, sj_arch_return_thunk
    mov x13, x17
    cmp x13, x11
    b.eq 4f
    add x16, sp, #112
    mov x17, x11
    hint #8 /* pacia1716 */
    cmp x13, x17
    mov x17, x30
    b.ne 3f
    hint #8
    mov x30, x17
    b 4f
3:  hint #10 /* pacib1716 */
    mov x30, x17
4:  record above=(112 + STACK_TAIL_CALL)
    ldr x17, [sp, #64]
    ldp x15, x16, [sp, #48]
    msr nzcv, x16
    ldp x13, x14, [sp, #32]
    ldp x11, x12, [sp, #16]
    ldp x9, x10, [sp], #80
    .cfi_adjust_cfa_offset -80
    .cfi_register 30, 17
    br x17
    .cfi_endproc
    .size sj_arch_jump_entry, . - sj_arch_jump_entry

/* The thunk begins a block of 64 bytes. The unwind information starts from x30, which holds the
 * thunk's address on return; the callee may have saved it with a signature. From x30 it computes
 * the start of the block, where the distance to sj_return_regions lies. Before the return address
 * is restored, the rules are:
 *   CFA = sp - 8: not sp, which is the CFA of the frame below. The unwinder of libgcc
 *         distinguishes frames by their CFA.
 *   sp of the caller = CFA + 8
 *   the return address lies at regions[sp >> 30] + (sp & 0x3fffffff) * 2 */
    .p2align 6
    .globl sj_arch_return_block
    .hidden sj_arch_return_block
sj_arch_return_block:
.Lblock:
    .cfi_startproc
    .cfi_escape 0x0f, 2, 0x8f, 0x78 /* CFA: breg31 - 8 */
    .cfi_escape 0x16, 31, 2, 0x38, 0x22 /* sp: CFA, lit8, plus */
    .cfi_escape 0x10, 30, 38, \
        0x38, 0x22, /* lit8, plus: sp */ \
        0x12, 0x08, 0x1e, 0x25, 0x33, 0x24, /* dup, const1u 30, shr, lit3, shl */ \
        0x8e, 0x00, /* breg30 */ \
        0x0e, 0xc0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x1a, /* const8u, and: the block */ \
        0x12, 0x23, 0x38, 0x94, 0x04, 0x22, /* dup, plus_uconst 56, deref_size 4, plus */ \
        0x22, 0x06, /* plus, deref: the region */ \
        0x16, 0x0c, 0xff, 0xff, 0xff, 0x3f, 0x1a, /* swap, const4u mask, and */ \
        0x31, 0x24, 0x22 /* lit1, shl, plus */
    nop
    .globl sj_arch_return_thunk
    .hidden sj_arch_return_thunk
    .type sj_arch_return_thunk, %function
sj_arch_return_thunk:
    find_slot
    ldr w12, [x10, #8]
    ldr x30, [x10]
    .globl sj_arch_return_thunk_restored
    .hidden sj_arch_return_thunk_restored
sj_arch_return_thunk_restored:
    .cfi_def_cfa 31, 0
    .cfi_restore 31
    .cfi_restore 30
    b .Lleave
    .org .Lblock + 56
    .long sj_return_regions - .Lblock
    .long 0
.Lleave:
    adrp x9, sj_return_values_count
    ldr w9, [x9, #:lo12:sj_return_values_count]
    cbnz w9, .Lvalues
.Lrecord:
    record
    ret
.Lvalues: /* Results of some functions are recorded, and rules may set them. w12 is kept. */
    sub sp, sp, #48 /* the frame that stubs make for sj_arch_values_entry */
    .cfi_adjust_cfa_offset 48
    stp x0, x1, [sp, #32]
    stp x16, x17, [sp, #16]
    stp x29, x30, [sp]
    .cfi_rel_offset 30, 8
    and w0, w12, #0x3fffffff /* SJ_RECORD_FUNCTION_MASK */
    mov w1, #-1 /* SJ_VALUES_OF_RETURN */
    bl sj_arch_values_entry
    ldp x29, x30, [sp]
    .cfi_restore 30
    ldp x16, x17, [sp, #16]
    ldp x0, x1, [sp, #32]
    add sp, sp, #48
    .cfi_adjust_cfa_offset -48
    b .Lrecord
    .cfi_endproc
    .size sj_arch_return_thunk, . - sj_arch_return_thunk

    .section .note.GNU-stack, "", %progbits
