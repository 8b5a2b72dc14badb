/* Polls of devices that wait for a command. One thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_PARKED_POLLS_H
#define SJ_COLLECTOR_SERVER_FLEET_PARKED_POLLS_H

#include "collector-server/edge/edge.h"

/* Polls of one device, each of another process, that wait at once. */
enum { SJ_PARKED_OF_A_DEVICE_MAX = 8 };

typedef struct sj_parked_poll {
    sj_edge_message message; /* without its bytes: the way back only */
    int64_t device_id;
    int64_t instance; /* of the daemon's process; 0: it sent none */
    uint64_t last_command;
    uint64_t deadline_ms;
} sj_parked_poll;

typedef struct sj_parked_polls {
    sj_parked_poll *list; /* owned; in no order */
    size_t count, capacity;
} sj_parked_polls;

/* Adds a copy of `poll`. Returns false if too many wait, or if out of memory. */
bool sj_parked_polls_add(sj_parked_polls *polls, const sj_parked_poll *poll);

/* Removes the poll that a new one of the same device replaces, and copies it to `older`: one of the
 * same process, whose connection is gone, or the one that has waited longest of
 * SJ_PARKED_OF_A_DEVICE_MAX. Returns false if there is none. */
bool sj_parked_polls_take_older(sj_parked_polls *polls, const sj_parked_poll *poll,
                                sj_parked_poll *older);

/* Removes a poll of `list`; the last one takes its place. */
void sj_parked_polls_remove(sj_parked_polls *polls, size_t index);

void sj_parked_polls_deinit(sj_parked_polls *polls);

#endif
