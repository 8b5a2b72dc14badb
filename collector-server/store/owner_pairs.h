/* Which release takes back which retain: what is left over is why an object died too early, or
 * never.
 *
 * Events of one object do not say whom they belong to, so pairs are found from the surest on: of
 * one function first, then of one class, then the nearest before. */
#ifndef SJ_COLLECTOR_SERVER_STORE_OWNER_PAIRS_H
#define SJ_COLLECTOR_SERVER_STORE_OWNER_PAIRS_H

#include <stddef.h>

enum { SJ_OWNER_EVENTS_MAX = 64 };

typedef struct sj_owner_event {
    const char *event; /* allocation and retain give an owner, release and autorelease take one */
    const char *function; /* the program's own that did it; "": not known */
    int partner;          /* number of the event that it pairs with; -1: none */
} sj_owner_event;

/* sj_pair_owners sets the partners of `count` events in order of time. Thread-safe. */
void sj_pair_owners(sj_owner_event *events, size_t count);

#endif
