/* The library that late_caller.c calls. Rules about these calls are added while it runs. */
#include <unistd.h>

__attribute__((noipa)) int late_apart(int number)
{
    return number + 1;
}

__attribute__((noipa)) int late_twice(int number)
{
    return number * 2;
}

__attribute__((noipa)) int late_block(int file, char *line)
{
    return (int)read(file, line, 1) + 4;
}
