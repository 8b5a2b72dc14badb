/* 2000 chains of three short calls. Each call ends with a jump to the next function. */
volatile int sink;

__attribute__((noinline)) int leaf(int value)
{
    for (int i = 0; i < 20; i++) {
        sink += value;
    }
    return sink;
}

__attribute__((noinline)) int outer(int value)
{
    sink++;
    return leaf(value);
}

__attribute__((noinline)) int again(int value)
{
    sink++;
    return outer(value) + 1;
}

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 2000; i++) {
        sum += again(i);
    }
    return sum == 1;
}
