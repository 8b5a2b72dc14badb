/* One function does as much work as the argument says. The other always does the same. */
#include <stdlib.h>

volatile unsigned sink;

__attribute__((noinline)) static void worker(long n)
{
    for (long i = 0; i < n; i++) {
        sink += 1;
    }
}

__attribute__((noinline)) static void other(void)
{
    for (int i = 0; i < 2000; i++) {
        sink += 1;
    }
}

int main(int c, char **v)
{
    for (int i = 0; i < 200; i++) {
        worker(atol(v[c - 1]));
        other();
    }
    return 0;
}
