/* objc_msgSend and objc_msgSend_stret for x86-64. They preserve all argument registers.
 * sj_objc_message uses no vector register. Before sj_objc_new_message, which calls the runtime, the
 * vector state is saved by XSAVE: components 1, 2, 5 to 7 (SSE, AVX, AVX-512). */
#define VECTORS 0xe6
#define XSAVE_BYTES 4096
#define XSAVE_HEADER 512

    .text

.macro MESSAGE name, real, receiver, selector, receiver_at, selector_at
    .globl \name
    .hidden \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    push %rbp
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
    push %r10
    push %rbx
    sub $XSAVE_BYTES, %rsp
    and $-64, %rsp
    mov \selector, %rax
    mov \receiver, %rdi
    mov %rax, %rsi
    mov \real(%rip), %rdx
    call sj_objc_message
    cmp $1, %rax
    je 2f
3:  mov %rax, %r11
    lea -72(%rbp), %rsp
    pop %rbx
    pop %r10
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
    test %r11, %r11
    jz 1f
    jmp *(%r11)
1:  jmp *\real(%rip)
    .cfi_def_cfa %rbp, 16
    .cfi_offset %rbp, -16
2:  xor %edx, %edx
    .irp word, 0, 8, 16, 24, 32, 40, 48, 56
    mov %rdx, XSAVE_HEADER+\word(%rsp)
    .endr
    mov $VECTORS, %eax
    xsave64 (%rsp)
    mov \receiver_at(%rbp), %rdi
    mov \selector_at(%rbp), %rsi
    mov \real(%rip), %rdx
    call sj_objc_new_message
    mov %rax, %rbx
    mov $VECTORS, %eax
    xor %edx, %edx
    xrstor64 (%rsp)
    mov %rbx, %rax
    jmp 3b
    .cfi_endproc
    .size \name, . - \name
.endm

MESSAGE sj_arch_objc_message, sj_objc_real_message, %rdi, %rsi, -16, -24
MESSAGE sj_arch_objc_message_stret, sj_objc_real_message_stret, %rsi, %rdx, -24, -32

/* %r11 is the record. Calls its target, which returns an address of code. Returns
 * sj_objc_code_behind of this address. */
    .globl sj_arch_objc_plain
    .hidden sj_arch_objc_plain
    .type sj_arch_objc_plain, @function
    .p2align 4
sj_arch_objc_plain:
    .cfi_startproc
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call *8(%r11)
    mov %rax, %rdi
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    jmp sj_objc_code_behind
    .cfi_endproc
    .size sj_arch_objc_plain, . - sj_arch_objc_plain

    .section .note.GNU-stack, "", @progbits
