/* Design notes
 *
 * The arena is a sparse file on a tmpfs, which other files may fill. Writing to a page for which
 * the tmpfs has no memory raises SIGBUS in the program. So the recorder first has the kernel
 * allocate the pages (populate.c); a failure is then an error code. The recorder does not keep the
 * file's descriptor, because the program could see and close it. */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <sys/vfs.h>

enum {
    PAUSE_TICKS = 1 << 22, /* a refused thread does not ask again for so long */
    /* Chunks' worth of memory to leave for other threads, for each chunk that a thread will
     * have. */
    SPARED = 2
};

/* Returns the free bytes of the arena's file system; UINT64_MAX: unlimited or unknown. */
static uint64_t find_free_space(void)
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
        (chunks == 0 || find_free_space() >= wanted) && sj_recorder_back_pages(address, bytes);
    sj_recorder_end_calls();
    if (!is_backed) {
        return is_refused(self);
    }
    atomic_store_explicit(&arena->is_full, 0, memory_order_relaxed);
    self->refused_ticks = 0;
    return true;
}
