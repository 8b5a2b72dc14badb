/* Design notes
 *
 * The arena is one sparse file, mapped shared at an address aligned to a chunk. backing.c
 * allocates memory for its pages. A page that the kernel zeroes on fork distinguishes a forked
 * child from its parent without a system call. A vfork child shares its parent's memory and thread,
 * so it rightly sees the parent's value. */
#include "agent/inproc/recorder/recorder.h"

#include "agent/abi/page.h"
#include "agent/inproc/recorder/address_space.h"
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/memory.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#define CALLS_END_NS UINT64_C(1000000000)
#define NS_PER_S UINT64_C(1000000000)

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

__thread sj_recorder_thread sj_recorder_self;

sj_recorder_state sj_recorder;

static _Atomic uint32_t constant_mask = SJ_USABLE_MASK;
_Atomic uint32_t *sj_recorder_usable_mask = &constant_mask;

static const _Atomic uint32_t owns_none;
const _Atomic uint32_t *sj_recorder_owns_slots = &owns_none;

/* Creates the file and maps it so that chunks are aligned; `*base` is the mapping. */
static sj_status map_arena(const char *directory, const char *name, uint64_t bytes, uint8_t **base)
{
    if (!sj_sys_may_write(bytes)) {
        return SJ_ELIMIT;
    }
    const long folder = sj_sys_open_at(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) {
        return SJ_EIO;
    }
    const long file =
        sj_sys_open_at((int)folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    (void)sj_sys_close((int)folder);
    if (file < 0) {
        return file == -EEXIST ? SJ_EEXIST : SJ_EIO;
    }
    sj_status status = SJ_ENOMEM;
    uint8_t *reserved = sj_sys_map(NULL, bytes + SJ_CHUNK_BYTES, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!sj_sys_failed(reserved) && SJ_SYS(SYS_ftruncate, file, bytes, 0, 0, 0, 0) == 0) {
        const uint64_t skip =
            (SJ_CHUNK_BYTES - (uintptr_t)reserved % SJ_CHUNK_BYTES) % SJ_CHUNK_BYTES;
        *base = sj_sys_map(reserved + skip, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                           (int)file, 0);
        status = sj_sys_failed(*base) ? SJ_ENOMEM : SJ_OK;
        if (skip != 0) {
            (void)sj_sys_unmap(reserved, skip);
        }
        (void)sj_sys_unmap(reserved + skip + bytes, SJ_CHUNK_BYTES - skip);
    }
    (void)sj_sys_close((int)file);
    return status;
}

/* True if the kernel ignores MADV_WIPEONFORK. Emulators accept it and ignore it; a kernel refuses
 * it for a shared file. Emulators also treat a vfork as a fork, so the pid identifies a child
 * there. */
static bool is_advice_ignored(void *shared)
{
    return SJ_SYS(SYS_madvise, shared, sj_page_bytes(), MADV_WIPEONFORK, 0, 0, 0) == 0;
}

static void own_fork_page(void)
{
    atomic_store(&sj_recorder.fork_page->usable_mask, SJ_USABLE_MASK);
    atomic_store(&sj_recorder.fork_page->is_own, 1);
}

/* Allocates a page at the address that probes can encode, or elsewhere if that is taken. */
static void *allocate_fork_page(void)
{
    void *wanted = (void *)(uintptr_t)SJ_FORK_PAGE_ADDRESS;
    void *page = sj_sys_map(wanted, sj_page_bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    /* Kernels before 4.17 take the address as a hint. */
    return sj_sys_failed(page) ? sj_sys_allocate(sj_page_bytes()) : page;
}

static sj_status map_fork_page(void *shared)
{
    sj_recorder.owner_pid = is_advice_ignored(shared) ? sj_sys_pid() : 0;
    if (sj_recorder.fork_page != NULL) {
        own_fork_page();
        return SJ_OK;
    }
    void *page = allocate_fork_page();
    if (page == NULL) {
        return SJ_ENOMEM;
    }
    if (SJ_SYS(SYS_madvise, page, sj_page_bytes(), MADV_WIPEONFORK, 0, 0, 0) != 0) {
        (void)sj_sys_unmap(page, sj_page_bytes());
        return SJ_EUNSUPPORTED;
    }
    sj_recorder.fork_page = page;
    own_fork_page();
    sj_recorder_usable_mask = &sj_recorder.fork_page->usable_mask;
    sj_recorder_owns_slots = &sj_recorder.fork_page->is_own;
    return SJ_OK;
}

/* Allocates memory for the parts that are always written: the header, and the bitmap of counted
 * functions. */
static sj_status back_arena(uint8_t *base, const sj_link_welcome *welcome)
{
    const uint64_t counted =
        sj_arena_counted_offset(welcome->max_threads, welcome->chunks_per_thread);
    const bool counts = (welcome->runtimes & SJ_LINK_RUNTIME_COUNTING) != 0;
    return sj_recorder_back_pages(base, sizeof(sj_arena_header)) &&
                   (!counts || sj_recorder_back_pages(base + counted, SJ_CHUNK_BYTES))
               ? SJ_OK
               : SJ_ENOMEM;
}

static void fill_header(sj_arena_header *arena, const sj_link_welcome *welcome)
{
    arena->version = SJ_ARENA_VERSION;
    arena->chunks_per_thread = welcome->chunks_per_thread;
    arena->max_threads = welcome->max_threads;
    arena->pid = sj_sys_pid();
    arena->parent_pid = sj_sys_parent_pid();
    arena->full_policy = welcome->full_policy;
    arena->wait_ms = welcome->wait_ms;
    for (uint32_t i = 0; i < SJ_SESSION_ID_BYTES; i++) {
        arena->session.bytes[i] = welcome->session.bytes[i];
    }
    arena->own_address = (uint64_t)(uintptr_t)arena;
    arena->clock_hz = sj_arch_ticks_hz();
    arena->attach_ticks = sj_arch_ticks();
    arena->attach_realtime_ns = sj_sys_clock_ns(CLOCK_REALTIME);
    atomic_thread_fence(memory_order_release);
    *(volatile uint64_t *)&arena->magic = SJ_ARENA_MAGIC;
}

static bool is_valid(const sj_link_welcome *welcome)
{
    return welcome->max_threads != 0 && welcome->max_threads <= SJ_ARENA_MAX_THREADS &&
           welcome->chunks_per_thread != 0 && welcome->chunks_per_thread <= SJ_ARENA_MAX_CHUNKS &&
           welcome->full_policy <= SJ_FULL_DROP_NEW;
}

static sj_status start(const char *directory, const char *name, const sj_link_welcome *welcome)
{
    const uint64_t bytes = sj_arena_bytes(welcome->max_threads, welcome->chunks_per_thread);
    uint8_t *base = NULL;
    SJ_TRY(map_arena(directory, name, bytes, &base));
    sj_status status = back_arena(base, welcome);
    if (status == SJ_OK) {
        status = map_fork_page(base);
    }
    if (status != SJ_OK) {
        (void)sj_sys_unmap(base, bytes);
        return status;
    }
    fill_header((sj_arena_header *)base, welcome);
    sj_recorder.arena = (sj_arena_header *)base;
    sj_recorder.arena_bytes = bytes;
    sj_recorder.directory = directory;
    sj_recorder.follows_forks = (welcome->follow_children & SJ_FOLLOW_FORK) != 0;
    atomic_store(&sj_recorder.slot_counts, sj_recorder_slot_counts(welcome->max_threads, 0));
    atomic_store(&sj_recorder.has_marks, 0);
    sj_recorder.slots = (sj_thread_slot *)(base + SJ_ARENA_HEADER_BYTES);
    sj_recorder.counted_functions =
        (welcome->runtimes & SJ_LINK_RUNTIME_COUNTING) != 0
            ? base + sj_arena_counted_offset(welcome->max_threads, welcome->chunks_per_thread)
            : NULL;
    atomic_store(&sj_recorder.next_slot, 0);
    /* Pairs with the acquire load in the slow path's advance_cursor. */
    atomic_store_explicit(&sj_recorder.armed, 1, memory_order_release);
    if (sj_recorder_self.mode == SJ_MODE_OFF) {
        sj_recorder_self.mode = SJ_MODE_NEW;
        sj_recorder_self.cursor = 0;
    }
    return SJ_OK;
}

sj_status sj_recorder_start(const char *directory, const char *name, const sj_link_welcome *welcome)
{
    if (!is_valid(welcome)) {
        return SJ_EINVAL;
    }
    sj_link_welcome fitting = *welcome;
    const uint64_t limit_bytes = sj_address_space_limit();
    const uint32_t chunks = welcome->chunks_per_thread;
    fitting.max_threads = sj_address_space_threads(welcome->max_threads, chunks, limit_bytes);
    return sj_address_space_is_enough(fitting.max_threads, chunks, limit_bytes)
               ? start(directory, name, &fitting)
               : SJ_ENOMEM;
}

bool sj_recorder_may_call(void)
{
    return sj_recorder.arena != NULL ? atomic_load(&sj_recorder.arena->is_confined) == 0
                                     : atomic_load(&sj_recorder.is_confined) == 0;
}

bool sj_recorder_begin_calls(void)
{
    /* Sequentially consistent with sj_recorder_confine: either it sees this thread, or this thread
     * sees that the process is confined. */
    atomic_fetch_add(&sj_recorder.calling, 1);
    if (!sj_recorder_may_call()) {
        atomic_fetch_sub(&sj_recorder.calling, 1);
        return false;
    }
    return true;
}

void sj_recorder_end_calls(void)
{
    atomic_fetch_sub(&sj_recorder.calling, 1);
}

void sj_recorder_confine(void)
{
    const uint64_t start_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    if (sj_recorder.arena == NULL || atomic_exchange(&sj_recorder.arena->is_confined, 1) != 0) {
        return;
    }
    while (atomic_load(&sj_recorder.calling) != 0 &&
           sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns < CALLS_END_NS) {
        (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

/* Stores the CPU time of a thread. A thread that has ended has no clock; its slot keeps the earlier
 * value. */
static void record_thread_cpu(sj_thread_slot *slot)
{
    struct timespec used;
    /* The number of a thread's own clock, as the kernel encodes it (pthread_getcpuclockid). */
    const int64_t clock = (int64_t)(int32_t)(~slot->tid << 3 | 6);
    if (SJ_SYS(SYS_clock_gettime, clock, (long)(uintptr_t)&used, 0, 0, 0, 0) == 0) {
        const uint64_t cpu_ns = (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
        atomic_store_explicit(&slot->cpu_ns, cpu_ns + 1, memory_order_relaxed);
    }
}

void sj_recorder_count_thread(uint32_t tid, const uint64_t *allocated_bytes)
{
    const uint32_t begun =
        sj_recorder.arena != NULL ? atomic_load(&sj_recorder.arena->slots_begun) : 0;
    for (uint32_t i = 0; i < begun; i++) {
        sj_thread_slot *slot = &sj_recorder.slots[i];
        if (atomic_load_explicit(&slot->state, memory_order_acquire) == SJ_THREAD_LIVE &&
            slot->tid == tid && sj_recorder_begin_calls()) {
            record_thread_cpu(slot);
            sj_recorder_end_calls();
            if (allocated_bytes != NULL) {
                atomic_store_explicit(&slot->allocated_bytes, *allocated_bytes + 1,
                                      memory_order_relaxed);
            }
        }
    }
}

/* Marks the threads that have ended: signal 0 to them fails. A thread that is just ending may still
 * be found; its calls are then recorded as open, which they were. */
static void record_ended_threads(void)
{
    const int64_t pid = SJ_SYS(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const uint32_t begun = atomic_load(&sj_recorder.arena->slots_begun);
    for (uint32_t i = 0; i < begun; i++) {
        sj_thread_slot *slot = &sj_recorder.slots[i];
        if (atomic_load_explicit(&slot->state, memory_order_acquire) != SJ_THREAD_LIVE) {
            continue;
        }
        if (SJ_SYS(SYS_tgkill, pid, slot->tid, 0, 0, 0, 0) == -ESRCH) {
            atomic_store_explicit(&slot->has_exited, 1, memory_order_relaxed);
        } else {
            record_thread_cpu(slot);
        }
    }
}

/* Records only the calling thread's name. Reading another thread's name would need a descriptor,
 * which a fork could inherit. */
static void record_own_name(void)
{
    sj_thread_slot *slot = sj_recorder_self.slot;
    if (slot != NULL) {
        (void)SJ_SYS(SYS_prctl, PR_GET_NAME, slot->last_name, 0, 0, 0, 0);
    }
}

void sj_recorder_end(void)
{
    if (sj_recorder.arena != NULL && !sj_recorder_is_forked() && sj_recorder_may_call()) {
        record_ended_threads();
        record_own_name();
    }
    /* Pairs with the consumer's load of the state: has_exited and last_name are set before. */
    sj_recorder_set_state(SJ_ARENA_ENDED);
}

void sj_recorder_set_state(sj_arena_state state)
{
    if (sj_recorder_is_armed() && !sj_recorder_is_forked()) {
        atomic_store_explicit(&sj_recorder.arena->state, state, memory_order_release);
    }
}

bool sj_recorder_is_armed(void)
{
    return atomic_load_explicit(&sj_recorder.armed, memory_order_acquire) != 0;
}

void sj_recorder_disarm(sj_disarm_reason reason)
{
    if (atomic_exchange(&sj_recorder.armed, 0) != 0 && !sj_recorder_is_forked()) {
        atomic_store(&sj_recorder.arena->disarm_reason, reason);
        atomic_store(&sj_recorder.arena->state, SJ_ARENA_DISARMED);
    }
}

void sj_recorder_exempt(void)
{
    sj_recorder_self.cursor = 0;
    sj_recorder_self.mode = SJ_MODE_EXEMPT;
}

void sj_recorder_report_overwritten(const sj_overwritten *found)
{
    if (sj_recorder_is_armed() && sj_recorder.arena != NULL && !sj_recorder_is_forked()) {
        sj_recorder.arena->overwritten = *found;
    }
}

void sj_recorder_count_unrecorded(sj_unrecorded reason)
{
    if (reason != SJ_UNRECORDED_NONE && sj_recorder_is_armed() && sj_recorder.arena != NULL) {
        atomic_fetch_add(sj_arena_unrecorded(sj_recorder.arena, reason), 1);
    }
}

static bool is_own_arena(void)
{
    return sj_recorder.arena != NULL && sj_recorder.arena->pid == sj_sys_pid();
}

static uint32_t exec_step(sj_unrecorded reason)
{
    return reason == SJ_UNRECORDED_NONE ? SJ_ARENA_EXEC_JOINS : SJ_ARENA_EXEC_COUNTED;
}

void sj_recorder_begin_exec(sj_unrecorded reason)
{
    sj_recorder_count_unrecorded(reason);
    if (is_own_arena()) {
        atomic_fetch_add(&sj_recorder.arena->own_execs, exec_step(reason));
    }
}

void sj_recorder_cancel_exec(sj_unrecorded reason)
{
    if (reason != SJ_UNRECORDED_NONE && sj_recorder_is_armed() && sj_recorder.arena != NULL) {
        atomic_fetch_sub(sj_arena_unrecorded(sj_recorder.arena, reason), 1);
    }
    if (is_own_arena()) {
        atomic_fetch_sub(&sj_recorder.arena->own_execs, exec_step(reason));
    }
}

void sj_recorder_count_refused(void)
{
    if (sj_recorder.arena != NULL) {
        atomic_fetch_add(&sj_recorder.arena->functions_refused, 1);
    }
}

void sj_recorder_count_lost_value(void)
{
    if (sj_recorder.arena != NULL) {
        atomic_fetch_add(&sj_recorder.arena->values_lost, 1);
    }
}

uint64_t sj_recorder_cpu_ns(void)
{
    return sj_sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void sj_recorder_count_cpu(uint64_t since_ns)
{
    if (sj_recorder.arena != NULL) {
        atomic_fetch_add(&sj_recorder.arena->agent_cpu_ns, sj_recorder_cpu_ns() - since_ns);
    }
}

void sj_recorder_retire(void)
{
    if (sj_recorder.arena != NULL && !sj_recorder_is_forked() && sj_recorder_may_call()) {
        record_ended_threads();
    }
    sj_recorder_set_state(SJ_ARENA_ENDED);
    atomic_store(&sj_recorder.armed, 0);
}

void sj_recorder_park(void)
{
    sj_recorder_thread *self = &sj_recorder_self;
    const uint32_t was_busy = self->busy; /* by the slow path that a forking handler interrupted */
    self->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    self->parked = self->cursor;
    self->cursor = 0;
    self->is_forking = 1;
    sj_recorder_end_showing_memory();
    atomic_signal_fence(memory_order_seq_cst);
    self->busy = was_busy;
}

void sj_recorder_unpark(void)
{
    sj_recorder_thread *self = &sj_recorder_self;
    const uint32_t was_busy = self->busy;
    self->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    if (self->is_forking) {
        self->cursor = self->parked;
        self->is_forking = 0;
        sj_recorder_begin_showing_memory();
    }
    atomic_signal_fence(memory_order_seq_cst);
    self->busy = was_busy;
}

/* Returns the frame of the handler that called fork, 0 if there is none, or SJ_UNKNOWN_HANDLER. If
 * the parent was confined, this process may make no system call either. */
static uint64_t find_forking_handler(const sj_recorder_thread *self)
{
    if (self->slot == NULL || !sj_recorder_may_call()) {
        return 0;
    }
    const sj_stack_bounds stack = {.low = self->slot->stack_low,
                                   .high = self->slot->stack_high,
                                   .is_own = self->has_own_stack};
    return sj_recorder_find_handler(stack, 0);
}

/* Leaves the parent's arena. A handler that forked may have interrupted code in the slow path, or
 * between the reservation of a record and its writing. Such code still uses the arena's
 * addresses. */
static void leave_parents_arena(const sj_recorder_thread *self, uint64_t handler)
{
    if (handler != 0 || self->slow_at != 0 || self->wait_at != 0) {
        sj_recorder_replace_arena();
    } else {
        sj_recorder_unmap_arena();
    }
}

void sj_recorder_after_fork(void)
{
    sj_recorder_thread *self = &sj_recorder_self;
    const bool is_in_slow_path = self->busy != 0 || self->wait_at != 0;
    self->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    const bool may_call = sj_recorder_may_call();
    atomic_store(sj_recorder_usable_mask, SJ_USABLE_MASK);
    const uint64_t handler = sj_recorder.arena != NULL ? find_forking_handler(self) : 0;
    self->forked_in = handler != SJ_UNKNOWN_HANDLER ? handler : 0;
    atomic_store(&sj_recorder.is_confined, may_call ? 0 : 1);
    atomic_store(&sj_recorder.armed, 0);
    atomic_store(&sj_recorder.calling, 0);
    sj_recorder_end_counting(self); /* the bitmap of counted functions is in the arena */
    if (sj_recorder.arena != NULL) {
        if (may_call) {
            leave_parents_arena(self, handler);
        }
        sj_recorder.arena = NULL;
    }
    if (is_in_slow_path && (handler != 0 || self->slot == NULL || !may_call)) {
        self->left_path = self->slow_path;
    }
    self->forks++;
    self->cursor = 0;
    self->mode = SJ_MODE_NEW;
    self->slow_at = 0;
    self->slot = NULL;
    sj_recorder_memory_place = NULL;
    self->chunk = NULL;
    self->is_forking = 0;
    self->drop_calls = 0;
    self->drop_events = 0;
    self->open = (sj_recorder_open_calls){.kept = 0};
    self->waited_ticks = 0;
    self->wait_at = 0;
    self->wait_counts = 0;
    atomic_store(&self->nested, 0);
    self->wait_failed = 0;
    self->refusal_counted = 0;
    self->refused_ticks = 0;
    atomic_signal_fence(memory_order_seq_cst);
    self->busy = 0;
}

void sj_recorder_unmap(void)
{
    atomic_store(&sj_recorder.armed, 0);
    sj_recorder_owns_slots = &owns_none;
    sj_recorder_usable_mask = &constant_mask;
    if (sj_recorder.arena != NULL) {
        sj_recorder_unmap_arena();
    }
    if (sj_recorder.fork_page != NULL) {
        (void)sj_sys_unmap(sj_recorder.fork_page, sj_page_bytes());
        sj_recorder.fork_page = NULL;
    }
}
