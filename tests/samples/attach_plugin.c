/* A library that attach_open loads and unloads on command. */
double plugin_work(double value);
double plugin_step(double value);

__attribute__((noinline)) double plugin_step(double value)
{
    return value * 1.5 + 1;
}

double plugin_work(double value)
{
    for (int i = 0; i < 250; i++) {
        value = plugin_step(value) / 1.4;
    }
    return value;
}
