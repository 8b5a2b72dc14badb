#include "collector-server/fleet/device_instances.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETURNS_OF_A_COPY = 2, /* so many returns of one process prove a copy */
    NEWS_MS = 600000,
    SILENT_MS = 120000 /* more than twice the time between the polls of a process */
};

typedef struct process {
    int64_t instance;
    unsigned returns; /* polls that came after a poll of another process */
    uint64_t polled_ms;
} process;

typedef struct device {
    int64_t device_id;
    int64_t last_instance; /* number of the process that polled last */
    bool has_polled;       /* `last_instance` is set */
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
static device *find_or_add_device(sj_device_instances *instances, int64_t device_id)
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

/* Returns the entry of a process, or NULL if it has none. */
static process *find_process(device *polled, int64_t instance)
{
    for (size_t i = 0; i < polled->count; i++) {
        if (polled->processes[i].instance == instance) {
            return &polled->processes[i];
        }
    }
    return NULL;
}

/* Adds an entry. If all are in use, replaces the one whose poll is oldest, unless that poll is
 * newer than SILENT_MS. Then it returns NULL: the remembered processes prove the copy. Replacing
 * a polling process would let no process return if there are more copies than entries. */
static process *add_process(device *polled, int64_t instance, uint64_t now_ms)
{
    process *place = polled->count < SJ_DEVICE_INSTANCES_MAX ? &polled->processes[polled->count++]
                                                             : &polled->processes[0];
    for (size_t i = 0; i < polled->count; i++) {
        place = polled->processes[i].polled_ms < place->polled_ms ? &polled->processes[i] : place;
    }
    if (place->polled_ms != 0 && now_ms - place->polled_ms < SILENT_MS) {
        return NULL;
    }
    *place = (process){.instance = instance};
    return place;
}

/* Notes a poll of a process. Returns how many polls of the process came after a poll of another
 * process, or 0 if this poll did not. `*is_new` is true if the process is unknown. */
static unsigned count_returns(device *polled, int64_t instance, uint64_t now_ms, bool *is_new)
{
    const bool is_again = polled->last_instance == instance && polled->has_polled;
    process *one = find_process(polled, instance);
    *is_new = one == NULL && !is_again;
    if (one != NULL) {
        one->returns += !is_again;
    } else {
        one = add_process(polled, instance, now_ms);
    }
    if (one == NULL) {
        return 0;
    }
    one->polled_ms = now_ms;
    return is_again ? 0 : one->returns;
}

sj_instance_verdict sj_device_instances_note(sj_device_instances *instances, int64_t device_id,
                                             int64_t instance, uint64_t now_ms)
{
    bool is_new = false;
    sj_instance_verdict verdict = {0};
    device *polled = find_or_add_device(instances, device_id);
    if (polled == NULL) {
        return verdict;
    }
    const unsigned returns = count_returns(polled, instance, now_ms, &is_new);
    const bool is_copied = polled->proved_ms != 0 && now_ms - polled->proved_ms < NEWS_MS;
    /* Instance 0 proves nothing: all daemons that send no number share it, so a daemon that is
     * updated and rolled back returns to it. */
    verdict.is_proof = instance != 0 && returns >= RETURNS_OF_A_COPY;
    verdict.is_news = verdict.is_proof && !is_copied;
    verdict.is_restart = is_new && !is_copied;
    polled->last_instance = instance;
    polled->has_polled = true;
    polled->proved_ms = verdict.is_proof ? now_ms : polled->proved_ms;
    return verdict;
}
