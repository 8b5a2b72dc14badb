/* A module that is loaded and unloaded repeatedly. */
#if defined(__clang__)
#define KEPT __attribute__((noinline, optnone))
#else
#define KEPT __attribute__((noipa))
#endif

KEPT static long plugin_step(long n)
{
    return n * 2 + 1;
}

long plugin_run(long n);
void plugin_leap(void (*away)(long), long depth);

/* Never returns. The calls that are open here end when the module is unloaded. */
KEPT void plugin_leap(void (*away)(long), long depth)
{
    if (depth == 0) {
        away(plugin_step(1));
    } else {
        plugin_leap(away, depth - 1);
    }
    plugin_step(depth);
}

KEPT long plugin_run(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += plugin_step(i);
    }
    return sum;
}
