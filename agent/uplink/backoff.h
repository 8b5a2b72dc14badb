/* Pauses between attempts to connect. They double from 0.1 s to 5 s. Each pause is shortened by a
 * random part of up to a half, so that a thousand devices do not reconnect at the same moment. */
#ifndef SJ_AGENT_UPLINK_BACKOFF_H
#define SJ_AGENT_UPLINK_BACKOFF_H

#include <stdint.h>

enum { SJ_BACKOFF_MIN_MS = 100, SJ_BACKOFF_MAX_MS = 5000 };

typedef struct sj_backoff {
    uint32_t ceiling_ms; /* Upper limit of the last pause. 0: there was no pause yet. */
    uint64_t random;     /* State of the generator; the owner seeds it. */
} sj_backoff;

/* Returns the length of the next pause. */
uint32_t sj_backoff_next_ms(sj_backoff *backoff);

/* Makes the next pause short again. Call it after a connection has worked. */
void sj_backoff_reset(sj_backoff *backoff);

#endif
