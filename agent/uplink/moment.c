#include "agent/uplink/moment.h"

struct timespec sj_moment_after_ms(int64_t ms)
{
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    moment.tv_sec += ms / 1000;
    moment.tv_nsec += ms % 1000 * 1000000;
    if (moment.tv_nsec >= 1000000000) {
        moment.tv_sec++;
        moment.tv_nsec -= 1000000000;
    }
    return moment;
}

bool sj_moment_is_before(const struct timespec *left, const struct timespec *right)
{
    return left->tv_sec < right->tv_sec ||
           (left->tv_sec == right->tv_sec && left->tv_nsec < right->tv_nsec);
}

bool sj_moment_has_passed(const struct timespec *moment)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return !sj_moment_is_before(&now, moment);
}

int64_t sj_boottime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
