/* Threads that start and end. Some end by pthread_exit deep in their calls. */
#include "truth.h"

#include <pthread.h>
#include <stdint.h>

enum { THREADS = 24 };

SAMPLE int s_count(int n)
{
    TRUTH_ENTER();
    int result = 0;
    if (n > 0) {
        result = s_count(n - 1) + 1;
    }
    TRUTH_LEAVE();
    return result;
}

SAMPLE void s_leave_thread(int n)
{
    TRUTH_ENTER();
    if (n == 0) {
        truth_unwind(0);
        pthread_exit(NULL);
    }
    s_leave_thread(n - 1);
    TRUTH_LEAVE();
}

SAMPLE void s_thread_work(int number)
{
    TRUTH_ENTER();
    for (int i = 0; i < 20; i++) {
        s_count(number % 7 + i);
    }
    if (number % 3 == 0) {
        s_leave_thread(4);
    }
    TRUTH_LEAVE();
}

static void *run(void *argument)
{
    const int number = (int)(intptr_t)argument;
    truth_lane(1 + number);
    s_thread_work(number);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int round = 0; round < THREADS; round += 6) {
        for (int i = round; i < round + 6; i++) {
            pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i);
        }
        s_count(5);
        for (int i = round; i < round + 6; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    return 0;
}
