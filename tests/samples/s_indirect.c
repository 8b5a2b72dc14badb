/* Calls through pointers, callbacks from libc, big switches, variadic and many-argument calls,
 * results of every register class, and functions that never return. */
#include "truth.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct big {
    long values[9];
};

SAMPLE int s_compare(const void *left, const void *right)
{
    TRUTH_ENTER();
    const int result = *(const int *)left - *(const int *)right;
    TRUTH_LEAVE();
    return result;
}

SAMPLE long s_switch(int kind, long value)
{
    TRUTH_ENTER();
    long result = 0;
    switch (kind) {
    case 0:
        result = value + 1;
        break;
    case 1:
        result = value * 3;
        break;
    case 2:
        result = value - 7;
        break;
    case 3:
        result = value ^ 0x55;
        break;
    case 4:
        result = value << 2;
        break;
    case 5:
        result = value / 3;
        break;
    case 6:
        result = ~value;
        break;
    case 7:
        result = value % 11;
        break;
    case 8:
        result = value * value;
        break;
    default:
        result = -value;
        break;
    }
    TRUTH_LEAVE();
    return result;
}

SAMPLE double s_variadic(int count, ...)
{
    TRUTH_ENTER();
    va_list arguments;
    va_start(arguments, count);
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += i % 2 != 0 ? va_arg(arguments, double) : va_arg(arguments, int);
    }
    va_end(arguments);
    TRUTH_LEAVE();
    return sum;
}

SAMPLE struct big s_by_value(struct big in, int a, int b, int c, int d, int e, int f, int g, int h)
{
    TRUTH_ENTER();
    in.values[0] += a + b + c + d + e + f + g + h;
    TRUTH_LEAVE();
    return in;
}

SAMPLE long double s_long_double(long double a, double b, float c)
{
    TRUTH_ENTER();
    const long double result = a * b + c;
    TRUTH_LEAVE();
    return result;
}

SAMPLE void s_exit(int code)
{
    TRUTH_ENTER();
    exit(code);
}

int main(void)
{
    int numbers[] = {5, 3, 9, 1, 7, 2, 8};
    qsort(numbers, sizeof(numbers) / sizeof(*numbers), sizeof(*numbers), s_compare);
    long sum = 0;
    long (*volatile pointer)(int, long) = s_switch;
    for (int i = 0; i < 11; i++) {
        sum += pointer(i, sum + i);
    }
    struct big big = {{1, 2, 3}};
    big = s_by_value(big, 1, 2, 3, 4, 5, 6, 7, 8);
    const double variadic = s_variadic(4, 1, 2.5, 3, 4.5);
    const long double product = s_long_double(2.0L, 3.0, 0.5f);
    s_exit(variadic == 11.0 && product == 6.5L && big.values[0] == 37 && sum != 0 ? 0 : 1);
}
