#include <cstdio>
#include <string>
#include <string_view>
#include <vector>
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
enum color { RED, GREEN = 5, BLUE = -3 };
enum class shade : short { DARK = -2, LIGHT = 300 };
static const char *name_of(color of)
{
    return of == RED ? "RED" : of == GREEN ? "GREEN" : "BLUE";
}
static const char *name_of(shade of)
{
    return of == shade::DARK ? "DARK" : "LIGHT";
}
struct held { // passed by the address of a copy
    int a;
    double b;
    held(int first, double second) : a(first), b(second)
    {
    }
    held(const held &other) : a(other.a), b(other.b)
    {
    }
    ~held()
    {
        a = 0;
    }
};
