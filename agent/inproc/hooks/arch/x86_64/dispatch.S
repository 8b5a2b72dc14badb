/* Dispatch hooks for x86-64: the entry of a dispatched call, and the thunk to which it returns. The
 * contract is in agent/inproc/hooks/dispatch.h. The offsets are those of the structures there. */

#define TARGET 8
#define ENTER_TAG 16
#define LEAVE_TAG 20
#define REGION_SHIFT 30
#define REGION_MASK 0x3fffffff
#define STACK_TAIL_CALL 1
#define FUNCTION_MASK 0x3fffffff /* SJ_RECORD_FUNCTION_MASK */
#define FETCH_BYTES_AHEAD 512 /* see record_code.c */

#include "agent/inproc/hooks/arch/x86_64/frames.inc"

    .text

/* Writes a record with the stack pointer plus `mark` as its stack address. `tag` (register or
 * memory) contains the tag, and `wide` is the same operand with 64 bits, to push. Changes %rax,
 * %rcx, %rdx and `scratch`. The slow path steps over the red zone, where registers are saved. If
 * `enters`, prefetches the memory for later records. */
.macro RECORD tag, wide, scratch, mark=0, enters=0
    rdtsc
    mov $16, %ecx
    mov sj_recorder_self@GOTTPOFF(%rip), \scratch
    xadd %rcx, %fs:(\scratch)
    mov sj_recorder_usable_mask(%rip), \scratch
    test %ecx, (\scratch)
    jnz 1f
    lea -152(%rsp), %rsp
    .cfi_adjust_cfa_offset 152
    pushq \wide
    .cfi_adjust_cfa_offset 8
    call sj_arch_slow_entry
    lea 160(%rsp), %rsp
    .cfi_adjust_cfa_offset -160
    rdtsc
1:  mov %eax, (%rcx)
    mov %dx, 4(%rcx)
.if \enters
    prefetchw FETCH_BYTES_AHEAD(%rcx)
.endif
.if \mark
    lea \mark(%rsp), %rdx
    mov %rdx, 6(%rcx)
.else
    mov %rsp, 6(%rcx)
.endif
    mov \tag, %eax
    mov %eax, 12(%rcx)
.endm

/* Sets %rdx to the address of the return slot for the stack address in %rsp. Jumps to \missing if
 * the slot's region is not reserved. */
.macro FIND_SLOT scratch, missing
    mov %rsp, %rdx
    shr $REGION_SHIFT, %rdx
    lea sj_return_regions(%rip), \scratch
    mov (\scratch,%rdx,8), %rdx
    mov %rsp, \scratch
    and $REGION_MASK, \scratch
    test %rdx, %rdx
    jz \missing
    lea (%rdx,\scratch,2), %rdx
.endm

.macro RESTORE
    mov -8(%rsp), %rax
    mov -16(%rsp), %rcx
    mov -24(%rsp), %rdx
    mov -32(%rsp), %r10
.endm

/* The processor predicts the target of a return from the calls that it has seen. So the code calls
 * the target from the instruction right before the thunk. That call pushes the thunk's address
 * where the return address was. The thunk returns to the true address. If a dispatched call jumped
 * here, the thunk's address is already on the stack, and the code jumps to the target. */
    .globl sj_arch_dispatch_entry
    .hidden sj_arch_dispatch_entry
    .type sj_arch_dispatch_entry, @function
sj_arch_dispatch_entry:
    .cfi_startproc
    mov %rax, -8(%rsp)
    mov %rcx, -16(%rsp)
    mov %rdx, -24(%rsp)
    mov %r10, -32(%rsp)
.Lfind:
    FIND_SLOT %r10, .Lreserve
    mov (%rsp), %rcx
    lea sj_arch_return_thunk(%rip), %rax
    cmp %rax, %rcx
    je .Ltail_call
    mov %rcx, (%rdx)
    mov LEAVE_TAG(%r11), %ecx
    mov %ecx, 8(%rdx)
    RECORD ENTER_TAG(%r11), ENTER_TAG(%r11), %r10, enters=1
    RESTORE
    lea 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    jmp .Lblock
    .cfi_adjust_cfa_offset 8

/* A recorded call ends by a jump to another dispatched function. The code records its exit before
 * the other call's entry. Both calls use the same slot. */
.Ltail_call:
    mov %rdx, -40(%rsp)
    mov %r9, -48(%rsp)
    mov 8(%rdx), %r9d
    RECORD %r9d, %r9, %r10, STACK_TAIL_CALL
    mov -40(%rsp), %rdx
    mov -48(%rsp), %r9
    mov LEAVE_TAG(%r11), %ecx
    mov %ecx, 8(%rdx)
    RECORD ENTER_TAG(%r11), ENTER_TAG(%r11), %r10, enters=1
.Lgo:
    RESTORE
    jmp *TARGET(%r11)

