/* Not supported (doors.c): never called. */
    .text
    .globl sj_arch_objc_answer
    .hidden sj_arch_objc_answer
    .type sj_arch_objc_answer, %function
sj_arch_objc_answer:
    mov x0, xzr
    ret
    .size sj_arch_objc_answer, . - sj_arch_objc_answer
    .section .note.GNU-stack, "", %progbits
