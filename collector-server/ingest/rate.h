/* Rates: how often something may happen, for each address and in all. One thread. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_RATE_H
#define SJ_COLLECTOR_SERVER_INGEST_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* A bucket that fills by `a_second` up to `most`. Zeroed is full. */
typedef struct sj_rate {
    int64_t empty_ms; /* when it would have been empty, as things were */
} sj_rate;

/* sj_rate_take takes one at the moment `now_ms`; false: there is none. */
static inline bool sj_rate_take(sj_rate *rate, int64_t now_ms, int64_t a_second, int64_t most)
{
    const int64_t each_ms = 1000 / a_second;
    const int64_t full = now_ms - most * each_ms;
    const int64_t from = rate->empty_ms > full ? rate->empty_ms : full;
    if (from + each_ms > now_ms) {
        return false;
    }
    rate->empty_ms = from + each_ms;
    return true;
}

#endif
