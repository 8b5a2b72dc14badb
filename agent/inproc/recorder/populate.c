#include "agent/abi/page.h"
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <sys/uio.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { PIECES = SJ_CHUNK_BYTES / SJ_PAGE_LEAST_BYTES };

/* Reads a byte of each page, or several bytes of a large page. Kernels before 5.14 thereby allocate
 * pages of a shared file. */
static long read_pages(const uint8_t *address, uint64_t bytes)
{
    uint8_t read[PIECES];
    const struct iovec to = {.iov_base = read, .iov_len = sizeof(read)};
    struct iovec from[PIECES];
    uint64_t count = 0;
    for (; count < PIECES && count * SJ_PAGE_LEAST_BYTES < bytes; count++) {
        from[count].iov_base = (void *)(uintptr_t)(address + count * SJ_PAGE_LEAST_BYTES);
        from[count].iov_len = 1;
    }
    const long found = SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), &to, 1, from, count, 0);
    return found >= 0 && found < (long)count ? -EFAULT : found;
}

bool sj_recorder_back_pages(void *address, uint64_t bytes)
{
    const uint64_t start = sj_page_start((uint64_t)(uintptr_t)address);
    const uint64_t end = sj_page_round_up((uint64_t)(uintptr_t)address + bytes);
    long status = SJ_SYS(SYS_madvise, start, end - start, MADV_POPULATE_WRITE, 0, 0, 0);
    if (status == -EINVAL) {
        status = read_pages((const uint8_t *)start, end - start);
    }
    /* An emulator or a filter may support neither call. Then the result is unknown, and counts as
     * success. */
    return status >= 0 || status == -ENOSYS || status == -EPERM;
}
