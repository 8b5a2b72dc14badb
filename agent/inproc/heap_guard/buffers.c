/* Design notes
 *
 * A system call with a buffer in a closed page does not fault: it fails with EFAULT, or uses only
 * the bytes before the page. Without the agent it would succeed, so the functions below report the
 * buffer and open its pages before the call. They then jump to the system call's own code, so that
 * a thread never waits in the kernel with a stack frame of the agent. */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/heap_guard/virtual_tables.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

static void open_pages(uint64_t first, uint64_t stop)
{
    for (uint64_t at = first; at < stop; at = sj_page_start(at) + sj_page_bytes()) {
        sj_pool_open_pages(sj_pool_find(at), at);
    }
}

static uint64_t lower(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

/* Reports a use of the slot's block at `address`. Stops the program if the policy says so. */
static void report(sj_pool_slot *slot, sj_zombie_kind kind, uint64_t address, bool is_write,
                   uint64_t site)
{
    sj_zombie_trace here = {0};
    sj_trace_here(&here);
    sj_report_stop_if(sj_report_use(slot, kind, address, is_write, &here, site));
}

/* Reports a buffer that is not wholly inside its live block, and opens its pages. Opens no page
 * beyond the one after the slot, so that the kernel cannot write into another block. Checks the
 * bytes around the block if the buffer is inside. */
static void check_live(sj_pool_slot *slot, uint64_t address, uint64_t bytes, bool is_write,
                       uint64_t site)
{
    const uint64_t end = slot->address + slot->size;
    const uint64_t after = sj_page_round_up(end);
    if (address < slot->address) {
        report(slot, SJ_ZOMBIE_UNDERFLOW, address, is_write, site);
        open_pages(address, lower(address + bytes, slot->address));
    } else if (address > end || bytes > end - address) {
        report(slot, SJ_ZOMBIE_OVERFLOW, address > end ? address : end, is_write, site);
        open_pages(after, lower(address + bytes, sj_pool_slot_end(slot) + sj_page_bytes()));
    } else {
        sj_pool_check(slot, site);
    }
}

/* Reports a buffer that begins in a guard page, for example where a block ends. */
static void check_guard_page(uint64_t address, uint64_t bytes, bool is_write, uint64_t site)
{
    sj_zombie_kind kind;
    sj_pool_slot *slot = sj_faults_classify(address, &kind);
    report(slot, kind, address, is_write, site);
    open_pages(address, lower(address + bytes, sj_page_start(address) + sj_page_bytes()));
}

/* Reports a buffer of a system call that is freed or leaves its block, and opens its pages.
 * `is_write` is true if the kernel writes to the buffer. */
static __attribute__((noinline)) void check_buffer(uint64_t address, uint64_t bytes, bool is_write,
                                                   uint64_t site)
{
    if (bytes == 0 || !sj_pool_has(address) || bytes > UINT64_MAX - address) {
        return;
    }
    sj_pool_slot *slot = sj_pool_find(address);
    if (slot == NULL || address < sj_pool_slot_start(slot) + sj_page_bytes()) {
        check_guard_page(address, bytes, is_write, site);
    } else if (slot->address == 0) {
        return;
    } else if (sj_slot_is_freed(slot)) {
        report(slot, SJ_ZOMBIE_USE_AFTER_FREE, address, is_write, site);
        open_pages(address, lower(address + bytes, sj_pool_slot_end(slot)));
    } else if (atomic_load(&slot->state) == SJ_SLOT_LIVE) {
        check_live(slot, address, bytes, is_write, site);
    }
}

/* Checks a text that the kernel reads up to its NUL. */
static void check_text(uint64_t address, uint64_t site)
{
    const sj_pool_slot *slot = sj_pool_has(address) ? sj_pool_find(address) : NULL;
    uint64_t bytes = 1;
    if (slot != NULL && atomic_load(&slot->state) == SJ_SLOT_LIVE && address >= slot->address) {
        const uint64_t end = slot->address + slot->size;
        while (address + bytes - 1 < end && ((const char *)(uintptr_t)address)[bytes - 1] != '\0') {
            bytes++;
        }
    }
    check_buffer(address, bytes, false, site);
}

/* Copies an argument whose address may be invalid. Returns false if it cannot be read. Most
 * arguments are on the stack, where a read needs no system call. */
static bool read_argument(uint64_t address, void *to, uint64_t bytes)
{
    if (!sj_stack_has(address, bytes)) {
        return sj_virtual_read(address, to, bytes);
    }
    memcpy(to, (const void *)(uintptr_t)address, bytes);
    return true;
}

/* Checks the buffers of readv and its kind. Does nothing for a vector that the kernel refuses. */
static void check_vector(uint64_t vector, uint64_t count, bool is_write, uint64_t site)
{
    enum { AT_ONCE = 16, MOST = 1024 };
    struct iovec parts[AT_ONCE];
    if (count > MOST) {
        return;
    }
    check_buffer(vector, count * sizeof(*parts), false, site);
    for (uint64_t i = 0; i < count; i += AT_ONCE) {
        const uint64_t some = lower(count - i, AT_ONCE);
        if (!read_argument(vector + i * sizeof(*parts), parts, some * sizeof(*parts))) {
            return;
        }
        for (uint64_t part = 0; part < some; part++) {
            check_buffer((uint64_t)(uintptr_t)parts[part].iov_base, parts[part].iov_len, is_write,
                         site);
        }
    }
}

static void check_message(uint64_t address, bool is_received, uint64_t site)
{
    struct msghdr message;
    check_buffer(address, sizeof(message), is_received, site);
    if (!read_argument(address, &message, sizeof(message))) {
        return;
    }
    check_buffer((uint64_t)(uintptr_t)message.msg_name, message.msg_namelen, is_received, site);
    check_buffer((uint64_t)(uintptr_t)message.msg_control, message.msg_controllen, is_received,
                 site);
    check_vector((uint64_t)(uintptr_t)message.msg_iov, message.msg_iovlen, is_received, site);
}

typedef struct ioctl_layout {
    uint32_t request;
    uint16_t bytes;
    bool is_write;
} ioctl_layout;

/* Requests whose number does not say the size of the argument. */
static const ioctl_layout layouts[] = {
    {TCGETS, 36, true},         {TCSETS, 36, false},        {TCSETSW, 36, false},
    {TCSETSF, 36, false},       {TIOCGWINSZ, 8, true},      {TIOCSWINSZ, 8, false},
    {FIONREAD, 4, true},        {FIONBIO, 4, false},        {FIOASYNC, 4, false},
    {TIOCGPGRP, 4, true},       {TIOCSPGRP, 4, false},      {TIOCOUTQ, 4, true},
    {SIOCGIFCONF, 16, true},    {SIOCGIFFLAGS, 40, true},   {SIOCGIFADDR, 40, true},
    {SIOCGIFNETMASK, 40, true}, {SIOCGIFBRDADDR, 40, true}, {SIOCGIFMTU, 40, true},
    {SIOCGIFHWADDR, 40, true},  {SIOCGIFINDEX, 40, true},   {SIOCGIFNAME, 40, true}};

static void check_ioctl(uint64_t request, uint64_t argument, uint64_t site)
{
    if (!sj_pool_has(argument)) {
        return;
    }
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        if (layouts[i].request == (uint32_t)request) {
            check_buffer(argument, layouts[i].bytes, layouts[i].is_write, site);
            return;
        }
    }
    /* Some drivers use fewer bytes than the number says, so only a freed block is reported. */
    const sj_pool_slot *slot = sj_pool_find(argument);
    if (_IOC_DIR(request) != _IOC_NONE && slot != NULL && sj_slot_is_freed(slot)) {
        check_buffer(argument, _IOC_SIZE(request), (_IOC_DIR(request) & _IOC_READ) != 0, site);
    }
}

