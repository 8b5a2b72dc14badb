// The library of library_calls.cpp. It is not recorded itself.
#include "library_called.h"

#include <cerrno>
#include <csetjmp>
#include <cstdarg>
#include <stdexcept>

int called_add(int a, int b)
{
    return a + b;
}

double called_many(int a, double b, long c, float d, int e, int f, int g, int h, double i, int j,
                   long k)
{
    return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11;
}

called_large called_struct(int seed)
{
    called_large large;
    for (int n = 0; n < 8; n++) {
        large.words[n] = seed * (n + 1);
    }
    return large;
}

long double called_long_double(long double value)
{
    return value * 1.5L;
}

double called_variadic(int count, ...)
{
    va_list list;
    double sum = 0;
    va_start(list, count);
    for (int n = 0; n < count; n++) {
        sum += n % 2 == 0 ? va_arg(list, double) : va_arg(list, int);
    }
    va_end(list);
    return sum;
}

int called_back(int (*back)(int), int value)
{
    return back(value) + 1;
}

void called_throw(int value)
{
    throw std::runtime_error(value % 2 == 0 ? "even" : "odd");
}

void called_jump(void *buffer)
{
    longjmp(*static_cast<jmp_buf *>(buffer), 7);
}

extern "C" int called_perhaps();
int called_perhaps()
{
    return 11;
}

int called_fail()
{
    errno = 42;
    return -1;
}

int called_address()
{
    return 5;
}

void (*called_own_address())()
{
    return reinterpret_cast<void (*)()>(&called_address);
}
