#include "agent/inproc/hooks/overwritten.h"

#include "agent/abi/page.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <sys/uio.h>

enum { WINDOW_BYTES = 2 * SJ_PAGE_LEAST_BYTES };

/* A copy of the text in [low, high): two pieces, or fewer if the kernel could not read both. */
typedef struct text_window {
    uint64_t low;
    uint64_t high;
    uint8_t bytes[WINDOW_BYTES];
} text_window;

/* Copies the piece of a page around `address` and the next piece by a system call, because the
 * program may have unmapped them. The kernel copies each iovec whole or not at all, so each iovec
 * is one piece. */
static void read_window(text_window *window, uint64_t address)
{
    window->low = address - address % SJ_PAGE_LEAST_BYTES;
    const struct iovec here = {.iov_base = window->bytes, .iov_len = WINDOW_BYTES};
    const struct iovec there[] = {
        {.iov_base = (void *)(uintptr_t)window->low, .iov_len = SJ_PAGE_LEAST_BYTES},
        {.iov_base = (void *)(uintptr_t)(window->low + SJ_PAGE_LEAST_BYTES),
         .iov_len = SJ_PAGE_LEAST_BYTES}};
    const long copied = SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), (long)(uintptr_t)&here, 1,
                               (long)(uintptr_t)there, 2, 0);
    window->high = window->low + (copied > 0 ? (uint64_t)copied : 0);
}

static bool is_overwritten(text_window *window, const sj_hook_change *change)
{
    const uint64_t end = change->address + change->bytes;
    if (change->address < window->low || end > window->high) {
        read_window(window, change->address);
    }
    return end <= window->high && memcmp(window->bytes + (change->address - window->low),
                                         change->patched, change->bytes) != 0;
}

void sj_hooks_find_overwritten(const sj_hooked_module *module, sj_overwritten *found)
{
    text_window window = {.high = 0};
    for (uint32_t i = 0; i < module->change_count; i++) {
        const sj_hook_change *change = &module->changes[i];
        if (change->written != 0 && change->is_slot == 0 && change->function != 0 &&
            change->function < SJ_HOOK_REPLACED && is_overwritten(&window, change)) {
            sj_overwritten_add(found, change->function);
        }
    }
}
