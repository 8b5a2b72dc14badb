/* Pairs each release with the retain that it balances. A release without a partner explains why an
 * object was freed too early; a retain without a partner, why it was never freed.
 *
 * The events of one object do not say which owner they belong to. So pairs are made in order of
 * certainty: first inside one function, then inside one class, then with the nearest earlier
 * event. */
#ifndef SJ_COLLECTOR_SERVER_STORE_OWNER_PAIRS_H
#define SJ_COLLECTOR_SERVER_STORE_OWNER_PAIRS_H

#include <stddef.h>

enum { SJ_OWNER_EVENTS_MAX = 64 };

typedef struct sj_owner_event {
    const char *event; /* allocation and retain add an owner; release and autorelease remove one */
    const char *function; /* the program's own function that caused the event; "" if unknown */
    int partner;          /* index of the paired event; -1: none */
} sj_owner_event;

/* Sets the partners of `count` events, which are in order of time. Thread-safe. */
void sj_pair_owners(sj_owner_event *events, size_t count);

#endif
