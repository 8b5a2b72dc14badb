/* A producer for tests: an arena in the agent's format, filled record by record. */
#ifndef SJ_TESTS_SUPPORT_FAKE_ARENA_H
#define SJ_TESTS_SUPPORT_FAKE_ARENA_H

#include "agent/drain/arena_view.h"

typedef struct fake_arena {
    char directory[64];
    char path[128];
    sj_arena_view view;
} fake_arena;

typedef struct fake_thread {
    const fake_arena *arena;
    uint32_t slot;
    int chunk; /* -1: no chunk is open */
    uint32_t next;
    uint64_t ticks;
} fake_thread;

/* Creates an arena called `name` in a new temporary directory. */
void fake_arena_make(fake_arena *arena, const char *name, uint32_t max_threads, uint32_t chunks);
void fake_arena_remove(fake_arena *arena);

/* Claims the slot as a thread with this tid does. */
void fake_thread_start(fake_thread *thread, const fake_arena *arena, uint32_t slot, uint32_t tid);

/* Writes the next record and opens chunks as needed. Returns false if no chunk is free. */
bool fake_thread_put(fake_thread *thread, sj_record_kind kind, uint32_t function, uint64_t stack);

/* Returns the next slot without writing it. fake_record_write fills it later. */
sj_record *fake_thread_reserve(fake_thread *thread);
void fake_record_write(sj_record *record, uint64_t ticks, sj_record_kind kind, uint32_t function,
                       uint64_t stack);

/* Writes an entry and its exit. */
bool fake_thread_call(fake_thread *thread, uint32_t function);

#endif
