/* For tests of map files. With ADDED it is another build. With TABLE it has a variable of 25 ints.
 * With MORE it includes the content of that file. LINKAGE is the linkage of its functions. */
#ifndef LINKAGE
#define LINKAGE
#endif
volatile int sink;
#ifdef TABLE
int table[25] = {1};
#endif
#ifdef MORE
#include MORE
#endif
#ifdef ADDED
__attribute__((noinline)) int added(int n)
{
    for (int i = 0; i < n % 5; i++) {
        sink += i;
    }
    return n;
}
#endif

LINKAGE __attribute__((noinline)) int alpha(int n)
{
    sink = n;
    return sink + 1;
}

LINKAGE __attribute__((noinline)) int beta(int n)
{
    sink = n;
    sink = n * 3;
    return sink + alpha(n);
}

int main(int c, char **v)
{
    (void)v;
    int s = 0;
    for (int i = 0; i < 1000; i++) {
        s += beta(i);
    }
    return s == c;
}
