/* Shapes of machine code that compilers make rarely, so written out: functions without room, exits
 * in the head, addresses that only look like labels, jumps that are never taken. Not position
 * independent; x86-64. */
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

/* The bare return has no room behind the head, and one byte before what a branch leads to. */
__asm__(".text; .p2align 4; .type crowded, @function; .globl crowded\n"
        "crowded: .cfi_startproc\n"
        "cmpb $0, (%rdi); jle 1f; ret\n"
        "1: pushq %rbx; .cfi_def_cfa_offset 16; .cfi_offset %rbx, -16\n"
        "movq %rsi, %rbx; call tiny_zero; addq $5, (%rbx)\n"
        "popq %rbx; .cfi_def_cfa_offset 8\n"
        "ret; .cfi_endproc; .size crowded, . - crowded");

/* Three bytes and no padding in reach: the jump lies in the code of the neighbours. */
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

/* A word of data that leads into an instruction, and a number that happens to be the address of
 * another function's instruction, make no label: the jump is a tail call. */
__asm__(".p2align 4; .type tail_through, @function; .globl tail_through\n"
        "tail_through: .cfi_startproc\n"
        "movq (%rdi), %rax; movq %rsi, %rdi; jmp *%rax\n"
        ".cfi_endproc; .size tail_through, . - tail_through\n"
        ".p2align 4; .type number_like_a_label, @function; .globl number_like_a_label\n"
        "number_like_a_label: .cfi_startproc\n"
        "movl $tail_through + 3, %eax; subl $tail_through, %eax; ret\n"
        ".cfi_endproc; .size number_like_a_label, . - number_like_a_label\n"
        ".data; .p2align 3; .quad tail_through + 1; .text");

/* Cases that the compiler knows to be impossible go on with what comes next: here the cold part of
 * `other`, which expects a word more on the stack, so that neither shares code with it. */
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

/* A case that only returns, in front of one that begins with 0x48: that is how far a short jump in
 * place of the return goes, into code that makes room. The call keeps it from being copied. */
__asm__(".p2align 8; .type punned, @function; .globl punned\n"
        "punned: .cfi_startproc\n"
        "movl $7, %eax; cmpq $1, %rdi; ja 3f; jmp *9f(,%rdi,8)\n"
        "1: ret\n"
        "2: leaq 5(%rdi), %rax; subq $8, %rsp; .cfi_def_cfa_offset 16; call tiny_same\n"
        "addq $8, %rsp; .cfi_def_cfa_offset 8\n"
        ".rept 20; leaq 5(%rax,%rdi), %rax; .endr; ret\n"
        "3: leaq 9(%rdi), %rax; ret; .cfi_endproc; .size punned, . - punned\n"
        ".section .rodata; .p2align 3; 9: .quad 1b, 2b; .text");

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
    }
    printf("%ld\n", total);
    return 0;
}
