/* Calls that longjmp leaves three times. uftrace records no exits of them. */
#include <setjmp.h>

static jmp_buf place;

__attribute__((noinline)) void deep(int n)
{
    if (n == 0) {
        longjmp(place, 1);
    }
    deep(n - 1);
    __asm__ volatile("");
}

__attribute__((noinline)) void after(void)
{
    __asm__ volatile("");
}

__attribute__((noinline)) void run(void)
{
    if (setjmp(place) == 0) {
        deep(2);
    }
    after();
}

int main(void)
{
    for (int i = 0; i < 3; i++) {
        run();
    }
    return 0;
}
