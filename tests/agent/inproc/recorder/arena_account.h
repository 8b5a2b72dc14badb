/* Test support: makes calls through one probe, in the program and in handlers, and checks that each
 * call is recorded or counted as dropped. */
#ifndef SJ_TESTS_AGENT_INPROC_RECORDER_ARENA_ACCOUNT_H
#define SJ_TESTS_AGENT_INPROC_RECORDER_ARENA_ACCOUNT_H

#include "tests/agent/inproc/recorder/probe_code.h"

#include <stdatomic.h>

static uint8_t *arena;
static probe_function probe;

static inline void start(const char *directory, sj_link_welcome welcome)
{
    char path[128];
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    arena = map_arena_file(path);
    CHECK(arena != NULL);
    probe = make_probe(5);
}

static inline void call_times(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        probe();
    }
}

/* Checks that recorded and dropped entries are as many as the calls. The same must hold for the sum
 * of entries and exits. */
static inline void check_account(uint32_t thread, tally sum, uint64_t calls)
{
    sj_thread_slot *slot = arena_slot(arena, thread);
    drain_thread(arena, thread, false, &sum);
    tally window = {0};
    tally_window(arena, thread, &window);
    const uint64_t dropped_calls = atomic_load(&slot->dropped_calls) + window.enters;
    const uint64_t dropped_events =
        atomic_load(&slot->dropped_events) + window.enters + window.leaves;
    if (sum.enters + dropped_calls != calls ||
        sum.enters + sum.leaves + dropped_events != 2 * calls) {
        fprintf(stderr, "calls %llu: entries %llu + %llu dropped, events %llu + %llu dropped\n",
                (unsigned long long)calls, (unsigned long long)sum.enters,
                (unsigned long long)dropped_calls, (unsigned long long)(sum.enters + sum.leaves),
                (unsigned long long)dropped_events);
        _exit(1);
    }
}

static _Atomic int stop_draining;
static tally drained;

static inline void *drain_all_the_time(void *argument)
{
    (void)argument;
    while (!atomic_load(&stop_draining)) {
        drain_thread(arena, 0, true, &drained);
        usleep(300);
    }
    return NULL;
}

static _Atomic uint64_t handler_calls;
static _Atomic uint64_t handler_runs;

static inline void call_in_handler(int number)
{
    (void)number;
    const uint32_t count = 1 + (uint32_t)(atomic_load(&handler_calls) % 7);
    call_times(count);
    atomic_fetch_add(&handler_calls, count);
    atomic_fetch_add(&handler_runs, 1);
}

#endif
