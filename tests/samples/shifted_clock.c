/* Preloaded: the real-time clock is SHIFT_S seconds off, as on a device whose clock was never set;
 * when SHIFT_FILE names a file, only once that is there, as on one whose clock is set meanwhile. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, now);
    const char *shift = getenv("SHIFT_S");
    const char *file = getenv("SHIFT_FILE");
    const int error = errno;
    if (result == 0 && clock == CLOCK_REALTIME && shift != NULL &&
        (file == NULL || access(file, F_OK) == 0)) {
        now->tv_sec += atol(shift);
    }
    errno = error;
    return result;
}
