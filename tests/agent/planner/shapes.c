/* Machine code that compilers rarely make, so it is written in assembly: functions without space
 * for a jump, exits at the entry, addresses that only look like labels, jumps that are never taken,
 * results in flags. The code is not position independent. x86-64. */
#include <stdio.h>

struct target {
    long (*call)(long);
};

void crowded(const signed char *text, long *count);
long tiny_zero(void);
long tiny_same(long x);
long tiny_next(long x);
long long_before(long x, long y);
long long_behind(long x, long y);
long tail_through(const struct target *target, long x);
long number_like_a_label(void);
long other(long x);
long never_taken(long x);
long never_taken_deep(long x);
long punned(long x);
long asks(long x);
long asks_handed_on(long x);
long asks_behind_jump(long x);
long asks_by_pointer(long x);
long asks_late(long x);
long asks_other_side(long x);
long gives(long x);
long gives_by_jump(long x);

/* The return has no space after the entry, and one byte before a branch target. */
__asm__(".text; .p2align 4; .type crowded, @function; .globl crowded\n"
        "crowded: .cfi_startproc\n"
        "cmpb $0, (%rdi); jle 1f; ret\n"
        "1: pushq %rbx; .cfi_def_cfa_offset 16; .cfi_offset %rbx, -16\n"
        "movq %rsi, %rbx; call tiny_zero; addq $5, (%rbx)\n"
        "popq %rbx; .cfi_def_cfa_offset 8\n"
        "ret; .cfi_endproc; .size crowded, . - crowded");

/* Functions of three or four bytes without padding in reach: their jumps lie in neighbouring
 * code. */
__asm__(
    ".section .text.packed, \"ax\", @progbits; .type long_before, @function; .globl long_before\n"
    "long_before: .cfi_startproc\n"
    "leaq (%rdi,%rsi), %rax; leaq 3(%rax,%rax,2), %rax; leaq 7(%rax,%rsi), %rax\n"
    ".rept 20; addq %rdi, %rax; addq %rsi, %rax; xorq $17, %rax; .endr\n"
    "ret; .cfi_endproc; .size long_before, . - long_before\n"
    ".type tiny_zero, @function; .globl tiny_zero\n"
    "tiny_zero: .cfi_startproc; xorl %eax, %eax; ret; .cfi_endproc; .size tiny_zero, 3\n"
    ".type tiny_same, @function; .globl tiny_same\n"
    "tiny_same: .cfi_startproc; movq %rdi, %rax; ret; .cfi_endproc; .size tiny_same, 4\n"
    ".type tiny_next, @function; .globl tiny_next\n"
    "tiny_next: .cfi_startproc; leal 1(%rdi), %eax; ret; .cfi_endproc; .size tiny_next, 4\n"
    ".type long_behind, @function; .globl long_behind\n"
    "long_behind: .cfi_startproc\n"
    "leaq (%rdi,%rsi,4), %rax; leaq 9(%rax,%rax,4), %rax; leaq 11(%rax,%rdi), %rax\n"
    ".rept 20; addq %rsi, %rax; addq %rdi, %rax; xorq $19, %rax; .endr\n"
    "ret; .cfi_endproc; .size long_behind, . - long_behind; .text");

/* A word of data that points into an instruction, and a number that equals the address of another
 * function's instruction, are not labels. So the jump is a tail call. */
__asm__(".p2align 4; .type tail_through, @function; .globl tail_through\n"
        "tail_through: .cfi_startproc\n"
        "movq (%rdi), %rax; movq %rsi, %rdi; jmp *%rax\n"
        ".cfi_endproc; .size tail_through, . - tail_through\n"
        ".p2align 4; .type number_like_a_label, @function; .globl number_like_a_label\n"
        "number_like_a_label: .cfi_startproc\n"
        "movl $tail_through + 3, %eax; subl $tail_through, %eax; ret\n"
        ".cfi_endproc; .size number_like_a_label, . - number_like_a_label\n"
        ".data; .p2align 3; .quad tail_through + 1; .text");

/* The compiler lets impossible cases continue into the next code: here the cold part of `other`,
 * which expects one more word on the stack. So `never_taken` and `never_taken_deep` do not share
 * code with `other`. */
