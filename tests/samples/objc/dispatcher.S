/* objc_msgSend of the sample dispatcher. A message to nil returns 0. If the cache has an entry, it
 * jumps to the method. Otherwise it saves all argument registers, including the vector registers,
 * because it calls ordinary C code. */
    .text
#if defined(__x86_64__)
.macro MESSAGE name, receiver, selector
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    test \receiver, \receiver
    jz 3f
    mov (\receiver), %r10
    mov \selector, %r11
    shr $6, %r11
    and $15, %r11
    shl $4, %r11
    lea 16(%r10,%r11), %r11
    cmp \selector, (%r11)
    jne 2f
    jmp *8(%r11)
2:  push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    push %rax
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    sub $264, %rsp
    and $-32, %rsp
    vmovdqa %ymm0, (%rsp)
    vmovdqa %ymm1, 32(%rsp)
    vmovdqa %ymm2, 64(%rsp)
    vmovdqa %ymm3, 96(%rsp)
    vmovdqa %ymm4, 128(%rsp)
    vmovdqa %ymm5, 160(%rsp)
    vmovdqa %ymm6, 192(%rsp)
    vmovdqa %ymm7, 224(%rsp)
    mov \selector, %rax
    mov \receiver, %rdi
    mov %rax, %rsi
    call objc_sample_find@PLT
    mov %rax, %r11
    vmovdqa (%rsp), %ymm0
    vmovdqa 32(%rsp), %ymm1
    vmovdqa 64(%rsp), %ymm2
    vmovdqa 96(%rsp), %ymm3
    vmovdqa 128(%rsp), %ymm4
    vmovdqa 160(%rsp), %ymm5
    vmovdqa 192(%rsp), %ymm6
    vmovdqa 224(%rsp), %ymm7
    lea -56(%rbp), %rsp
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    pop %rbp
    .cfi_restore %rbp
    .cfi_def_cfa %rsp, 8
    jmp *%r11
3:  xor %eax, %eax
    xor %edx, %edx
    pxor %xmm0, %xmm0
    pxor %xmm1, %xmm1
    ret
    .cfi_endproc
    .size \name, . - \name
.endm
MESSAGE objc_msgSend, %rdi, %rsi
MESSAGE objc_msgSend_stret, %rsi, %rdx
    .section .note.GNU-stack, "", @progbits
#else
    .globl objc_msgSend
    .type objc_msgSend, %function
    .p2align 4
objc_msgSend:
    .cfi_startproc
    cbz x0, 3f
    ldr x16, [x0]
    ubfx x17, x1, #6, #4
    add x16, x16, #16
    add x16, x16, x17, lsl #4
    ldp x17, x16, [x16]
    cmp x17, x1
    b.ne 2f
    br x16
2:  stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset x29, -224
    .cfi_offset x30, -216
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    bl objc_sample_find
    mov x16, x0
    ldp q6, q7, [sp, #192]
    ldp q4, q5, [sp, #160]
    ldp q2, q3, [sp, #128]
    ldp q0, q1, [sp, #96]
    ldr x8, [sp, #80]
    ldp x6, x7, [sp, #64]
    ldp x4, x5, [sp, #48]
    ldp x2, x3, [sp, #32]
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #224
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    br x16
3:  mov x1, #0
    movi v0.2d, #0
    movi v1.2d, #0
    ret
    .cfi_endproc
    .size objc_msgSend, . - objc_msgSend
    .section .note.GNU-stack, "", %progbits
#endif
