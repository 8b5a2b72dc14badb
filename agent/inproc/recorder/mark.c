#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

static void put_note(sj_note note, uint64_t ticks, uint64_t argument)
{
    const uint32_t tag = sj_record_make_tag(SJ_RECORD_NOTE, note);
    sj_recorder_put(sj_recorder_reserve(tag), ticks, argument, tag);
}

static bool has_space(sj_arena_header *arena)
{
    if (atomic_load_explicit(&sj_recorder.has_marks, memory_order_acquire) == 0 &&
        sj_recorder_back(&sj_recorder_self, (uint8_t *)arena + SJ_ARENA_MARKS_OFFSET,
                         SJ_ARENA_HEADER_BYTES - SJ_ARENA_MARKS_OFFSET, 0)) {
        atomic_store_explicit(&sj_recorder.has_marks, 1, memory_order_release);
    }
    return atomic_load_explicit(&sj_recorder.has_marks, memory_order_acquire) != 0;
}

void sj_recorder_mark(const char *name, bool end)
{
    if (name == NULL || !sj_recorder_is_armed() || sj_recorder_is_forked()) {
        return;
    }
    sj_recorder_change_at_mark(name, end);
    sj_arena_header *arena = sj_recorder.arena;
    if (!has_space(arena)) {
        return; /* counted as refused */
    }
    const uint64_t number = atomic_fetch_add(&arena->mark_count, 1);
    const uint32_t index = (uint32_t)(number % SJ_ARENA_MARKS);
    sj_arena_mark *mark = (sj_arena_mark *)((uint8_t *)arena + SJ_ARENA_MARKS_OFFSET) + index;
    atomic_store_explicit(&mark->sequence, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    mark->ticks = sj_arch_ticks();
    mark->tid = sj_sys_tid();
    mark->end = end ? 1 : 0;
    uint32_t used = 0;
    while (used < SJ_ARENA_MARK_BYTES - 1 && name[used] != '\0') {
        mark->name[used] = name[used];
        used++;
    }
    while (used < SJ_ARENA_MARK_BYTES) {
        mark->name[used++] = '\0';
    }
    /* Pairs with the consumer's acquire load; written last. */
    atomic_store_explicit(&mark->sequence, number + 1, memory_order_release);

    put_note(end ? SJ_NOTE_MARK_END : SJ_NOTE_MARK_BEGIN, mark->ticks, index);
}

void sj_recorder_request(sj_request request)
{
    if (sj_recorder_is_armed() && !sj_recorder_is_forked()) {
        put_note(SJ_NOTE_REQUEST, sj_arch_ticks(), (uint64_t)request);
    }
}
