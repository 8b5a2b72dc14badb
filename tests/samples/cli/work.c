/* A call that takes a while. */
__attribute__((noinline)) void work(void)
{
    for (volatile int i = 0; i < 1000000; i++) {
    }
}

int main(void)
{
    work();
    return 0;
}
