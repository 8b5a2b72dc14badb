/* void registers_call(void (*probe)(void), uint64_t flags, unsigned char *work)
 * Fills every general register, the flags and zmm0-31/k1-7 (or ymm0-15, chosen by work[0]) with
 * known values, calls the probe, and stores what came back. `work` is 64-byte aligned
 * and 8 KiB: 64.. general registers, 512.. vectors before, 4096.. vectors after. */
    .text
    .globl registers_call
    .type registers_call, @function


registers_call:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $72, %rsp
    mov %rdi, 0(%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    cmpb $1, (%rdx)
    jne 1f
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovdqu64 (512 + 64 * \n)(%rdx), %zmm\n
    .endr
    .irp n, 1,2,3,4,5,6,7
    kmovq (512 + 8 * \n)(%rdx), %k\n
    .endr
    jmp 2f
1:
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovdqu (512 + 64 * \n)(%rdx), %ymm\n
    .endr
2:
    mov $0x1111111111111111, %rax
    mov $0x2222222222222222, %rbx
    mov $0x3333333333333333, %rcx
    mov $0x4444444444444444, %rdx
    mov $0x5555555555555555, %rsi
    mov $0x6666666666666666, %rdi
    mov $0x7777777777777777, %rbp
    mov $0x0808080808080808, %r8
    mov $0x0909090909090909, %r9
    mov $0x1010101010101010, %r10
    mov $0x1111111111111101, %r11
    mov $0x1212121212121212, %r12
    mov $0x1313131313131313, %r13
    mov $0x1414141414141414, %r14
    mov $0x1515151515151515, %r15
    pushq 8(%rsp)
    popfq
    call *(%rsp)
    /* Stores the results before anything can change them. */
    push %rax
    pushfq
    cld
    mov 32(%rsp), %rax
    mov %rbx, 72(%rax)
    mov %rcx, 80(%rax)
    mov %rdx, 88(%rax)
    mov %rsi, 96(%rax)
    mov %rdi, 104(%rax)
    mov %rbp, 112(%rax)
    mov %r8, 120(%rax)
    mov %r9, 128(%rax)
    mov %r10, 136(%rax)
    mov %r11, 144(%rax)
    mov %r12, 152(%rax)
    mov %r13, 160(%rax)
    mov %r14, 168(%rax)
    mov %r15, 176(%rax)
    mov %rax, %rdx
    pop %rcx
    mov %rcx, 184(%rdx)
    pop %rcx
    mov %rcx, 64(%rdx)
    cmpb $1, (%rdx)
    jne 3f
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovdqu64 %zmm\n, (4096 + 64 * \n)(%rdx)
    .endr
    .irp n, 1,2,3,4,5,6,7
    kmovq %k\n, (4096 + 2048 + 8 * \n)(%rdx)
    .endr
    jmp 4f
3:
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovdqu %ymm\n, (4096 + 64 * \n)(%rdx)
    .endr
4:
    vzeroupper
    add $72, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size registers_call, . - registers_call
    .section .note.GNU-stack, "", @progbits
