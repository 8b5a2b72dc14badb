/* A program with wrong tables: symbols that overlap, end outside the text, exceed their unwind
 * range, or have none. It runs normally. x86-64. */
#include <stdio.h>

long first_of_two(long x);
long second_of_two(long x);
long without_rules(long x);
long longer_than_its_rules(long x);
long past_the_end(long x);
long bystander(long x);

__asm__(".text; .p2align 4; .type first_of_two, @function; .globl first_of_two\n"
        "first_of_two: .cfi_startproc; leaq 1(%rdi), %rdi; addq %rdi, %rdi\n"
        ".type second_of_two, @function; .globl second_of_two\n"
        "second_of_two: leaq 2(%rdi), %rax; addq %rax, %rax; ret; .cfi_endproc\n"
        ".size first_of_two, . - first_of_two; .size second_of_two, . - second_of_two");

__asm__(".p2align 4; .type without_rules, @function; .globl without_rules\n"
        "without_rules: leaq 3(%rdi), %rax; addq %rax, %rax; ret\n"
        ".size without_rules, . - without_rules");

__asm__(".p2align 4; .type longer_than_its_rules, @function; .globl longer_than_its_rules\n"
        "longer_than_its_rules: .cfi_startproc; leaq 4(%rdi), %rax; jmp 1f; .cfi_endproc\n"
        "1: addq %rax, %rax; ret\n"
        ".size longer_than_its_rules, . - longer_than_its_rules");

__asm__(".p2align 4; .type past_the_end, @function; .globl past_the_end\n"
        "past_the_end: .cfi_startproc; leaq 5(%rdi), %rax; addq %rax, %rax; ret; .cfi_endproc\n"
        ".size past_the_end, 0x10000000");

__asm__(".p2align 4; .type bystander, @function; .globl bystander\n"
        "bystander: .cfi_startproc; leaq 6(%rdi), %rax; addq %rax, %rax; ret; .cfi_endproc\n"
        ".size bystander, . - bystander");

int main(void)
{
    long total = 0;
    for (long i = 0; i < 2000; i++) {
        total += first_of_two(i) + second_of_two(i) + without_rules(i) + longer_than_its_rules(i);
        total += past_the_end(i) + bystander(i);
    }
    printf("%ld\n", total);
    return 0;
}