typedef long (*system_call)(long first, long second, long third, long fourth, long fifth,
                            long sixth);

/* Defines the function `name`, which runs `checks` with the arguments of the call. */
#define CHECKED_CALL(name, entry, checks)                                                          \
    static long name(long first, long second, long third, long fourth, long fifth, long sixth)     \
    {                                                                                              \
        const uint64_t site = SJ_CALL_SITE_OF_ENTRY();                                             \
        checks;                                                                                    \
        return ((system_call)sj_heap_originals[entry])(first, second, third, fourth, fifth,        \
                                                       sixth);                                     \
    }

#define BUFFER_CALL(name, entry, is_write)                                                         \
    CHECKED_CALL(name, entry, check_buffer((uint64_t)second, (uint64_t)third, is_write, site))
#define VECTOR_CALL(name, entry, is_write)                                                         \
    CHECKED_CALL(name, entry,                                                                      \
                 check_vector((uint64_t)second, (uint64_t)(uint32_t)third, is_write, site))
#define STATUS_CHECK(path, status)                                                                 \
    check_text((uint64_t)(path), site);                                                            \
    check_buffer((uint64_t)(status), sizeof(struct stat), true, site)

BUFFER_CALL(call_read, SJ_ENTRY_READ, true)
BUFFER_CALL(call_write, SJ_ENTRY_WRITE, false)
BUFFER_CALL(call_pread, SJ_ENTRY_PREAD, true)
BUFFER_CALL(call_pwrite, SJ_ENTRY_PWRITE, false)
BUFFER_CALL(call_recv, SJ_ENTRY_RECV, true)
BUFFER_CALL(call_send, SJ_ENTRY_SEND, false)
BUFFER_CALL(call_recvfrom, SJ_ENTRY_RECVFROM, true)
BUFFER_CALL(call_sendto, SJ_ENTRY_SENDTO, false)
VECTOR_CALL(call_readv, SJ_ENTRY_READV, true)
VECTOR_CALL(call_writev, SJ_ENTRY_WRITEV, false)
VECTOR_CALL(call_preadv, SJ_ENTRY_PREADV, true)
VECTOR_CALL(call_pwritev, SJ_ENTRY_PWRITEV, false)
CHECKED_CALL(call_recvmsg, SJ_ENTRY_RECVMSG, check_message((uint64_t)second, true, site))
CHECKED_CALL(call_sendmsg, SJ_ENTRY_SENDMSG, check_message((uint64_t)second, false, site))
CHECKED_CALL(call_open, SJ_ENTRY_OPEN, check_text((uint64_t)first, site))
CHECKED_CALL(call_openat, SJ_ENTRY_OPENAT, check_text((uint64_t)second, site))
CHECKED_CALL(call_stat, SJ_ENTRY_STAT, STATUS_CHECK(first, second))
CHECKED_CALL(call_lstat, SJ_ENTRY_LSTAT, STATUS_CHECK(first, second))
CHECKED_CALL(call_fstat, SJ_ENTRY_FSTAT,
             check_buffer((uint64_t)second, sizeof(struct stat), true, site))
