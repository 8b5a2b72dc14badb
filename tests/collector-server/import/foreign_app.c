/* A program for other tracers: two threads and a child process, which call functions. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int leaf(int n);
int fib(int n);
void *work(void *argument);

int leaf(int n)
{
    return n * 3;
}

int fib(int n)
{
    return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2);
}

void *work(void *argument)
{
    fib(11);
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    fib(9);
    pthread_join(thread, NULL);
    if (fork() == 0) {
        fib(5);
        exit(0);
    }
    wait(NULL);
    return 0;
}
