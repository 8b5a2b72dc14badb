#include <stdio.h>
#include <stdlib.h>
#define KEPT __attribute__((noipa))
KEPT long deep_fill(char *buffer, int depth)
{
    char below[8];
    if (depth > 1) {
        deep_fill(below, depth - 1);
    }
    return snprintf(buffer, 8, "%07d", depth);
}
KEPT int deep_count(int depth)
{
    volatile int of = depth;
    return depth > 1 ? deep_count(depth - 1) + (of > 0) : of;
}
int main(int count, char **arguments)
{
    char buffer[8];
    const int depth = count > 2 ? atoi(arguments[2]) : 0;
    return arguments[1][0] == 'f' ? deep_fill(buffer, depth) != 7 : deep_count(depth) != depth;
}