__asm__(".p2align 4; .type other, @function; .globl other\n"
        "other: .cfi_startproc\n"
        "pushq %rcx; .cfi_def_cfa_offset 16\n"
        "testq %rdi, %rdi; je other_cold; call tiny_next\n"
        "other_back: popq %rcx; .cfi_def_cfa_offset 8\n"
        "ret; .cfi_endproc; .size other, . - other\n"
        ".p2align 4; .type never_taken, @function; .globl never_taken\n"
        "never_taken: .cfi_startproc\n"
        "cmpq $1000000, %rdi; ja other_cold; leaq 2(%rdi), %rax\n"
        "ret; .cfi_endproc; .size never_taken, . - never_taken\n"
        ".p2align 4; .type never_taken_deep, @function; .globl never_taken_deep\n"
        "never_taken_deep: .cfi_startproc\n"
        "subq $24, %rsp; .cfi_def_cfa_offset 32\n"
        "cmpq $1000000, %rdi; ja other_cold; call tiny_same; addq $3, %rax\n"
        "addq $24, %rsp; .cfi_def_cfa_offset 8\n"
        "ret; .cfi_endproc; .size never_taken_deep, . - never_taken_deep\n"
        ".section .text.unlikely, \"ax\", @progbits\n"
        "other_cold: .cfi_startproc; .cfi_def_cfa_offset 16\n"
        "movl $100, %eax; jmp other_back; .cfi_endproc; .text");

/* The first case only returns, and the second case starts with the byte 0x48. A short jump in place
 * of the return has the distance 0x48, which leads into code that is moved away. The call prevents
 * a copy. */
__asm__(".p2align 8; .type punned, @function; .globl punned\n"
        "punned: .cfi_startproc\n"
        "movl $7, %eax; cmpq $1, %rdi; ja 3f; jmp *9f(,%rdi,8)\n"
        "1: ret\n"
        "2: leaq 5(%rdi), %rax; subq $8, %rsp; .cfi_def_cfa_offset 16; call tiny_same\n"
        "addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        ".rept 20; leaq 5(%rax,%rdi), %rax; .endr; ret\n"
        "3: leaq 9(%rdi), %rax; ret; .cfi_endproc; .size punned, . - punned\n"
        ".section .rodata; .p2align 3; 9: .quad 1b, 2b; .text");

/* Hand-written functions that return a result in the carry flag. The caller reads it after the
 * call, through a function that passes it on, by a jump and by a pointer, after instructions that
 * keep the carry, and on one side of a branch. Other functions get the flag as an argument. */
