#include <stdio.h>
static inline __attribute__((always_inline)) int folded_in(int x)
{
    return x * 3 + 1;
}
__attribute__((noinline)) static int hidden_name(int x)
{
    return folded_in(x) ^ (x << 2);
}
__attribute__((noinline)) static int outer(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += hidden_name(i);
    return sum;
}
int main(void)
{
    printf("%d\n", outer(500) & 1);
    return 0;
}
