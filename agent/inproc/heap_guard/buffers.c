/* Design notes
 *
 * A system call with a buffer in a closed page does not fault: it fails with EFAULT. Without the
 * agent it would succeed, so the functions below open the buffer before the call. They then jump to
 * the system call's own code, so that a thread never waits in the kernel with a stack frame of the
 * agent.
 */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/heap_guard/trace.h"

typedef long (*buffer_call)(long file, const void *buffer, size_t bytes, long fourth,
                            const void *fifth, long sixth);

static void open_buffer(sj_pool_slot *slot, uint64_t address, uint64_t bytes)
{
    const uint64_t end = sj_pool_slot_start(slot) + SJ_POOL_SLOT_BYTES;
    const uint64_t stop = end - address < bytes ? end : address + bytes;
    for (uint64_t at = address; at < stop; at = (at | (SJ_POOL_PAGE - 1)) + 1) {
        sj_pool_open_pages(slot, at);
    }
}

/* Reports and opens the buffer if it lies in a freed block. Does not check the end of a live block:
 * before the call it is not known how many bytes the kernel will use. */
static __attribute__((noinline)) void check_buffer(const void *buffer, size_t bytes, bool is_write,
                                                   uint64_t site)
{
    sj_zombie_trace here = {0};
    const uint64_t address = (uint64_t)(uintptr_t)buffer;
    sj_pool_slot *slot = sj_pool_find(address);
    if (bytes == 0 || slot == NULL || address < sj_pool_slot_start(slot) + SJ_POOL_PAGE ||
        !sj_slot_is_freed(slot)) {
        return;
    }
    sj_trace_here(&here);
    sj_report_stop_if(
        sj_report_use(slot, SJ_ZOMBIE_USE_AFTER_FREE, address, is_write, &here, site));
    open_buffer(slot, address, bytes);
}

#define BUFFER_CALL(name, entry, is_write)                                                         \
    static long name(long file, const void *buffer, size_t bytes, long fourth, const void *fifth,  \
                     long sixth)                                                                   \
    {                                                                                              \
        check_buffer(buffer, bytes, is_write, SJ_CALL_SITE_OF_ENTRY());                            \
        return ((buffer_call)sj_heap_originals[entry])(file, buffer, bytes, fourth, fifth, sixth); \
    }

BUFFER_CALL(call_read, SJ_ENTRY_READ, true)
BUFFER_CALL(call_write, SJ_ENTRY_WRITE, false)
BUFFER_CALL(call_pread, SJ_ENTRY_PREAD, true)
BUFFER_CALL(call_pwrite, SJ_ENTRY_PWRITE, false)
BUFFER_CALL(call_recv, SJ_ENTRY_RECV, true)
BUFFER_CALL(call_send, SJ_ENTRY_SEND, false)
BUFFER_CALL(call_recvfrom, SJ_ENTRY_RECVFROM, true)
BUFFER_CALL(call_sendto, SJ_ENTRY_SENDTO, false)

uint64_t sj_buffer_call(sj_heap_entry entry)
{
    static const buffer_call calls[] = {call_read, call_write, call_pread,    call_pwrite,
                                        call_recv, call_send,  call_recvfrom, call_sendto};
    return (uint64_t)(uintptr_t)calls[entry - SJ_ENTRY_READ];
}