__asm__(".p2align 4; .type below_plain, @function; .globl below_plain\n"
        "below_plain: .cfi_startproc\n"
        "cmpq $10, %rdi; leaq 3(%rdi), %rax; leaq 1(%rax,%rdi), %rax\n"
        "ret\n"
        ".cfi_endproc; .size below_plain, . - below_plain\n"
        ".p2align 4; .type asks, @function; .globl asks\n"
        "asks: .cfi_startproc\n"
        "subq $8, %rsp; .cfi_def_cfa_offset 16\n"
        "call below_plain\n"
        "jb 1f; addq $200, %rax\n"
        "1: addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc; .size asks, . - asks\n"
        ".p2align 4; .type below_handed, @function; .globl below_handed\n"
        "below_handed: .cfi_startproc\n"
        "cmpq $10, %rdi; leaq 3(%rdi), %rax; leaq 1(%rax,%rdi), %rax\n"
        "ret\n"
        ".cfi_endproc; .size below_handed, . - below_handed\n"
        ".p2align 4; .type hands_on, @function; .globl hands_on\n"
        "hands_on: .cfi_startproc\n"
        "subq $8, %rsp; .cfi_def_cfa_offset 16\n"
        "call below_handed; leaq 8(%rsp), %rsp; .cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc; .size hands_on, . - hands_on\n"
        ".p2align 4; .type asks_handed_on, @function; .globl asks_handed_on\n"
        "asks_handed_on: .cfi_startproc\n"
        "subq $8, %rsp; .cfi_def_cfa_offset 16\n"
        "call hands_on\n"
        "jb 1f; addq $200, %rax\n"
        "1: addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc; .size asks_handed_on, . - asks_handed_on\n"
        ".p2align 4; .type below_jumped, @function; .globl below_jumped\n"
        "below_jumped: .cfi_startproc\n"
        "cmpq $10, %rdi; leaq 3(%rdi), %rax; leaq 1(%rax,%rdi), %rax\n"
        "ret\n"
        ".cfi_endproc; .size below_jumped, . - below_jumped\n"
        ".p2align 4; .type jumps, @function; .globl jumps\n"
        "jumps: .cfi_startproc\n"
        "leaq 2(%rdi), %rdi; leaq (%rdi), %rdi\n"
        "jmp below_jumped\n"
        ".cfi_endproc; .size jumps, . - jumps\n"
        ".p2align 4; .type asks_behind_jump, @function; .globl asks_behind_jump\n"
        "asks_behind_jump: .cfi_startproc\n"
        "subq $8, %rsp; .cfi_def_cfa_offset 16\n"
        "call jumps\n"
        "jb 1f; addq $200, %rax\n"
        "1: addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc; .size asks_behind_jump, . - asks_behind_jump\n"
        ".p2align 4; .type below_pointed, @function; .globl below_pointed\n"
        "below_pointed: .cfi_startproc\n"
        "cmpq $10, %rdi; leaq 3(%rdi), %rax; leaq 1(%rax,%rdi), %rax\n"
        "ret\n"
        ".cfi_endproc; .size below_pointed, . - below_pointed\n"
        ".p2align 4; .type asks_by_pointer, @function; .globl asks_by_pointer\n"
        "asks_by_pointer: .cfi_startproc\n"
        "subq $8, %rsp; .cfi_def_cfa_offset 16\n"
        "call *pointer_to_below\n"
        "jb 1f; addq $200, %rax\n"
        "1: addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc; .size asks_by_pointer, . - asks_by_pointer\n"
        ".p2align 4; .type below_late, @function; .globl below_late\n"
        "below_late: .cfi_startproc\n"
        "cmpq $10, %rdi; leaq 3(%rdi), %rax; leaq 1(%rax,%rdi), %rax\n"
        "ret\n"
        ".cfi_endproc; .size below_late, . - below_late\n"
        ".p2align 4; .type asks_late, @function; .globl asks_late\n"
        "asks_late: .cfi_startproc\n"
        "subq $8, %rsp; .cfi_def_cfa_offset 16\n"
        "movl $1, %ecx; call below_late; decl %ecx; movq %rax, %rax; jne 2f; 2:\n"
        "jb 1f; addq $200, %rax\n"
        "1: addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc; .size asks_late, . - asks_late\n"
        ".p2align 4; .type below_side, @function; .globl below_side\n"
        "below_side: .cfi_startproc\n"
        "cmpq $10, %rdi; leaq 3(%rdi), %rax; leaq 1(%rax,%rdi), %rax\n"
        "ret\n"
        ".cfi_endproc; .size below_side, . - below_side\n"
        ".p2align 4; .type asks_other_side, @function; .globl asks_other_side\n"
        "asks_other_side: .cfi_startproc\n"
        "subq $8, %rsp; .cfi_def_cfa_offset 16\n"
        "movl $2, %ecx; call below_side; decl %ecx; je 1f\n"
        "jb 1f; addq $200, %rax\n"
        "1: addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc; .size asks_other_side, . - asks_other_side\n"
        ".p2align 4; .type takes, @function; .globl takes\n"
        "takes: .cfi_startproc\n"
        "movq %rdi, %rax; leaq 5(%rax), %rax\n"
        "adcq $100, %rax; ret\n"
        ".cfi_endproc; .size takes, . - takes\n"
        ".p2align 4; .type gives, @function; .globl gives\n"
        "gives: .cfi_startproc\n"
        "subq $8, %rsp; .cfi_def_cfa_offset 16\n"
        "cmpq $10, %rdi; call takes; addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc; .size gives, . - gives\n"
        ".p2align 4; .type takes_jump, @function; .globl takes_jump\n"
        "takes_jump: .cfi_startproc\n"
        "movq %rdi, %rax; leaq 5(%rax), %rax\n"
        "adcq $100, %rax; ret\n"
        ".cfi_endproc; .size takes_jump, . - takes_jump\n"
        ".p2align 4; .type gives_by_jump, @function; .globl gives_by_jump\n"
        "gives_by_jump: .cfi_startproc\n"
        "leaq 1(%rdi), %rdi; cmpq $10, %rdi\n"
        "jmp takes_jump\n"
        ".cfi_endproc; .size gives_by_jump, . - gives_by_jump\n"
        ".data; .p2align 3; pointer_to_below: .quad below_pointed; .text");

int main(void)
{
    static const signed char low[] = {-1};
    static const signed char high[] = {1};
    static const struct target target = {tiny_next};
    long total = 0;
    for (long i = 0; i < 300; i++) {
        crowded(i % 3 == 0 ? low : high, &total);
        total += tiny_zero() + tiny_same(i) + tiny_next(i);
        total += long_before(i, 3) + long_behind(5, i) + tail_through(&target, i);
        total += number_like_a_label() + other(i % 2) + never_taken(i) + never_taken_deep(i);
        total += punned(i % 3);
        const long x = i % 20;
        total += asks(x) + asks_handed_on(x) + asks_behind_jump(x) + asks_by_pointer(x);
        total += asks_late(x) + asks_other_side(x) + gives(x) + gives_by_jump(x);
    }
    printf("%ld\n", total);
    return 0;
}
