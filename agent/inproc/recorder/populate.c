#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <sys/uio.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { PAGE_BYTES = 4096, PAGES = SJ_CHUNK_BYTES / PAGE_BYTES };

/* Reads one byte of each page. Kernels before 5.14 thereby allocate a page of a shared file. */
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
    /* An emulator or a filter may support neither call. Then the result is unknown, and counts as
     * success. */
    return status >= 0 || status == -ENOSYS || status == -EPERM;
}
