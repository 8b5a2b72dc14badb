/* fork: parent and child both continue to make calls. The child writes its own truth file as lane
 * 1. */
#include "truth.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

SAMPLE int s_work(int n)
{
    TRUTH_ENTER();
    const int result = n <= 0 ? 0 : s_work(n - 1) + 1;
    TRUTH_LEAVE();
    return result;
}

int main(void)
{
    s_work(3);
    const pid_t child = fork();
    if (child == 0) {
        truth_forget();
        truth_lane(1);
        s_work(7);
        exit(0);
    }
    s_work(5);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}
