#include <stdio.h>

__attribute__((noinline)) static int leaf(int n)
{
    volatile int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += i;
    }
    return sum;
}

__attribute__((noinline)) int outer(int n)
{
    return leaf(n) + 1;
}

int main(void)
{
    printf("%d\n", outer(3));
    return 0;
}
