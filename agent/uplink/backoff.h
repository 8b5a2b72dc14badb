/* The pauses between attempts to connect: they double from 0.1 s to 5 s, and each is cut by up to a
 * half at random, so that a thousand devices do not come back in one moment. */
#ifndef SJ_AGENT_UPLINK_BACKOFF_H
#define SJ_AGENT_UPLINK_BACKOFF_H

#include <stdint.h>

enum { SJ_BACKOFF_MIN_MS = 100, SJ_BACKOFF_MAX_MS = 5000 };

typedef struct sj_backoff {
    uint32_t ceiling_ms; /* of the last pause; 0: none yet */
    uint64_t random;     /* state of the generator; seeded by the owner */
} sj_backoff;

/* sj_backoff_next_ms returns how long to pause now. */
uint32_t sj_backoff_next_ms(sj_backoff *backoff);

/* sj_backoff_reset says that the connection was worth it: the next pause is short again. */
void sj_backoff_reset(sj_backoff *backoff);

#endif
