/* A program for other profilers: two threads, recursion, and a function with several callers. */
#include <pthread.h>
#include <stddef.h>

__attribute__((noinline)) static int leaf(volatile int n)
{
    return n * 3;
}

__attribute__((noinline)) static int fib(volatile int n)
{
    return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2);
}

__attribute__((noinline)) static int is_odd(volatile int n);

__attribute__((noinline)) static int is_even(volatile int n)
{
    return n == 0 ? 1 : is_odd(n - 1) + 0 * leaf(n);
}

__attribute__((noinline)) static int is_odd(volatile int n)
{
    return n == 0 ? 0 : is_even(n - 1) + 0 * leaf(n);
}

static void *work(void *argument)
{
    fib(7);
    leaf(is_even(6));
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    work(NULL);
    return leaf(0);
}
