/* A module that library_calls loads: it calls the library itself, in its constructor already. */
#include "library_called.h"

static int at_start;

__attribute__((constructor)) static void begin(void)
{
    at_start = called_add(1, 2);
}

long library_plugin_run(long times);

long library_plugin_run(long times)
{
    long sum = at_start;
    for (long n = 0; n < times; n++) {
        sum += called_add((int)n, 1);
    }
    return sum;
}
