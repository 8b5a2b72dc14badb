/* Plain recursion, mutual recursion, several callers of one function. */
#include "truth.h"

SAMPLE static int s_leaf(int n)
{
    TRUTH_ENTER();
    const int result = n * 3 + 1;
    TRUTH_LEAVE();
    return result;
}

SAMPLE int s_odd(int n);

SAMPLE int s_even(int n)
{
    TRUTH_ENTER();
    const int result = n == 0 ? 1 : s_odd(n - 1);
    TRUTH_LEAVE();
    return result;
}

SAMPLE int s_odd(int n)
{
    TRUTH_ENTER();
    const int result = n == 0 ? 0 : s_even(n - 1);
    TRUTH_LEAVE();
    return result;
}

SAMPLE int s_fibonacci(int n)
{
    TRUTH_ENTER();
    int result = n;
    if (n >= 2) {
        result = s_fibonacci(n - 1) + s_fibonacci(n - 2);
    } else {
        result += s_leaf(n) * 0;
    }
    TRUTH_LEAVE();
    return result;
}

int main(void)
{
    return s_fibonacci(12) == 144 && s_even(10) == 1 && s_leaf(1) == 4 ? 0 : 1;
}
