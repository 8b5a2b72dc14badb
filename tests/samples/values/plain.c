#include <stdio.h>
#ifdef __clang__
__attribute__((noinline))
#else
__attribute__((noipa))
#endif
int open_file(const char *path, int flags, double share)
{
    printf("%s %d %g\n", path, flags, share);
    return flags + 1;
}
int main(void)
{
    return open_file("/etc/passwd", 7, 0.5) - 8;
}
