/* A module that library_calls loads. It calls the library itself. If it has a constructor, it does
 * so there, too. */
#include "library_called.h"

static int at_start;

#ifndef WITHOUT_CONSTRUCTOR
__attribute__((constructor)) static void begin(void)
{
    at_start += called_add(1, 2);
}

__attribute__((constructor)) static void go_on(void)
{
    at_start += called_add(3, 4);
}
#endif

__attribute__((weak)) int called_never(void); /* no module defines it */

long library_plugin_run(long times);

long library_plugin_run(long times)
{
    long sum = at_start;
    for (long n = 0; n < times; n++) {
        sum += called_add((int)n, 1);
    }
    return times < 0 ? called_never() : sum;
}
