/* longjmp over several frames, out of recursion into its own outer activation, and repeatedly. */
#include "truth.h"

#include <setjmp.h>

static jmp_buf target;
static volatile int rounds;

SAMPLE void s_jump(int n)
{
    TRUTH_ENTER();
    if (n == 0) {
        longjmp(target, 1);
    }
    s_jump(n - 1);
    TRUTH_LEAVE();
}

SAMPLE int s_after(int n)
{
    TRUTH_ENTER();
    const int result = n + 1;
    TRUTH_LEAVE();
    return result;
}

SAMPLE int s_catch(int n)
{
    TRUTH_ENTER();
    const int depth = truth_depth();
    if (setjmp(target) == 0) {
        s_jump(n);
    } else {
        truth_unwind(depth);
    }
    const int result = s_after(n);
    TRUTH_LEAVE();
    return result;
}

/* Jumps from a deeper activation of this function back to an outer one. */
SAMPLE int s_own_outer_frame(int n)
{
    TRUTH_ENTER();
    volatile int result = 0;
    if (n == 0) {
        const int depth = truth_depth();
        if (setjmp(target) == 0) {
            result = s_own_outer_frame(1);
        } else {
            truth_unwind(depth);
            result = s_after(7);
        }
    } else if (n < 5) {
        result = s_own_outer_frame(n + 1);
    } else {
        longjmp(target, 1);
    }
    TRUTH_LEAVE();
    return result;
}

int main(void)
{
    for (rounds = 0; rounds < 3; rounds++) {
        s_catch(rounds * 4);
        s_own_outer_frame(0);
    }
    return 0;
}
