/* The other source file of filter_sample. */
int part_add(int value);
int part_local_calls(int rounds);

__attribute__((noinline)) int part_add(int value)
{
    volatile int sum = value;
    sum += 2;
    return sum;
}

__attribute__((noinline)) static int part_hidden(int value)
{
    volatile int sum = value;
    sum += 3;
    return sum;
}

__attribute__((noinline)) int part_local_calls(int rounds)
{
    volatile int sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += part_hidden(i);
    }
    return sum;
}
