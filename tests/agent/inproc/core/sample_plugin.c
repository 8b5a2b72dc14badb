/* A module that the sample loads: its constructor already calls the planned function. */
extern long plugin_triple(long a, long b);

long plugin_sum;

__attribute__((constructor)) static void call_in_constructor(void)
{
    for (long i = 0; i < 10; i++) {
        plugin_sum += plugin_triple(i, 1);
    }
}
