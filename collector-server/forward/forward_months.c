#include "collector-server/forward/forward_months.h"

#include <time.h>

enum { DAY_SECONDS = 86400, YEAR_MONTHS = 12 };

static uint32_t month_of(uint16_t day)
{
    const time_t seconds = (time_t)day * DAY_SECONDS;
    struct tm date = {0};
    gmtime_r(&seconds, &date);
    return (uint32_t)(date.tm_year * YEAR_MONTHS + date.tm_mon);
}

bool sj_forward_months_add(sj_forward_months *months, uint16_t day, size_t most)
{
    const uint32_t month = month_of(day);
    for (size_t i = 0; i < months->count; ++i) {
        if (months->months[i] == month) {
            return true;
        }
    }
    if (months->count >= most || months->count == SJ_FORWARD_MONTHS) {
        return false;
    }
    months->months[months->count++] = month;
    return true;
}
