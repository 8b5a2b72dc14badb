/* Polls of devices that are not answered yet, because there is no command for the device. Not
 * thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_PARKED_POLLS_H
#define SJ_COLLECTOR_SERVER_FLEET_PARKED_POLLS_H

#include "collector-server/edge/edge.h"

/* Maximum number of waiting polls of one device, each from another process. */
enum { SJ_PARKED_OF_A_DEVICE_MAX = 8 };

typedef struct sj_parked_poll {
    sj_edge_message message; /* only the reply address, without its bytes */
    int64_t device_id;
    int64_t instance; /* number of the daemon's process; 0: it sent none */
    uint64_t last_command;
    uint64_t deadline_ms;
} sj_parked_poll;

typedef struct sj_parked_polls {
    sj_parked_poll *list; /* owned; not sorted */
    size_t count, capacity;
} sj_parked_polls;

/* Adds a copy of `poll`. Returns false if too many polls wait, or if out of memory. */
bool sj_parked_polls_add(sj_parked_polls *polls, const sj_parked_poll *poll);

/* Removes the poll that `poll` replaces, and copies it to `older`. Call it before
 * sj_parked_polls_add. `poll` replaces an earlier poll of the same process: that poll's connection
 * has ended. If there is no such poll, but SJ_PARKED_OF_A_DEVICE_MAX polls of the device wait,
 * `poll` replaces the one with the earliest deadline. Returns false if it replaces nothing. */
bool sj_parked_polls_pop_older(sj_parked_polls *polls, const sj_parked_poll *poll,
                               sj_parked_poll *older);

/* Removes the poll at `index` of `list`. The last poll of the list moves to this index. */
void sj_parked_polls_remove(sj_parked_polls *polls, size_t index);

void sj_parked_polls_deinit(sj_parked_polls *polls);

#endif
