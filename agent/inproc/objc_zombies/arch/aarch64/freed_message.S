/* Objective-C zombies are not supported on AArch64, so this is never called. */
    .text
    .globl sj_arch_freed_message
    .hidden sj_arch_freed_message
    .type sj_arch_freed_message, %function
sj_arch_freed_message:
    mov x0, xzr
    ret
    .size sj_arch_freed_message, . - sj_arch_freed_message
    .section .note.GNU-stack, "", %progbits
