#include <stdio.h>
#include <stdlib.h>
#define PART __attribute__((noipa))
PART long leaf(long n)
{
    return n * 5 + (n >> 3);
}
PART long jumping(long n)
{
    return leaf(n ^ 5);
}
PART long halving(long n)
{
    return n < 1 ? 0 : halving(n / 2) ^ n;
}
int main(int count, char **arguments)
{
    long sum = count;
    for (long i = 0; i < atol(arguments[1]); i++) {
        sum += leaf(i) + jumping(i) + halving(15);
    }
    printf("%ld", sum);
    return 0;
}
