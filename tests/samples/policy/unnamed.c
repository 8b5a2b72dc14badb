/* Functions whose names are stripped: `often` is called 3,000 times, `rarely` ten times. */
#include <stdio.h>

__attribute__((noinline)) int often(int value)
{
    __asm__ volatile("");
    return value + 1;
}

__attribute__((noinline)) int rarely(int value)
{
    __asm__ volatile("");
    return value + 2;
}

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 3000; i++) {
        sum = often(sum);
    }
    for (int i = 0; i < 10; i++) {
        sum += rarely(i);
    }
    printf("%d\n", sum);
    return 0;
}
