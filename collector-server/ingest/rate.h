/* Rate limits, per address and in total. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_RATE_H
#define SJ_COLLECTOR_SERVER_INGEST_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* A token bucket that fills by `a_second` per second up to `most`. All zero: full. */
typedef struct sj_rate {
    int64_t empty_ms; /* start of the time in which the bucket, empty at first, filled to its
                       * present contents */
} sj_rate;

/* Consumes a token at the time `now_ms`. Returns false if the bucket is empty. */
static inline bool sj_rate_spend(sj_rate *rate, int64_t now_ms, int64_t a_second, int64_t most)
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
