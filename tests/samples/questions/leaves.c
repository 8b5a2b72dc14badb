/* Ends with exit() while three calls are open. */
#include <stdlib.h>

__attribute__((noinline)) static void inner(int x)
{
    if (x > 40) {
        exit(3);
    }
}

__attribute__((noinline)) static void outer(void)
{
    for (int i = 0;; i++) {
        inner(i);
    }
}

int main(void)
{
    outer();
    return 0;
}