CHECKED_CALL(call_fstatat, SJ_ENTRY_FSTATAT, STATUS_CHECK(second, third))
CHECKED_CALL(call_xstat, SJ_ENTRY_XSTAT, STATUS_CHECK(second, third))
CHECKED_CALL(call_lxstat, SJ_ENTRY_LXSTAT, STATUS_CHECK(second, third))
CHECKED_CALL(call_fxstat, SJ_ENTRY_FXSTAT,
             check_buffer((uint64_t)third, sizeof(struct stat), true, site))
CHECKED_CALL(call_ioctl, SJ_ENTRY_IOCTL, check_ioctl((uint64_t)second, (uint64_t)third, site))

uint64_t sj_buffer_call(sj_heap_entry entry)
{
    static const system_call calls[] = {
        call_read,     call_write,   call_pread, call_pwrite, call_recv,   call_send,
        call_recvfrom, call_sendto,  call_readv, call_writev, call_preadv, call_pwritev,
        call_recvmsg,  call_sendmsg, call_open,  call_openat, call_stat,   call_lstat,
        call_fstat,    call_fstatat, call_xstat, call_lxstat, call_fxstat, call_ioctl};
    _Static_assert(sizeof(calls) / sizeof(calls[0]) == SJ_HEAP_ENTRIES - SJ_ENTRY_READ,
                   "each system call has a function");
    return (uint64_t)(uintptr_t)calls[entry - SJ_ENTRY_READ];
}
