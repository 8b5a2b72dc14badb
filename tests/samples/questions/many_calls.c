/* Many quick calls, and some slow ones of seven durations. */
#include <time.h>

volatile unsigned sink;

__attribute__((noinline)) static void quick(int x)
{
    sink += x;
}

__attribute__((noinline)) static void slow(int x)
{
    nanosleep(&(struct timespec){0, 100000 * (x % 7 + 1)}, 0);
}

int main(void)
{
    for (int i = 0; i < 30000; i++) {
        quick(i);
        if (i % 1000 == 0) {
            slow(i / 1000);
        }
    }
    return 0;
}
