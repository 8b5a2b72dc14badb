/* Code that probes share if calls are counted. sj_code_emit_shared copies the code in front of the
 * stubs of a module and sets the words at the end of the copy.
 *
 * A stub makes a frame of SJ_FRAME_BYTES, whose first words are x16 and x30. Then it calls a part,
 * with a function's id or the tag of a record in x16. The rest of the frame:
 *   16 x17, x0, x1, x2 of the program
 *   48 the clock; around the slow path x16, and the part's return address
 * x17 points to the thread's data, which begins with its cursor. The code changes only x0 to x2,
 * x16 and x17, and keeps the flags.
 *
 * Most calls of a counted function write a short record without a time. The code for rare cases
 * follows: calls that are timed, frames that no short record reaches, a full chunk.
 * recorder/counting.c and emit.c explain why the clock is read before the place is reserved. */
#include "agent/inproc/hooks/arch/aarch64/record_code.h"

    .macro save
    stp x17, x0, [sp, #16]
    stp x1, x2, [sp, #32]
    .endm

    .macro give_back
    ldp x1, x2, [sp, #32]
    ldp x17, x0, [sp, #16]
    ret
    .endm

/* Loads the address of the thread's data into x17. Changes x0. */
    .macro find_own
    mrs x17, tpidr_el0
    ldr x0, sj_record_code_words
    add x17, x17, x0
    .endm

/* Jumps to \elsewhere unless x1 lies on the thread's own stack. Changes x0 and x2. Bit 63 of an
 * address is 0, so bit 63 of a difference is its sign. */
    .macro unless_own_stack elsewhere
    ldr x0, [x17, #SJ_OWN_LOW]
    sub x0, x1, x0
    ldr x2, [x17, #SJ_OWN_SPAN]
    sub x2, x0, x2
    bic x2, x2, x0
    tbz x2, #63, \elsewhere
    .endm

/* Jumps to \far unless a short record can express the stack address x1. Changes x0. */
    .macro unless_near far
    ldr x0, [x17, #SJ_OWN_REACH]
    sub x0, x1, x0
    lsr x0, x0, #SJ_REACH_BIT
    cbnz x0, \far
    .endm

/* Jumps to \timed if all calls of the function are timed. Jumps to \sample if this entry is to be
 * timed, or if this exit may be that of a timed call. Changes x0. */
    .macro unless_counted kind, timed, sample
    ldr x0, [x17, #SJ_OWN_FUNCTIONS]
    ldrb w0, [x0, x16]
    cbz w0, \timed
    .ifc \kind, enter
    ldr w0, [x17, #SJ_OWN_COUNTDOWN]
    sub w0, w0, #1
    str w0, [x17, #SJ_OWN_COUNTDOWN]
    tbnz w0, #31, \sample
    .else
    ldr w0, [x17, #SJ_OWN_OPEN_SAMPLES]
    cbnz w0, \sample
    .endif
    .endm

/* Sets x0 to x1 minus the stack pointer of open timed call number w2, which counts from 1. */
    .macro compare_sample
    add x0, x17, x2, lsl #3
    ldr x0, [x0, #SJ_OWN_SAMPLES - 8]
    sub x0, x1, x0
    .endm

/* Starts timing a call. Each timed call is followed by 0 to 63 counted calls. The thread's random
 * generator chooses the number. The call is added to the open timed calls, so that its exit is
 * timed, too. First removes open timed calls whose frames have ended. If too many are open, the
 * call is counted. */
    .macro sample_enter counted, timed
    ldr w0, [x17, #SJ_OWN_RANDOM]
    eor w0, w0, w0, lsl #13
    eor w0, w0, w0, lsr #17
    eor w0, w0, w0, lsl #5
    str w0, [x17, #SJ_OWN_RANDOM]
    lsr w0, w0, #26
    str w0, [x17, #SJ_OWN_COUNTDOWN]
    ldr w2, [x17, #SJ_OWN_OPEN_SAMPLES]
1:  cbz w2, 2f
    compare_sample
    tbnz x0, #63, 2f
    sub w2, w2, #1
    b 1b
2:  tbnz w2, #SJ_MOST_SAMPLES_BIT, \counted
    add x0, x17, x2, lsl #3
    str x1, [x0, #SJ_OWN_SAMPLES]
    add w2, w2, #1
    str w2, [x17, #SJ_OWN_OPEN_SAMPLES]
    b \timed
    .endm

/* Times the exit if its call is the innermost open timed call, and removes that call. Also removes
 * open timed calls whose frames have ended. */
    .macro sample_leave counted, timed
    ldr w2, [x17, #SJ_OWN_OPEN_SAMPLES]
1:  compare_sample
    tbnz x0, #63, \counted
    sub w2, w2, #1
    str w2, [x17, #SJ_OWN_OPEN_SAMPLES]
    cbz x0, \timed
    cbnz w2, 1b
    b \counted
    .endm

/* Like sample_leave, for an exit by a tail call. The call stays in the list, so that the chain of
 * tail calls is timed to its end. */
    .macro sample_tail counted, timed
    ldr w2, [x17, #SJ_OWN_OPEN_SAMPLES]
1:  compare_sample
    tbnz x0, #63, \counted
    cbz x0, \timed
    sub w2, w2, #1
    str w2, [x17, #SJ_OWN_OPEN_SAMPLES]
    cbnz w2, 1b
    b \counted
    .endm

/* Changes the function's id in x16 to the tag of a full record. */
    .macro make_tag kind
    .ifnc \kind, enter
    orr x16, x16, #(1 << SJ_LEAVE_BIT)
    .endif
    .ifc \kind, tail
    orr x16, x16, #(1 << SJ_TAIL_BIT)
    .endif
    .endm

    .macro counted_part kind, mark
    .globl sj_record_code_\kind
    .hidden sj_record_code_\kind
sj_record_code_\kind:
    save
    find_own
    add x1, sp, #SJ_FRAME_BYTES
    unless_near .Lfar_\kind
    unless_counted \kind, .Ltimed_\kind, .Lsample_\kind
.Lshort_\kind:
    lsr x0, x1, #3
    movz w1, #\mark, lsl #16
    bfi w1, w0, #16, #12
    orr w1, w1, w16
1:  ldxr x0, [x17]
    add x2, x0, #4
    stxr w16, x2, [x17]
    cbnz w16, 1b
    and x2, x0, #0xf000
    cbz x2, .Lfull_\kind
    add x2, sp, #SJ_FRAME_BYTES
    ldr x16, [x17, #SJ_OWN_REACH]
    sub x2, x2, x16
    lsr x2, x2, #SJ_REACH_BIT
    cbnz x2, .Lovertaken_\kind
    stlr w1, [x0]
    give_back
/* A signal handler ran in between, and its stack address would complete this short record. Writes a
 * filler instead, and then a full record. */
.Lovertaken_\kind:
    movz w2, #SJ_ENTER_MARK, lsl #16
    stlr w2, [x0]
    and x16, x1, #0xffff
    b .Luntimed_\kind
.Lfull_\kind:
    and x16, x1, #0xffff
    make_tag \kind
    orr x16, x16, #(1 << SJ_UNTIMED_BIT)
    b .Lslow
.Lsample_\kind:
    sample_\kind .Lcounted_\kind, .Ltimed_\kind
.Lcounted_\kind:
    unless_near .Luntimed_\kind
    b .Lshort_\kind
.Lfar_\kind: /* Calls on another stack than the thread's own are timed. */
    unless_own_stack .Ltimed_\kind
    unless_counted \kind, .Ltimed_\kind, .Lsample_\kind
.Luntimed_\kind:
    orr x16, x16, #(1 << SJ_UNTIMED_BIT)
.Ltimed_\kind:
    make_tag \kind
    b .Lwhole
    .endm

/* Reserves a place for a full record and puts its address into x1. Writes fillers into a slot that
 * short records have begun. Jumps to \slow if the chunk is full. Changes x0 and x2. */
    .macro reserve slow
    str xzr, [x17, #SJ_OWN_REACH]
1:  ldxr x0, [x17]
    add x1, x0, #15
    and x1, x1, #-16
    add x1, x1, #16
    stxr w2, x1, [x17]
    cbnz w2, 1b
    sub x1, x1, #16
    sub x2, x1, x0
    cbz x2, 3f
    and x2, x0, #0xf000
    cbz x2, 3f
    movz w2, #SJ_ENTER_MARK, lsl #16
2:  str w2, [x0], #4
    tbnz x0, #2, 2b
    tbnz x0, #3, 2b
3:  and x2, x1, #0xf000
    cbz x2, \slow
    .endm

/* Calls the slow path with the tag in w1 and puts the record's address into x1. Before that, reads
 * the stack as far down as the slow path reaches, so that a fault at the stack's end occurs here.
 * Changes x0. From \frame to \frame_end, the return address lies at SJ_RETURN_AT. */
    .macro call_slow frame
    sub x0, sp, #SJ_SLOW_TOUCHED_BYTES
    ldr xzr, [x0]
    stp x16, x30, [sp, #(SJ_RETURN_AT - 8)]
    .globl \frame, \frame\()_end
    .hidden \frame, \frame\()_end
\frame:
    ldr x16, sj_record_code_words + 8
    blr x16
    mov x1, x0
    ldp x16, x30, [sp, #(SJ_RETURN_AT - 8)]
\frame\()_end:
    find_own
    .endm

    .text
    .p2align 6
    .globl sj_record_code
    .hidden sj_record_code
sj_record_code:
    counted_part enter, SJ_ENTER_MARK
    .p2align 6
    counted_part leave, SJ_LEAVE_MARK
    .p2align 6
    counted_part tail, SJ_TAIL_MARK

/* Writes a full record with the tag in w16. If SJ_UNTIMED_BIT of x16 is set, does not read the
 * clock. SJ_TAIL_BIT marks an exit as a tail call. */
    .p2align 6
    .globl sj_record_code_whole
    .hidden sj_record_code_whole
sj_record_code_whole:
    save
    find_own
.Lwhole:
    tbnz x16, #SJ_UNTIMED_BIT, .Lreserve
    mrs x2, cntvct_el0
    str x2, [sp, #48]
.Lreserve:
    reserve .Lslow
    ldr x2, [sp, #48]
.Lstore:
    add x0, sp, #SJ_FRAME_BYTES
    add x0, x0, x16, lsr #32
    bfi x2, x0, #48, #16
    str x2, [x1], #8
    lsr x0, x0, #16
    bfi x0, x16, #32, #32
    stlr x0, [x1]
    add x16, x1, #8
    add x1, sp, #SJ_FRAME_BYTES
    unless_own_stack .Lelsewhere
    sub x1, x1, #(1 << (SJ_REACH_BIT - 1))
    str x1, [x17, #SJ_OWN_REACH]
    ldr x0, [x17]
    sub x0, x0, x16
    cbz x0, .Lelsewhere
    str xzr, [x17, #SJ_OWN_REACH] /* A signal handler's record follows this one. */
.Lelsewhere:
    give_back
.Lslow: /* Reads the clock again, because the thread may have waited. */
    mov w1, w16
    call_slow sj_record_code_slow
    mrs x2, cntvct_el0
    b .Lstore

/* Records an entry with the tag in w16. Before the entry, records the first word of the object in
 * x0, unless x0 cannot be an object. */
    .globl sj_record_code_receiver
    .hidden sj_record_code_receiver
sj_record_code_receiver:
    save
    cbz x0, .Lno_object
    and x1, x0, #7
    cbnz x1, .Lno_object
    find_own
    reserve .Lslow_value
.Lvalue:
    ldr x0, [sp, #24]
    ldr x0, [x0]
    str x0, [x1], #8
    add x0, sp, #SJ_FRAME_BYTES
    orr w2, w16, #0xc0000000 /* SJ_RECORD_VALUE */
    bfi x0, x2, #32, #32
    stlr x0, [x1]
    b .Lwhole
.Lno_object:
    find_own
    b .Lwhole
.Lslow_value:
    orr w1, w16, #0xc0000000
    call_slow sj_record_code_slow_value
    b .Lvalue

/* The offset of the thread's data from the thread pointer, and the address of the trampoline to the
 * slow path. */
    .p2align 3
    .globl sj_record_code_words
    .hidden sj_record_code_words
sj_record_code_words:
    .quad 0, 0

    .section .note.GNU-stack, "", %progbits
