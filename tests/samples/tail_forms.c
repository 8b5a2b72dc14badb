/* Calls that end with a jump, one function for each form of jump. Each form passes its number to a
 * function and returns that function's result. x86-64. */
#include <stdio.h>

/* Defined in tail_forms_library.so. */
long library_leaf(long x);

enum { ROUNDS = 300 };

long leaf(long x);
long carry_leaf(long x);
long tiny(long x);
long marked_leaf(long x);
long unhooked_leaf(long x);

typedef long form(long x);

/* The leaf must not change the flags before its call, because a patch cannot assume that the flags
 * are dead. */
__asm__(".text; .p2align 4; .type leaf, @function; .globl leaf\n"
        "leaf: .cfi_startproc; pushq %rbx; .cfi_def_cfa_offset 16; .cfi_offset %rbx, -16\n"
        "movq %rdi, %rbx; call *nothing(%rip); leaq 1(%rbx), %rax\n"
        "popq %rbx; .cfi_def_cfa_offset 8; ret; .cfi_endproc; .size leaf, . - leaf\n"
        ".p2align 4; .type carry_leaf, @function; .globl carry_leaf\n"
        "carry_leaf: .cfi_startproc; leaq (%rdi), %rax; adcq $0, %rax; nopl (%rax); ret\n"
        ".cfi_endproc; .size carry_leaf, . - carry_leaf\n"
        ".p2align 4; .type marked_leaf, @function; .globl marked_leaf\n"
        "marked_leaf: .cfi_startproc; endbr64; leaq 1(%rdi), %rax; nopl (%rax); ret\n"
        ".cfi_endproc; .size marked_leaf, . - marked_leaf\n"
        ".p2align 4; .type unhooked_leaf, @function; .globl unhooked_leaf\n"
        "unhooked_leaf: .cfi_startproc; leaq 1(%rdi), %rax; nopl (%rax); ret\n"
        ".cfi_endproc; .size unhooked_leaf, . - unhooked_leaf");

static void do_nothing(void)
{
}
void (*nothing)(void) __attribute__((visibility("hidden"))) = do_nothing;

struct table {
    form *functions[4];
};
static form *const leaves[4] = {leaf, leaf, leaf, leaf};
form *leaf_slot __attribute__((visibility("hidden"))) = leaf;
const struct table leaf_table __attribute__((visibility("hidden"))) = {{leaf, leaf, leaf, leaf}};

