/* Recursion a million levels deep (needs `ulimit -s unlimited` or its own big stack). */
#include "truth.h"

#include <pthread.h>
#include <stdlib.h>

SAMPLE int s_down(int n)
{
    TRUTH_ENTER();
    const int result = n == 0 ? 0 : s_down(n - 1) + 1;
    TRUTH_LEAVE();
    return result;
}

static void *run(void *argument)
{
    truth_lane(1);
    (void)argument;
    return s_down(1000000) == 1000000 ? NULL : "wrong";
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 30);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, run, NULL) != 0) {
        return 2;
    }
    void *result = NULL;
    pthread_join(thread, &result);
    return result == NULL ? 0 : 1;
}
