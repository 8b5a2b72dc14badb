#include "tests/support/fake_arena.h"

#include "agent/host/clock.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { STACK = 0x7f0000 };

void fake_arena_make(fake_arena *arena, const char *name, uint32_t max_threads, uint32_t chunks)
{
    const sj_arena_header header = {.magic = SJ_ARENA_MAGIC,
                                    .version = SJ_ARENA_VERSION,
                                    .chunks_per_thread = chunks,
                                    .max_threads = max_threads,
                                    .state = SJ_ARENA_RECORDING};
    snprintf(arena->directory, sizeof(arena->directory), "/dev/shm/sj-test-XXXXXX");
    assert_non_null(mkdtemp(arena->directory));
    snprintf(arena->path, sizeof(arena->path), "%s/%s", arena->directory, name);
    const int fd = open(arena->path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)sj_arena_bytes(max_threads, chunks)), 0);
    assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    close(fd);
    assert_int_equal(sj_arena_view_open(arena->path, &arena->view), SJ_OK);
    for (uint32_t i = 0; i < max_threads; i++) {
        atomic_store(&sj_arena_view_slot(&arena->view, i)->free_chunks,
                     chunks == 64 ? UINT64_MAX : (UINT64_C(1) << chunks) - 1);
    }
}

void fake_arena_remove(fake_arena *arena)
{
    sj_arena_view_close(&arena->view);
    unlink(arena->path);
    rmdir(arena->directory);
}

void fake_thread_start(fake_thread *thread, const fake_arena *arena, uint32_t slot_number,
                       uint32_t tid)
{
    sj_thread_slot *slot = sj_arena_view_slot(&arena->view, slot_number);
    *thread =
        (fake_thread){.arena = arena, .slot = slot_number, .chunk = -1, .ticks = sj_clock_ticks()};
    slot->tid = tid;
    slot->start_ticks = thread->ticks;
    slot->stack_low = STACK - 0x10000;
    slot->stack_high = STACK + 0x10000;
    memcpy(slot->name, "fake", 5);
    sj_arena_header *header = sj_arena_view_header(&arena->view);
    if (atomic_load(&header->slots_begun) <= slot_number) {
        atomic_store(&header->slots_begun, slot_number + 1);
    }
    atomic_store(&slot->state, SJ_THREAD_LIVE);
}

static bool open_chunk(fake_thread *thread)
{
    sj_thread_slot *slot = sj_arena_view_slot(&thread->arena->view, thread->slot);
    const uint64_t free_chunks = atomic_load(&slot->free_chunks);
    if (free_chunks == 0) {
        return false;
    }
    thread->chunk = __builtin_ctzll(free_chunks);
    thread->next = 0;
    atomic_fetch_and(&slot->free_chunks, ~(UINT64_C(1) << thread->chunk));
    sj_chunk_header *chunk =
        sj_arena_view_chunk(&thread->arena->view, thread->slot, (uint32_t)thread->chunk);
    /* The agent relies on free chunks being all zero. */
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
        assert_int_equal(sj_arena_record_tag(&sj_arena_chunk_records(chunk)[i]), 0);
    }
    chunk->thread_slot = thread->slot;
    atomic_store(&chunk->closed_records, UINT32_MAX);
    const uint64_t sequence = atomic_fetch_add(&slot->chunk_sequence, 1) + 1;
    atomic_store(&chunk->sequence, sequence);
    return true;
}

sj_record *fake_thread_reserve(fake_thread *thread)
{
    if (thread->chunk >= 0 && thread->next == SJ_CHUNK_RECORDS) {
        sj_chunk_header *full =
            sj_arena_view_chunk(&thread->arena->view, thread->slot, (uint32_t)thread->chunk);
        atomic_store(&full->closed_records, SJ_CHUNK_RECORDS);
        thread->chunk = -1;
    }
    if (thread->chunk < 0 && !open_chunk(thread)) {
        return NULL;
    }
    sj_chunk_header *chunk =
        sj_arena_view_chunk(&thread->arena->view, thread->slot, (uint32_t)thread->chunk);
    return &sj_arena_chunk_records(chunk)[thread->next++];
}

void fake_record_write(sj_record *record, uint64_t ticks, sj_record_kind kind, uint32_t function,
                       uint64_t stack)
{
    const uint64_t mask = (UINT64_C(1) << 48) - 1;
    const uint64_t low = (ticks & mask) | stack << 48;
    const uint32_t middle = (uint32_t)(stack >> 16);
    const uint32_t tag = (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function;
    memcpy(record->bytes, &low, sizeof(low));
    memcpy(record->bytes + 8, &middle, sizeof(middle));
    atomic_store_explicit((_Atomic uint32_t *)(void *)(record->bytes + 12), tag,
                          memory_order_release);
}

bool fake_thread_put(fake_thread *thread, sj_record_kind kind, uint32_t function, uint64_t stack)
{
    sj_record *record = fake_thread_reserve(thread);
    if (record == NULL) {
        return false;
    }
    fake_record_write(record, thread->ticks++, kind, function, stack);
    return true;
}

bool fake_thread_call(fake_thread *thread, uint32_t function)
{
    return fake_thread_put(thread, SJ_RECORD_ENTER, function, STACK) &&
           fake_thread_put(thread, SJ_RECORD_LEAVE, function, STACK);
}
