#include <stdio.h>
#include <stdlib.h>
__attribute__((cold, noipa)) void fail(const char *why)
{
    fputs(why, stderr);
    abort();
}
__attribute__((noipa)) int in_parts(int number, const char *why)
{
    if (number < 0) {
        fail(why);
    }
    return number + 1;
}
int main(int count, char **arguments)
{
    return in_parts(count, "counted") - 2;
}