.Lreserve:
    lea -160 - RESERVED(%rsp), %rsp
    .cfi_adjust_cfa_offset 160 + RESERVED
    KEEP %rdi
    KEEP %rsi
    KEEP %r8
    KEEP %r9
    KEEP %r11
    KEEP %rbp
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    lea 208 + RESERVED(%rsp), %rdi
    and $-16, %rsp
    call sj_return_slots_reserve
    mov %rbp, %rsp
    .cfi_def_cfa_register %rsp
    RESTORE_KEPT %rbp
    RESTORE_KEPT %r11
    RESTORE_KEPT %r9
    RESTORE_KEPT %r8
    RESTORE_KEPT %rsi
    RESTORE_KEPT %rdi
    lea 160 + RESERVED(%rsp), %rsp
    .cfi_adjust_cfa_offset -(160 + RESERVED)
    test %al, %al
    jnz .Lfind
    jmp .Lgo
    .cfi_endproc
    .size sj_arch_dispatch_entry, . - sj_arch_dispatch_entry

/* The slow part of an entry's probe jumps here if a dispatched call has jumped to a patched
 * function. The probe has saved %rax, %rcx, %rdx and the flags in the red zone, down to -48(%rsp).
 * The code records the exit of the dispatched call, restores the return address and jumps to the
 * address in %rdx. */
    .globl sj_arch_jump_entry
    .hidden sj_arch_jump_entry
    .type sj_arch_jump_entry, @function
sj_arch_jump_entry:
    .cfi_startproc
    mov %rdx, -56(%rsp)
    mov %r9, -64(%rsp)
    mov %r10, -72(%rsp)
    FIND_SLOT %r10, .Lmet
    mov (%rdx), %rcx
    mov 8(%rdx), %r9d
    mov %rcx, (%rsp)
    RECORD %r9d, %r9, %r10, STACK_TAIL_CALL
.Lmet:
    mov -64(%rsp), %r9
    mov -72(%rsp), %r10
    jmp *-56(%rsp)
    .cfi_endproc
    .size sj_arch_jump_entry, . - sj_arch_jump_entry

/* The thunk and the call before it lie in a block of 64 bytes. From a program counter inside, the
 * unwind information computes the start of the block, where the distance to sj_return_regions lies.
 * Before the return address is restored, the rules are:
 *   CFA = %rsp - 8, the address of the slot: not %rsp, which is the CFA of the frame below. The
 *         unwinder of libgcc distinguishes frames by their CFA.
 *   %rsp of the caller = CFA + 8
 *   the return address lies at regions[CFA >> 30] + (CFA & 0x3fffffff) * 2 */
    .p2align 6
    .globl sj_arch_return_block
    .hidden sj_arch_return_block
sj_arch_return_block:
.Lblock:
    .cfi_startproc
    .cfi_escape 0x0f, 2, 0x77, 0x78 /* CFA: breg7 - 8 */
    .cfi_escape 0x16, 7, 2, 0x38, 0x22 /* %rsp: CFA, lit8, plus */
    .cfi_escape 0x10, 16, 29, \
        0x12, 0x08, 0x1e, 0x25, 0x33, 0x24, /* dup, const1u 30, shr, lit3, shl */ \
        0x80, 0x00, 0x09, 0xc0, 0x1a, /* breg16, const1s -64, and: the block */ \
        0x12, 0x23, 0x38, 0x94, 0x04, 0x22, /* dup, plus_uconst 56, deref_size 4, plus */ \
        0x22, 0x06, /* plus, deref: the region */ \
        0x16, 0x0c, 0xff, 0xff, 0xff, 0x3f, 0x1a, /* swap, const4u mask, and */ \
        0x31, 0x24, 0x22 /* lit1, shl, plus */
    call *TARGET(%r11)
    .globl sj_arch_return_thunk
    .hidden sj_arch_return_thunk
    .type sj_arch_return_thunk, @function
sj_arch_return_thunk:
    mov %rax, %r8
    mov %rdx, %r9
    lea -8(%rsp), %rdx
    mov %rdx, %rcx
    shr $REGION_SHIFT, %rdx
    lea sj_return_regions(%rip), %r10
    mov (%r10,%rdx,8), %rdx
    and $REGION_MASK, %ecx
    lea (%rdx,%rcx,2), %rdx
    mov (%rdx), %rdi
    mov 8(%rdx), %esi
    push %rdi
    .globl sj_arch_return_thunk_restored
    .hidden sj_arch_return_thunk_restored
sj_arch_return_thunk_restored:
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rsp
    .cfi_offset %rip, -8
    jmp .Lleave
    .org .Lblock + 56
    .long sj_return_regions - .Lblock
    .long 0
.Lleave:
    cmpl $0, sj_return_values_count(%rip)
    jne .Lvalues
.Lrecord:
    RECORD %esi, %rsi, %r10
    mov %r8, %rax
    mov %r9, %rdx
    ret
.Lvalues: /* Results of some functions are recorded, and rules may set them. */
    mov %r8, %rax
    mov %r9, %rdx
    mov %esi, %r10d
    and $FUNCTION_MASK, %r10d
    lea -152(%rsp), %rsp
    .cfi_adjust_cfa_offset 152
    pushq $-1 /* SJ_VALUES_OF_RETURN */
    .cfi_adjust_cfa_offset 8
    push %r10
    .cfi_adjust_cfa_offset 8
    call sj_arch_values_entry
    lea 168(%rsp), %rsp
    .cfi_adjust_cfa_offset -168
    mov %rax, %r8
    mov %rdx, %r9
    jmp .Lrecord
    .cfi_endproc
    .size sj_arch_return_thunk, . - sj_arch_return_thunk

    .section .note.GNU-stack, "", @progbits
