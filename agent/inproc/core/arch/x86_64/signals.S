/* Signals on x86-64: gates in front of the program's handlers, and the return from these
 * handlers. */
    .text

/* Eight gates of 16 bytes. In: %edi signal, %rsi siginfo, %rdx context, (%rsp) return address. The
 * program's handler gets the same registers, and uses no others. */
    .globl sj_arch_signal_gates
    .hidden sj_arch_signal_gates
    .type sj_arch_signal_gates, @function
    .p2align 4
sj_arch_signal_gates:
    .cfi_startproc
    .set gate, 0
    .rept 8
    .p2align 4
    mov $gate, %ecx
    jmp .Lenter
    .set gate, gate + 1
    .endr
    .p2align 4
.Lenter:
    mov (%rsp), %r8
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    call sj_signals_enter
    mov %rax, %r11
    xor %eax, %eax
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%r11
    .cfi_endproc
    .size sj_arch_signal_gates, . - sj_arch_signal_gates

/* Describes where the kernel's frame saves the register of a DWARF number, as an offset in the
 * context. `base` is the register that points to the context: 0x77 is %rsp, 0x73 %rbx. */
.macro KEPT base, number, offset
    .cfi_escape 0x10, \number, 3, \base, (\offset & 0x7f) | 0x80, \offset >> 7
.endm

.macro CONTEXT_AT base
    .cfi_escape 0x0f, 4, \base, 0xa0, 0x01, 0x06 /* CFA: the word at 160 */
    KEPT \base, 8, 40
    KEPT \base, 9, 48
    KEPT \base, 10, 56
    KEPT \base, 11, 64
    KEPT \base, 12, 72
    KEPT \base, 13, 80
    KEPT \base, 14, 88
    KEPT \base, 15, 96
    KEPT \base, 5, 104
    KEPT \base, 4, 112
    KEPT \base, 6, 120
    KEPT \base, 3, 128
    KEPT \base, 1, 136
    KEPT \base, 0, 144
    KEPT \base, 2, 152
    KEPT \base, 7, 160
    KEPT \base, 16, 168
.endm

/* The restorer, to which a handler returns. The stack pointer then points to the context. Unwinders
 * look up the byte before a return address, so the nop belongs to the frame. */
    .p2align 4
    .cfi_startproc
    .cfi_signal_frame
    CONTEXT_AT 0x77
    nop
    .globl sj_arch_signal_return
    .hidden sj_arch_signal_return
    .type sj_arch_signal_return, @function
sj_arch_signal_return:
    mov %rsp, %rbx
    CONTEXT_AT 0x73
    mov %rsp, %rdi
    and $-16, %rsp
    cld
    call sj_signals_return
    mov %rbx, %rsp
    mov $15, %eax /* rt_sigreturn */
    syscall
    hlt
    .cfi_endproc
    .size sj_arch_signal_return, . - sj_arch_signal_return

/* Replaces the system call. The call's arguments are in their registers. It keeps the registers
 * that system calls keep. Unwinders see a frame that has interrupted the C library before the
 * system call. */
    .globl sj_arch_action_entry
    .hidden sj_arch_action_entry
    .type sj_arch_action_entry, @function
sj_arch_action_entry:
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa %rsp, 0
    .cfi_undefined %rip
    lea -128(%rsp), %rsp
    .cfi_adjust_cfa_offset 128
    push sj_arch_action_resume(%rip)
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rip, 0
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    push %r10
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    and $-16, %rsp
    cld
    mov %r10, %rcx
    call sj_signals_change
    mov %rbp, %rsp
    .cfi_def_cfa_register %rsp
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %r10
    .cfi_adjust_cfa_offset -8
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    pop %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_undefined %rip
    lea 128(%rsp), %rsp
    .cfi_adjust_cfa_offset -128
    jmp *%rcx
    .cfi_endproc
    .size sj_arch_action_entry, . - sj_arch_action_entry

    .bss
    .balign 8
    .globl sj_arch_action_resume
    .hidden sj_arch_action_resume
    .type sj_arch_action_resume, @object
sj_arch_action_resume:
    .zero 8
    .size sj_arch_action_resume, 8

    .section .note.GNU-stack, "", @progbits
