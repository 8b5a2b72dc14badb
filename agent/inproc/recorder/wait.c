#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

enum { WAIT_SLICE_NS = 2000000, NS_PER_MS = 1000000 };
enum { UNSEEN_BLOCK_MS = 100 };

/* Counters that include a thread while it waits. */
typedef enum sj_wait_count { WAIT_CALLING = 1, WAIT_DRAIN = 2, WAIT_SLOT = 4 } sj_wait_count;

/* A running wait. Its arena stays mapped in the child of a handler that forks meanwhile. */
typedef struct sj_wait {
    sj_arena_header *arena;
    uint32_t forks; /* the thread's `forks` when the wait began */
    bool is_noted;  /* the thread's wait_at and wait_counts describe this wait */
} sj_wait;

/* True in the child of a signal handler that forked during the wait: the slot and the arena's
 * counters are the parent's. */
static bool is_of_parent(const sj_recorder_thread *self, const sj_wait *wait)
{
    return sj_recorder_has_forked(self, wait->forks);
}

static _Atomic uint32_t *counter_of(sj_arena_header *arena, sj_wait_count count)
{
    if (count == WAIT_CALLING) {
        return &sj_recorder.calling;
    }
    return count == WAIT_DRAIN ? &arena->drain_waiters : &arena->slot_waiters;
}

/* Notes a wait in the thread, and returns true. Returns false in a handler that has interrupted
 * another wait, whose note is still needed. */
static bool note_wait(sj_recorder_thread *self)
{
    const bool is_first = self->wait_at == 0;
    if (is_first) {
        self->wait_counts = WAIT_CALLING;
        self->wait_at = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    }
    return is_first;
}

static void begin_count(sj_recorder_thread *self, sj_wait_count count, const sj_wait *wait)
{
    atomic_fetch_add(counter_of(wait->arena, count), 1);
    self->wait_counts |= wait->is_noted ? (uint32_t)count : 0;
}

static void end_count(sj_recorder_thread *self, sj_wait_count count, const sj_wait *wait)
{
    if (is_of_parent(self, wait)) {
        return;
    }
    self->wait_counts &= wait->is_noted ? ~(uint32_t)count : UINT32_MAX;
    atomic_fetch_sub(counter_of(wait->arena, count), 1);
}

void sj_recorder_forget_wait(sj_recorder_thread *self)
{
    const uint32_t all = self->wait_counts;
    const uint32_t counts = sj_recorder_is_forked() ? all & WAIT_CALLING : all;
    self->wait_counts = 0;
    self->wait_at = 0;
    for (uint32_t count = WAIT_CALLING; count <= WAIT_SLOT; count *= 2) {
        if ((counts & count) != 0) {
            atomic_fetch_sub(counter_of(sj_recorder.arena, (sj_wait_count)count), 1);
        }
    }
}

static bool may_be_in_handler(sj_recorder_thread *self, sj_stack_bounds stack)
{
    if ((uint64_t)(uintptr_t)__builtin_frame_address(0) >= self->forked_in) {
        self->forked_in = 0; /* that handler has returned, too */
    }
    return sj_recorder_find_handler(stack, self->forked_in) != 0;
}

static void sleep_until_woken(sj_arena_header *arena, uint64_t remaining_ns)
{
    _Atomic uint32_t *word = &arena->drain_waiters;
    const struct {
        int64_t seconds;
        int64_t nanoseconds;
    } slice = {0, (int64_t)(remaining_ns < WAIT_SLICE_NS ? remaining_ns : WAIT_SLICE_NS)};
    (void)SJ_SYS(SYS_futex, word, FUTEX_WAIT, atomic_load(word), &slice, 0, 0);
}

/* Returns how long a thread waits for the consumer. Without a visible consumer process, that is
 * UNSEEN_BLOCK_MS at most. It is not 0, because another PID namespace may hide the consumer. */
static uint64_t longest_wait_ns(const sj_arena_header *arena)
{
    const uint32_t consumer = atomic_load_explicit(&arena->consumer, memory_order_relaxed);
    const bool is_there = consumer == 0 || SJ_SYS(SYS_kill, consumer, 0, 0, 0, 0, 0) != -ESRCH;
    const uint32_t most_ms =
        !is_there && arena->wait_ms > UNSEEN_BLOCK_MS ? UNSEEN_BLOCK_MS : arena->wait_ms;
    return (uint64_t)most_ms * NS_PER_MS;
}

/* Waits until `is_there` returns true, because the consumer has freed a chunk or a slot. Returns
 * false after the longest wait, in a confined process, or in a child that a handler has forked. */
static bool wait_for(sj_recorder_thread *self, bool (*is_there)(sj_recorder_thread *self),
                     const sj_wait *wait)
{
    const uint64_t start_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    bool found = false;
    begin_count(self, WAIT_DRAIN, wait);
    while (!found) {
        const uint64_t waited_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns;
        const uint64_t longest_ns = longest_wait_ns(wait->arena);
        if (waited_ns >= longest_ns || !sj_recorder_may_call()) {
            break;
        }
        sleep_until_woken(wait->arena, longest_ns - waited_ns);
        if (is_of_parent(self, wait)) {
            return false;
        }
        found = is_there(self);
    }
    end_count(self, WAIT_DRAIN, wait);
    self->wait_failed = !found;
    return found;
}

