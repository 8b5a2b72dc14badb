/* Design notes
 *
 * The arena is a sparse file on a tmpfs, which other files may fill. To write to a page that the
 * tmpfs has no memory for is a SIGBUS in the program. So pages get their memory from the kernel
 * first (populate.c), which then answers with an error. The file's descriptor is not kept: it would
 * be the program's to see and to close. */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <sys/vfs.h>

enum {
    PAUSE_TICKS = 1 << 22, /* a thread that was refused does not ask again at once */
    SPARED = 2 /* chunks that are left for others, for each of which a thread then has */
};

/* Bytes that the arena's file system has left; UINT64_MAX: as many as there are, or unknown. */
static uint64_t find_room(void)
{
    struct statfs status;
    if (SJ_SYS(SYS_statfs, sj_recorder.directory, &status, 0, 0, 0, 0) < 0 ||
        status.f_blocks == 0) {
        return UINT64_MAX;
    }
    return (uint64_t)status.f_bavail * (uint64_t)status.f_bsize;
}

static bool is_refused(sj_recorder_thread *self)
{
    sj_recorder_add(&sj_recorder.arena->pages_refused, 1);
    atomic_store_explicit(&sj_recorder.arena->is_full, 1, memory_order_relaxed);
    self->refused_ticks = sj_arch_ticks();
    return false;
}

bool sj_recorder_back(sj_recorder_thread *self, void *address, uint64_t bytes, uint32_t chunks)
{
    sj_arena_header *arena = sj_recorder.arena;
    if (self->refused_ticks != 0 && sj_arch_ticks() - self->refused_ticks < PAUSE_TICKS) {
        return false;
    }
    if (!sj_recorder_begin_calls()) {
        return atomic_load_explicit(&arena->is_full, memory_order_relaxed) == 0;
    }
    const uint64_t wanted = ((uint64_t)chunks + 1) * SPARED * SJ_CHUNK_BYTES;
    const bool is_backed =
        (chunks == 0 || find_room() >= wanted) && sj_recorder_back_pages(address, bytes);
    sj_recorder_end_calls();
    if (!is_backed) {
        return is_refused(self);
    }
    atomic_store_explicit(&arena->is_full, 0, memory_order_relaxed);
    self->refused_ticks = 0;
    return true;
}
