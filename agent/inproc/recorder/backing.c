/* Design notes
 *
 * The arena is a sparse file on a tmpfs, which other files may fill. To write to a page that the
 * tmpfs has no memory for is a SIGBUS in the program. So pages get their memory from the kernel
 * first, which then answers with an error. The file's descriptor is not kept: it would be the
 * program's to see and to close. */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
    PAGE_BYTES = 4096,
    PAGES = SJ_CHUNK_BYTES / PAGE_BYTES,
    PAUSE_TICKS = 1 << 22, /* a thread that was refused does not ask again at once */
    SPARED = 2 /* chunks that are left for others, for each of which a thread then has */
};

/* Older kernels give a page of a shared file its memory when it is read. */
static long read_pages(const uint8_t *address, uint64_t bytes)
{
    uint8_t read[PAGES];
    const struct iovec to = {.iov_base = read, .iov_len = sizeof(read)};
    struct iovec from[PAGES];
    uint64_t count = 0;
    for (; count < PAGES && count * PAGE_BYTES < bytes; count++) {
        from[count].iov_base = (void *)(uintptr_t)(address + count * PAGE_BYTES);
        from[count].iov_len = 1;
    }
    const long found = SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), &to, 1, from, count, 0);
    return found >= 0 && found < (long)count ? -EFAULT : found;
}

bool sj_recorder_back_pages(void *address, uint64_t bytes)
{
    long status = SJ_SYS(SYS_madvise, address, bytes, MADV_POPULATE_WRITE, 0, 0, 0);
    if (status == -EINVAL) {
        status = read_pages(address, bytes);
    }
    /* An emulator or a filter may know neither call; then nothing is known. */
    return status >= 0 || status == -ENOSYS || status == -EPERM;
}

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
