/* The processes that poll with each device's identity.
 *
 * A daemon draws a random number when it starts. If two numbers poll in turn, two daemons have the
 * same identity. A restarted daemon does not cause this: its former number stops polling, except
 * for one poll that may still be under way.
 *
 * The table is only in memory, because a copy shows itself again within two polls. Not thread-safe.
 */
#ifndef SJ_COLLECTOR_SERVER_FLEET_DEVICE_INSTANCES_H
#define SJ_COLLECTOR_SERVER_FLEET_DEVICE_INSTANCES_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of remembered processes per device. A new process replaces one that has not
 * polled for two minutes. If there is none, the new process is not remembered. */
enum { SJ_DEVICE_INSTANCES_MAX = 8 };

typedef struct sj_device_instances sj_device_instances;

typedef struct sj_instance_verdict {
    bool is_restart; /* the process polls for the first time, and the device has no known copy */
    bool is_proof;   /* this poll shows that two processes poll in turn */
    bool is_news;    /* `is_proof`, and the previous proof is at least 10 minutes old */
} sj_instance_verdict;

/* Returns an empty table, which sj_device_instances_free frees; NULL if out of memory. */
sj_device_instances *sj_device_instances_new(void);
void sj_device_instances_free(sj_device_instances *instances);

/* Notes that process `instance` polls for `device_id`. 0 is a daemon that sends no number; its
 * polls never prove a copy. `now_ms` is from a monotonic clock. Returns all false if out of
 * memory. */
sj_instance_verdict sj_device_instances_note(sj_device_instances *instances, int64_t device_id,
                                             int64_t instance, uint64_t now_ms);

#endif
