/* void registers_call(void (*probe)(void), uint64_t flags, unsigned char *work)
 * Fills every general register, the flags and q0-31 with known values, calls the probe, and stores
 * what came back. `work`: 512.. vectors before; afterwards 64.. x0 to x28 and the flags, 4096..
 * vectors. Register n gets n * 0x0101010101010101 + 1, x28 the probe. */
    .text
    .globl registers_call
    .type registers_call, %function
registers_call:
    stp x29, x30, [sp, #-192]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    stp x2, x0, [sp, #160]
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    ldr q\n, [x2, #(512 + 64 * \n)]
    .endr
    msr nzcv, x1
    mov x28, x0
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,29
    movz x\n, #(\n * 0x0101 + 1)
    movk x\n, #(\n * 0x0101), lsl #16
    movk x\n, #(\n * 0x0101), lsl #32
    movk x\n, #(\n * 0x0101), lsl #48
    .endr
    blr x28
    /* Stores the results before anything can change them. */
    stp x0, x1, [sp, #176]
    ldr x0, [sp, #160]
    .irp n, 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29
    str x\n, [x0, #(64 + 8 * \n)]
    .endr
    mrs x2, nzcv
    str x2, [x0, #(64 + 8 * 30)]
    ldp x2, x3, [sp, #176]
    stp x2, x3, [x0, #64]
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    str q\n, [x0, #(4096 + 64 * \n)]
    .endr
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #192
    ret
    .size registers_call, . - registers_call
    .section .note.GNU-stack, "", %progbits