#define FORM(name, code)                                                                           \
    long name(long x);                                                                             \
    __asm__(".text; .p2align 4; .type " #name ", @function; .globl " #name "\n" #name              \
            ": .cfi_startproc; " code "; .cfi_endproc; .size " #name ", . - " #name)

#define HEAD "leaq (%rdi,%rdi), %rdi; shrq $1, %rdi; "

/* Near and far jumps, at the head of a function and behind it. */
FORM(jump_near, HEAD "jmp leaf");
FORM(jump_near_at_once, "imulq $1, %rdi, %rdi; jmp near_leaf");
__asm__(".type near_leaf, @function; .globl near_leaf\n"
        "near_leaf: .cfi_startproc; pushq %rcx; .cfi_def_cfa_offset 16; call *nothing(%rip)\n"
        "popq %rcx; .cfi_def_cfa_offset 8; leaq 1(%rdi), %rax; ret\n"
        ".cfi_endproc; .size near_leaf, . - near_leaf");
FORM(jump_far, HEAD "jmp far_leaf");
FORM(jump_if_near, HEAD "testq %rdi, %rdi; jns leaf; xorl %eax, %eax; ret");
FORM(jump_if_far, HEAD "testq %rdi, %rdi; jns far_leaf; xorl %eax, %eax; ret");
FORM(jump_with_carry, HEAD "stc; jmp carry_leaf");
FORM(jump_if_with_carry, HEAD "testq %rdi, %rdi; stc; jns carry_leaf; xorl %eax, %eax; ret");
FORM(jump_to_mark, HEAD "jmp marked_leaf");
FORM(jump_to_tiny, HEAD "jmp tiny");

/* Jumps through each register. */
#define THROUGH(reg) FORM(through_##reg, HEAD "leaq leaf(%rip), %" #reg "; jmp *%" #reg);
THROUGH(rax)
THROUGH(rcx)
THROUGH(rdx)
THROUGH(rsi)
THROUGH(r8)
THROUGH(r9)
THROUGH(r10)
THROUGH(r11)
FORM(through_mark, HEAD "leaq marked_leaf(%rip), %rax; notrack jmp *%rax");
FORM(through_carry, HEAD "leaq carry_leaf(%rip), %rax; stc; jmp *%rax");
FORM(through_tiny, HEAD "leaq tiny(%rip), %rax; jmp *%rax");

/* Jumps through memory. */
FORM(through_slot, HEAD "jmp *leaf_slot(%rip)");
FORM(through_bound_slot, HEAD "bnd jmp *leaf_slot(%rip)");
FORM(through_base, HEAD "leaq leaf_table(%rip), %rcx; jmp *8(%rcx)");
FORM(through_high_base, HEAD "leaq leaf_table(%rip), %r9; notrack jmp *16(%r9)");
FORM(through_index, HEAD "leaq leaf_table(%rip), %r8; movl $3, %r10d; jmp *(%r8,%r10,8)");

/* Jumps to another module. */
FORM(to_linkage_table, HEAD "jmp library_leaf@plt");
FORM(to_import, HEAD "jmp *library_leaf@gotpcrel(%rip)");

/* A jump from a part of the function that lies elsewhere (.cold). */
FORM(from_cold_part, HEAD "testq %rdi, %rdi; jns from_cold_part.cold; xorl %eax, %eax; ret");
__asm__(".section .text.unlikely, \"ax\", @progbits; .type from_cold_part.cold, @function\n"
        "from_cold_part.cold: .cfi_startproc; pushq %rbx; .cfi_def_cfa_offset 16\n"
        "popq %rbx; .cfi_def_cfa_offset 8; jmp leaf\n"
        ".cfi_endproc; .size from_cold_part.cold, . - from_cold_part.cold; .text");

/* These functions have too few bytes for long jumps to stubs. Their patches need islands. */
__asm__(".section .text.packed, \"ax\", @progbits; .p2align 4\n"
        ".type tiny, @function; .globl tiny\n"
        "tiny: .cfi_startproc; leal 1(%rdi), %eax; ret; .cfi_endproc; .size tiny, . - tiny\n"
        ".type packed, @function; .globl packed\n"
        "packed: .cfi_startproc; nop; jmp packed_leaf; .cfi_endproc; .size packed, . - packed\n"
        ".type packed_leaf, @function; .globl packed_leaf\n"
        "packed_leaf: .cfi_startproc; pushq %rcx; .cfi_def_cfa_offset 16; call *nothing(%rip)\n"
        "popq %rcx; .cfi_def_cfa_offset 8; leaq 1(%rdi), %rax; ret\n"
        ".cfi_endproc; .size packed_leaf, . - packed_leaf; .fill 64, 1, 0xcc\n"
        ".section .text.far, \"ax\", @progbits; .fill 256, 1, 0xcc; .p2align 4\n"
        ".type far_leaf, @function; .globl far_leaf\n"
        "far_leaf: .cfi_startproc; pushq %rcx; .cfi_def_cfa_offset 16; call *nothing(%rip)\n"
        "popq %rcx; .cfi_def_cfa_offset 8; leaq 1(%rdi), %rax; ret\n"
        ".cfi_endproc; .size far_leaf, . - far_leaf; .text");
long packed(long x);

/* The target of these jumps is not hooked. The caller's next call must not become a callee of these
 * functions. */
FORM(to_unhooked, HEAD "jmp unhooked_leaf");
FORM(through_unhooked, HEAD "leaq unhooked_leaf(%rip), %rax; jmp *%rax");

static form *const forms[] = {
    jump_near,          jump_near_at_once,
    jump_far,           jump_if_near,
    jump_if_far,        jump_to_mark,
    jump_to_tiny,       through_rax,
    through_rcx,        through_rdx,
    through_rsi,        through_r8,
    through_r9,         through_r10,
    through_r11,        through_mark,
    through_tiny,       through_slot,
    through_bound_slot, through_base,
    through_high_base,  through_index,
    to_linkage_table,   to_import,
    from_cold_part,     packed,
    to_unhooked,        through_unhooked,
    jump_with_carry,    jump_if_with_carry,
    through_carry,
};

__attribute__((noinline)) static long call_all(long sum)
{
    for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        sum += forms[i](sum & 0xffff);
        sum += leaves[i & 3](i);
    }
    return sum;
}

int main(void)
{
    long sum = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        sum = call_all(sum) & 0xffffff;
    }
    printf("%ld\n", sum);
    return 0;
}
