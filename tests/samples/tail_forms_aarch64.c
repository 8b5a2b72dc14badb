/* The AArch64 version of tail_forms.c. */
#include <stdio.h>

enum { ROUNDS = 100 };

long leaf(long x);
long flag_leaf(long x);
long marked_leaf(long x);
long signing_leaf(long x);
long unhooked_leaf(long x);

typedef long form(long x);

#define FUNCTION(name, code)                                                                       \
    long name(long x);                                                                             \
    __asm__(".text; .p2align 4; .type " #name ", %function; .globl " #name "\n" #name              \
            ": .cfi_startproc\n" code "\n.cfi_endproc; .size " #name ", . - " #name)

FUNCTION(leaf, "add x0, x0, #1; ret");
FUNCTION(flag_leaf, "cinc x0, x0, cs; ret");
FUNCTION(marked_leaf, "hint #34; add x0, x0, #1; ret");
FUNCTION(signing_leaf, "hint #25; add x0, x0, #1; hint #29; ret");
FUNCTION(unhooked_leaf, "add x0, x0, #1; ret");

form *const leaf_table[4] __attribute__((visibility("hidden"))) = {leaf, leaf, leaf, leaf};

#define SET_CARRY "cmp xzr, xzr; "
FUNCTION(jump_near, "mov x1, x0; b leaf");
FUNCTION(jump_at_once, "b leaf");
FUNCTION(jump_if, "cmp x0, #0; b.ge leaf; mov x0, #0; ret");
FUNCTION(jump_if_bit, "tbz x0, #63, leaf; mov x0, #0; ret");
FUNCTION(jump_with_flags, SET_CARRY "b flag_leaf");
FUNCTION(jump_if_with_flags, SET_CARRY "b.cs flag_leaf; mov x0, #0; ret");
FUNCTION(jump_to_mark, "mov x1, x0; b marked_leaf");
FUNCTION(jump_to_signing, "mov x1, x0; b signing_leaf");

#define THROUGH(reg)                                                                               \
    FUNCTION(through_##reg, "adrp " #reg ", leaf; add " #reg ", " #reg ", :lo12:leaf; br " #reg)
THROUGH(x1);
THROUGH(x2);
THROUGH(x9);
THROUGH(x15);
THROUGH(x16);
THROUGH(x17);
FUNCTION(through_x0, "mov x1, x0; adrp x0, leaf_of_x1; add x0, x0, :lo12:leaf_of_x1; br x0");
FUNCTION(leaf_of_x1, "add x0, x1, #1; ret");
FUNCTION(through_table,
         "adrp x9, leaf_table; add x9, x9, :lo12:leaf_table; ldr x9, [x9, #16]; br x9");
FUNCTION(through_flags, SET_CARRY "adrp x9, flag_leaf; add x9, x9, :lo12:flag_leaf; br x9");
FUNCTION(through_mark, "adrp x16, marked_leaf; add x16, x16, :lo12:marked_leaf; br x16");

/* The target of these jumps is not hooked. The caller's next call must not become a callee of these
 * functions. */
FUNCTION(to_unhooked, "mov x1, x0; b unhooked_leaf");
FUNCTION(through_unhooked, "adrp x9, unhooked_leaf; add x9, x9, :lo12:unhooked_leaf; br x9");

static form *const forms[] = {
    jump_near,          jump_at_once,  jump_if,         jump_if_bit, jump_with_flags,
    jump_if_with_flags, jump_to_mark,  jump_to_signing, through_x0,  through_x1,
    through_x2,         through_x9,    through_x15,     through_x16, through_x17,
    through_table,      through_flags, through_mark,    to_unhooked, through_unhooked,
};

__attribute__((noinline)) static long call_all(long sum)
{
    for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        sum += forms[i](sum & 0xffff);
        sum += leaf_table[i & 3](i);
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
