/* A channel to one of several collectors. Each session belongs to one collector: the first in the
 * order of the list that replies when the session's first frame is to be sent. That choice is
 * stored beside the spool (spool_collector.h). From then on, all frames of the session wait for
 * this collector, however long it does not reply. So no two collectors store parts of one session.
 * The next session again begins with the first collector of the list.
 *
 * Until a collector is chosen: if a collector does not reply for `away_ms`, the channel tries the
 * next one in the list. After each pass over the list this time doubles, up to 30 s. */
#ifndef SJ_AGENT_UPLINK_CHOSEN_CHANNEL_H
#define SJ_AGENT_UPLINK_CHOSEN_CHANNEL_H

#include "agent/uplink/channel.h"

#include <stddef.h>

enum { SJ_COLLECTORS_MAX = 4 };

typedef struct sj_collector_place {
    const char *url;
    const char *certificate; /* PEM, for tls+tcp://. NULL: none. */
    sj_slice hello;          /* A whole HELLO frame with this collector's token. */
} sj_collector_place;

/* sj_channel_options.context of this channel. The channel copies it. */
typedef struct sj_collector_choice {
    const sj_channel_kind *kind;      /* The kind of the connections. */
    const sj_collector_place *places; /* At most SJ_COLLECTORS_MAX, in order of preference. */
    size_t count;
    const char *directory; /* Directory of the session's spool. */
    uint32_t away_ms;      /* 0: 2 s. */
} sj_collector_choice;

/* Ignores the address and the certificate of its options. Replaces each HELLO frame by the one for
 * the current collector. */
extern const sj_channel_kind sj_channel_chosen;

#endif