static bool may_wait(const sj_recorder_thread *self)
{
    const sj_arena_header *arena = sj_recorder.arena;
    return arena->full_policy == SJ_FULL_WAIT && arena->wait_ms != 0 && !self->wait_failed &&
           sj_recorder_may_call();
}

/* True if there is a free chunk that the thread can claim. After the file system has refused
 * memory, only chunks that have memory count. */
static bool has_free_chunk(sj_recorder_thread *self)
{
    const uint64_t free_chunks = atomic_load(&self->slot->free_chunks);
    return (free_chunks & atomic_load(&self->slot->backed_chunks)) != 0 ||
           (free_chunks != 0 && self->refused_ticks == 0);
}

/* If `busy` is 1, probes in signal handlers only count and drop. */
static void set_busy(sj_recorder_thread *self, uint32_t busy)
{
    atomic_signal_fence(memory_order_seq_cst);
    self->busy = busy;
    atomic_signal_fence(memory_order_seq_cst);
}

static void count_waited(sj_recorder_thread *self, uint64_t start_ticks)
{
    const uint64_t waited = sj_arch_ticks() - start_ticks;
    self->waited_ticks += waited;
    atomic_fetch_add_explicit(&self->slot->waited_ticks, waited, memory_order_relaxed);
}

static bool wait_for_chunk(sj_recorder_thread *self, const sj_wait *wait)
{
    const sj_stack_bounds stack = {.low = self->slot->stack_low,
                                   .high = self->slot->stack_high,
                                   .is_own = self->has_own_stack};
    /* Signal handlers record into an open chunk meanwhile. A fork needs their slow path. */
    const bool lends = self->mode == SJ_MODE_CHUNK && !self->is_forking;
    /* if the thread has no chunk, the consumer has none to give back */
    const bool has_any = atomic_load(&self->slot->backed_chunks) != 0;
    if (!has_any || may_be_in_handler(self, stack)) {
        return false;
    }
    const uint64_t start_ticks = sj_arch_ticks();
    const uint64_t slow_at = self->slow_at;
    if (lends) {
        self->slow_at = 0; /* a handler may leave the wait, and the thread is not busy then */
    }
    set_busy(self, !lends);
    const bool found = wait_for(self, has_free_chunk, wait);
    if (is_of_parent(self, wait)) {
        return false;
    }
    self->slow_at = slow_at;
    set_busy(self, 1);
    count_waited(self, start_ticks);
    return found;
}

/* True if a slot will soon be free, because its thread has ended. */
static bool is_any_ended(void)
{
    const uint32_t pid = sj_sys_pid();
    const uint32_t count = sj_recorder_slots_backed();
    const uint32_t first = atomic_load_explicit(&sj_recorder.next_slot, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        const sj_thread_slot *slot = &sj_recorder.slots[(first + i) % count];
        const uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if (state == SJ_THREAD_FREE || state == SJ_THREAD_ENDED ||
            (state == SJ_THREAD_LIVE && SJ_SYS(SYS_tgkill, pid, slot->tid, 0, 0, 0, 0) == -ESRCH)) {
            return true;
        }
    }
    return false;
}

static bool wait_for_slot(sj_recorder_thread *self, const sj_wait *wait)
{
    if (!is_any_ended() || may_be_in_handler(self, sj_recorder_find_stack())) {
        return false;
    }
    const uint64_t start_ticks = sj_arch_ticks();
    begin_count(self, WAIT_SLOT, wait);
    const bool found = wait_for(self, sj_recorder_claim, wait);
    end_count(self, WAIT_SLOT, wait);
    if (found) {
        count_waited(self, start_ticks);
    }
    return found;
}

/* Returns false if the thread may not wait. */
static bool begin_wait(sj_recorder_thread *self, sj_wait *wait)
{
    *wait = (sj_wait){.arena = sj_recorder.arena, .forks = self->forks};
    if (!may_wait(self) || !sj_recorder_begin_calls()) {
        return false;
    }
    wait->is_noted = note_wait(self);
    return true;
}

/* Ends a wait, unless sj_recorder_after_fork has cleared its state. */
static void end_wait(sj_recorder_thread *self, const sj_wait *wait)
{
    if (self->forks != wait->forks) {
        return;
    }
    if (wait->is_noted) {
        self->wait_at = 0;
        self->wait_counts = 0;
    }
    sj_recorder_end_calls();
}

bool sj_recorder_wait(sj_recorder_thread *self)
{
    sj_wait wait;
    if (!begin_wait(self, &wait)) {
        return false;
    }
    const bool found = wait_for_chunk(self, &wait);
    end_wait(self, &wait);
    return found;
}

bool sj_recorder_wait_for_slot(sj_recorder_thread *self)
{
    sj_wait wait;
    if (!begin_wait(self, &wait)) {
        return false;
    }
    const bool found = wait_for_slot(self, &wait);
    end_wait(self, &wait);
    return found;
}
