#include <stdbool.h>
#include <stdio.h>
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
typedef enum color { RED, GREEN = 5, BLUE = -3 } color;
static const char *name_of(color of)
{
    return of == RED ? "RED" : of == GREEN ? "GREEN" : "BLUE";
}
