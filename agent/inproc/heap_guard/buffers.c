/* Design notes
 *
 * A system call does not fault in a closed page: it fails with EFAULT, which it does not without
 * us. So buffers are looked at before the call, and it then goes on as if it had been called
 * directly: the calls below are jumps, so that nobody waits in the kernel with a frame of ours. */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/heap_guard/trace.h"

typedef long (*buffer_call)(long file, const void *buffer, size_t bytes, long fourth,
                            const void *fifth, long sixth);

static void open_buffer(sj_pool_slot *slot, uint64_t address, uint64_t bytes)
{
    const uint64_t end = sj_pool_room(slot) + SJ_POOL_ROOM_BYTES;
    const uint64_t stop = end - address < bytes ? end : address + bytes;
    for (uint64_t at = address; at < stop; at = (at | (SJ_POOL_PAGE - 1)) + 1) {
        sj_pool_open_pages(slot, at);
    }
}

/* Only freed blocks: how much of a buffer is used is not known before the call. */
static __attribute__((noinline)) void look(const void *buffer, size_t bytes, bool is_write,
                                           uint64_t site)
{
    sj_zombie_trace here = {0};
    const uint64_t address = (uint64_t)(uintptr_t)buffer;
    sj_pool_slot *slot = sj_pool_find(address);
    if (bytes == 0 || slot == NULL || address < sj_pool_room(slot) + SJ_POOL_PAGE ||
        !sj_slot_is_freed(slot)) {
        return;
    }
    sj_trace_here(&here);
    sj_report_follow(sj_report_use(slot, SJ_ZOMBIE_USE_AFTER_FREE, address, is_write, &here, site));
    open_buffer(slot, address, bytes);
}

#define BUFFER_CALL(name, head, is_write)                                                          \
    static long name(long file, const void *buffer, size_t bytes, long fourth, const void *fifth,  \
                     long sixth)                                                                   \
    {                                                                                              \
        look(buffer, bytes, is_write, SJ_ENTRY_SITE());                                            \
        return ((buffer_call)sj_zombie_originals[head])(file, buffer, bytes, fourth, fifth,        \
                                                        sixth);                                    \
    }

BUFFER_CALL(call_read, SJ_HEAD_READ, true)
BUFFER_CALL(call_write, SJ_HEAD_WRITE, false)
BUFFER_CALL(call_pread, SJ_HEAD_PREAD, true)
BUFFER_CALL(call_pwrite, SJ_HEAD_PWRITE, false)
BUFFER_CALL(call_recv, SJ_HEAD_RECV, true)
BUFFER_CALL(call_send, SJ_HEAD_SEND, false)
BUFFER_CALL(call_recvfrom, SJ_HEAD_RECVFROM, true)
BUFFER_CALL(call_sendto, SJ_HEAD_SENDTO, false)

uint64_t sj_buffer_call(sj_zombie_head head)
{
    static const buffer_call calls[] = {call_read, call_write, call_pread,    call_pwrite,
                                        call_recv, call_send,  call_recvfrom, call_sendto};
    return (uint64_t)(uintptr_t)calls[head - SJ_HEAD_READ];
}
