/* Heap monitoring is not supported on AArch64, so no code jumps here. */
    .text
    .globl sj_arch_virtual_stubs
    .hidden sj_arch_virtual_stubs
    .type sj_arch_virtual_stubs, %function
sj_arch_virtual_stubs:
    ret
    .size sj_arch_virtual_stubs, . - sj_arch_virtual_stubs
    .section .note.GNU-stack, "", %progbits
