/* Recursion on a large stack of its own, a million levels deep or as deep as the first argument
 * says. */
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
    const int levels = *(int *)argument;
    truth_lane(1);
    return s_down(levels) == levels ? NULL : "wrong";
}

int main(int count, char **arguments)
{
    int levels = count > 1 ? atoi(arguments[1]) : 1000000;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 30);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, run, &levels) != 0) {
        return 2;
    }
    void *result = NULL;
    pthread_join(thread, &result);
    return result == NULL ? 0 : 1;
}
