/* Rate limits, per address and in total. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_RATE_H
#define SJ_COLLECTOR_SERVER_INGEST_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* A token bucket: each event consumes a token. The bucket gets `a_second` tokens per second and
 * holds at most `most`. A zeroed bucket is full. */
typedef struct sj_rate {
    /* The bucket's contents are the tokens that it got since this time. Tokens above `most` do not
     * count. */
    int64_t empty_ms;
} sj_rate;

/* Consumes a token at the time `now_ms`. Returns false if the bucket is empty. `a_second` is 1 to
 * 1000. `now_ms` is from a monotonic clock. */
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
