#include "agent/drain/thread_times.h"

#include "agent/host/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Maximum length of a step of rest. */
#define LONGEST_REST_NS UINT64_C(10000000000)

enum {
    COUNTERS_BYTES = 128,
    NUMBER_BYTES = 21, /* 64 bits in decimal, and a separator */
    STEP_BYTES = (5 + SJ_SLOT_MEMORY) * NUMBER_BYTES + 3,
    SUMS_BYTES = 128
};

_Static_assert(SUMS_BYTES + SJ_THREAD_STEPS * STEP_BYTES <= 256 * 1024, "a report holds all steps");

sj_status sj_thread_times_read(pid_t pid, uint32_t tid, uint64_t *cpu_ns, uint64_t *ready_ns)
{
    char path[64];
    char text[COUNTERS_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/task/%" PRIu32 "/schedstat", (int)pid, tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return SJ_ENOTFOUND;
    }
    const ssize_t size = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (size <= 0) {
        return SJ_ENOTFOUND;
    }
    text[size] = '\0';
    return sscanf(text, "%" SCNu64 " %" SCNu64, cpu_ns, ready_ns) == 2 ? SJ_OK : SJ_ENOTFOUND;
}

static void add_step(sj_thread_times *times, uint64_t thread, uint64_t from_ns, uint64_t to_ns,
                     const sj_thread_counters *used)
{
    if (to_ns <= from_ns || times->count == SJ_THREAD_STEPS) {
        return;
    }
    times->steps[times->count++] = (sj_thread_step){
        .thread = thread, .from_ns = from_ns, .length_ns = to_ns - from_ns, .used = *used};
    times->cpu_ns += used->cpu_ns;
    times->ready_ns += used->ready_ns;
    times->watched_ns += to_ns - from_ns;
}

/* True if there is no space for the two steps that one reading can add. */
static bool is_full(const sj_thread_times *times)
{
    return times->count + 2 > SJ_THREAD_STEPS;
}

/* Raises the memory counters to the previous ones. A counter may decrease when an entry is
 * reassigned. Bytes reported in an earlier step must not be reported again. */
static void keep_most(sj_thread_counters *now, const sj_thread_counters *before)
{
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        now->memory[i] = now->memory[i] > before->memory[i] ? now->memory[i] : before->memory[i];
    }
}

/* Returns what was used between two readings. */
static sj_thread_counters used_between(const sj_thread_counters *before,
                                       const sj_thread_counters *now)
{
    sj_thread_counters used = {.cpu_ns = now->cpu_ns - before->cpu_ns,
                               .ready_ns = now->ready_ns - before->ready_ns,
                               .has_memory = now->has_memory};
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        used.memory[i] = now->memory[i] - before->memory[i];
    }
    return used;
}

/* Limits `used` to the time that is available in a step of `length_ns` and in the rest before
 * it. Writes the remaining time to `*rest_ns`. Needed because the kernel counts a wait for a
 * processor only when the wait ends: the count includes the part before the first reading. */
static void keep_possible(sj_thread_counters *used, uint64_t length_ns, uint64_t *rest_ns)
{
    uint64_t left_ns = *rest_ns + length_ns;
    used->cpu_ns = used->cpu_ns < left_ns ? used->cpu_ns : left_ns;
    left_ns -= used->cpu_ns;
    used->ready_ns = used->ready_ns < left_ns ? used->ready_ns : left_ns;
    *rest_ns = left_ns - used->ready_ns;
}

static bool is_equal(const sj_thread_counters *one, const sj_thread_counters *other)
{
    return one->cpu_ns == other->cpu_ns && one->ready_ns == other->ready_ns &&
           one->has_memory == other->has_memory &&
           memcmp(one->memory, other->memory, sizeof(one->memory)) == 0;
}

bool sj_thread_times_note(sj_thread_times *times, sj_thread_clock *clock, uint64_t thread,
                          uint64_t now_ns, const sj_thread_counters *counters)
{
    const sj_thread_counters *before = &clock->counters;
    const bool is_same =
        counters->cpu_ns >= before->cpu_ns && counters->ready_ns >= before->ready_ns;
    sj_thread_counters now = *counters;
    if (is_same) {
        keep_most(&now, before);
    }
    if (clock->from_ns != 0 && is_equal(before, &now)) {
        clock->seen_ns = now_ns;
        return now_ns - clock->from_ns >= LONGEST_REST_NS
                   ? sj_thread_times_rest(times, clock, thread)
                   : is_full(times);
    }
    (void)sj_thread_times_rest(times, clock, thread);
    uint64_t rest_ns = is_same ? clock->rest_ns : 0;
    if (clock->from_ns != 0 && is_same) {
        sj_thread_counters used = used_between(before, &now);
        keep_possible(&used, now_ns - clock->from_ns, &rest_ns);
        add_step(times, thread, clock->from_ns, now_ns, &used);
    }
    *clock = (sj_thread_clock){
        .from_ns = now_ns, .seen_ns = now_ns, .rest_ns = rest_ns, .counters = now};
    return is_full(times);
}

bool sj_thread_times_rest(sj_thread_times *times, sj_thread_clock *clock, uint64_t thread)
{
    const sj_thread_counters nothing = {.has_memory = clock->counters.has_memory};
    add_step(times, thread, clock->from_ns, clock->seen_ns, &nothing);
    clock->rest_ns += clock->seen_ns - clock->from_ns;
    clock->from_ns = clock->seen_ns;
    return is_full(times);
}

sj_status sj_thread_times_send(sj_thread_times *times, sj_frame_writer *writer, uint64_t process)
{
    if (times->count == 0) {
        return SJ_OK;
    }
    const size_t capacity = SUMS_BYTES + times->count * STEP_BYTES;
    char *json = malloc(capacity);
    if (json == NULL) {
        return SJ_ENOMEM;
    }
    sj_clock_pair now;
    sj_clock_read_pair(0, &now);
    int size = snprintf(json, capacity,
                        "{\"cpu_ns\":%" PRIu64 ",\"ready_ns\":%" PRIu64 ",\"watched_ns\":%" PRIu64
                        ",\"steps\":[",
                        times->cpu_ns, times->ready_ns, times->watched_ns);
    for (uint32_t i = 0; i < times->count; i++) {
        const sj_thread_step *step = &times->steps[i];
        size += snprintf(json + size, capacity - (size_t)size,
                         "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                         i == 0 ? "" : ",", step->thread, now.monotonic_ns - step->from_ns,
                         step->length_ns, step->used.cpu_ns, step->used.ready_ns);
        for (size_t j = 0; j < SJ_SLOT_MEMORY && step->used.has_memory; j++) {
            size +=
                snprintf(json + size, capacity - (size_t)size, ",%" PRIu64, step->used.memory[j]);
        }
        size += snprintf(json + size, capacity - (size_t)size, "]");
    }
    size += snprintf(json + size, capacity - (size_t)size, "]}");
    const sj_report report = {.ticks = now.ticks,
                              .process = process,
                              .monitor = "threads",
                              .kind = "times",
                              .json = json,
                              .json_bytes = (size_t)size};
    const sj_status status = sj_frame_writer_report(writer, &report);
    free(json);
    times->count = 0;
    return status == SJ_EFULL ? SJ_OK : status;
}
