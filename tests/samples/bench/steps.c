/* Makes as many short calls as its argument says. */
#include <stdlib.h>

__attribute__((noinline)) int step(int n)
{
    __asm__ volatile("nop;nop;nop;nop;nop;nop");
    return n * 3 + 1;
}

int main(int c, char **v)
{
    int s = 0;
    for (long i = atol(v[1]); i > 0; i--) {
        s = step(s);
    }
    return s == c;
}
