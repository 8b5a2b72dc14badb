/* The types and macros that the functions of generated signatures use. */
#include <stdbool.h>
#include <stdio.h>
#ifdef __clang__
#define NOT_INLINED __attribute__((noinline))
#else
#define NOT_INLINED __attribute__((noipa))
#endif

typedef struct large {
    double a;
    long b;
    double c;
} large;
