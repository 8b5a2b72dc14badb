/* Ends while nested calls are open. `sojourn report` counts them. */
#include <stdlib.h>

__attribute__((noipa)) int down(int n)
{
    if (n == 0) {
        abort();
    }
    return down(n - 1) + 1;
}

__attribute__((noipa)) int leaf(int n)
{
    return n;
}

int main(void)
{
    return leaf(0) + down(9);
}
