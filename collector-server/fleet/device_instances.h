/* Detects copied device identities: a table of the processes that poll with each identity.
 *
 * A daemon draws a random number when it starts, and sends it with each poll. If polls with two
 * numbers alternate, two daemons have the same identity. A restarted daemon does not cause this:
 * polls with its former number end, except for one that may still be under way.
 *
 * The table is only in memory. It may be lost, because a few polls prove a copy again.
 * Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_DEVICE_INSTANCES_H
#define SJ_COLLECTOR_SERVER_FLEET_DEVICE_INSTANCES_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of remembered processes per device. If the table is full, a new process
 * replaces one that has not polled for two minutes. If all have polled, the new process is not
 * remembered. */
enum { SJ_DEVICE_INSTANCES_MAX = 8 };

typedef struct sj_device_instances sj_device_instances;

typedef struct sj_instance_verdict {
    /* The process polls for the first time, and no copy was proved in the 10 minutes before. */
    bool is_restart;
    bool is_proof; /* this poll proves that another process has the same identity */
    bool is_news;  /* `is_proof`, and no copy was proved in the 10 minutes before */
} sj_instance_verdict;

/* Returns an empty table, which sj_device_instances_free frees; NULL if out of memory. */
sj_device_instances *sj_device_instances_new(void);
void sj_device_instances_free(sj_device_instances *instances);

/* Notes that process `instance` polls for `device_id`. `instance` is the process's random number.
 * It is 0 if the daemon sends none: then its polls never prove a copy. `now_ms` is from a monotonic
 * clock. Returns all false if out of memory. */
sj_instance_verdict sj_device_instances_note(sj_device_instances *instances, int64_t device_id,
                                             int64_t instance, uint64_t now_ms);

#endif
