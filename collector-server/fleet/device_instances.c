#include "collector-server/fleet/device_instances.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETURNS_OF_A_COPY = 2, /* polls of one process after polls of another one, which prove a copy */
    NEWS_MS = 600000
};

typedef struct process {
    int64_t instance;
    unsigned returns; /* polls that came after a poll of another process */
    uint64_t polled_ms;
} process;

typedef struct device {
    int64_t device_id;
    int64_t last_instance; /* number of the process that polled last */
    uint64_t proved_ms;    /* time of the last proof; 0: never */
    size_t count;
    process processes[SJ_DEVICE_INSTANCES_MAX];
} device;

struct sj_device_instances {
    device *devices; /* sorted by device_id */
    size_t count, capacity;
};

sj_device_instances *sj_device_instances_new(void)
{
    return calloc(1, sizeof(sj_device_instances));
}

void sj_device_instances_free(sj_device_instances *instances)
{
    if (instances != NULL) {
        free(instances->devices);
        free(instances);
    }
}

/* Returns the index of the first device whose id is not below `device_id`. */
static size_t find_place(const sj_device_instances *instances, int64_t device_id)
{
    size_t first = 0;
    size_t end = instances->count;
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        if (instances->devices[middle].device_id < device_id) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

static bool reserve_one(sj_device_instances *instances)
{
    if (instances->count < instances->capacity) {
        return true;
    }
    const size_t wanted = instances->capacity == 0 ? 64 : instances->capacity * 2;
    device *moved = realloc(instances->devices, wanted * sizeof(*moved));
    if (moved == NULL) {
        return false;
    }
    instances->devices = moved;
    instances->capacity = wanted;
    return true;
}

/* Returns the device's entry; adds one if needed. Returns NULL if out of memory. */
static device *take_device(sj_device_instances *instances, int64_t device_id)
{
    const size_t place = find_place(instances, device_id);
    if (place < instances->count && instances->devices[place].device_id == device_id) {
        return &instances->devices[place];
    }
    if (!reserve_one(instances)) {
        return NULL;
    }
    device *made = &instances->devices[place];
    memmove(made + 1, made, (instances->count - place) * sizeof(*made));
    instances->count++;
    *made = (device){.device_id = device_id};
    return made;
}

/* Returns the entry of a process; adds one if needed. `*is_new`: it was added. A new entry may
 * replace the one that polled least recently. */
static process *take_process(device *polled, int64_t instance, bool *is_new)
{
    process *oldest = &polled->processes[0];
    *is_new = false;
    for (size_t i = 0; i < polled->count; i++) {
        process *one = &polled->processes[i];
        if (one->instance == instance) {
            return one;
        }
        oldest = one->polled_ms < oldest->polled_ms ? one : oldest;
    }
    *is_new = true;
    process *made =
        polled->count < SJ_DEVICE_INSTANCES_MAX ? &polled->processes[polled->count++] : oldest;
    *made = (process){.instance = instance};
    return made;
}

sj_instance_verdict sj_device_instances_note(sj_device_instances *instances, int64_t device_id,
                                             int64_t instance, uint64_t now_ms)
{
    bool is_new = false;
    sj_instance_verdict verdict = {0};
    device *polled = take_device(instances, device_id);
    if (polled == NULL) {
        return verdict;
    }
    process *one = take_process(polled, instance, &is_new);
    one->returns += !is_new && polled->last_instance != instance;
    one->polled_ms = now_ms;
    const bool is_copied = polled->proved_ms != 0 && now_ms - polled->proved_ms < NEWS_MS;
    /* A daemon without a number proves nothing. All such daemons look the same, as before an update
     * and after its rollback. */
    verdict.is_proof = !is_new && instance != 0 && polled->last_instance != instance &&
                       one->returns >= RETURNS_OF_A_COPY;
    verdict.is_news = verdict.is_proof && !is_copied;
    verdict.is_restart = is_new && !is_copied;
    polled->last_instance = instance;
    polled->proved_ms = verdict.is_proof ? now_ms : polled->proved_ms;
    return verdict;
}
