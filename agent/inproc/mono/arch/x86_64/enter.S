/* Mono's callback for the entry of a method. Accesses the stack SJ_MONO_TOUCHED_BYTES below the
 * stack pointer, so that a stack overflow faults here (mono.h). */
    .text
    .globl sj_arch_mono_enter
    .hidden sj_arch_mono_enter
    .type sj_arch_mono_enter, @function
    .p2align 4
sj_arch_mono_enter:
    .cfi_startproc
    test %eax, -8192(%rsp)
    jmp sj_mono_on_enter
    .cfi_endproc
    .size sj_arch_mono_enter, . - sj_arch_mono_enter
    .section .note.GNU-stack, "", @progbits
