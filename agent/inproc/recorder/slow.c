/* Design notes
 *
 * The slow path owns the thread while `busy` is set. A probe in a signal handler that interrupts it
 * records if the cursor has space. Otherwise the probe counts the record as dropped and sets the
 * cursor to 0, so that the cursor never advances out of a chunk's header. Hence a cursor without
 * space means that its chunk is full, whatever its value.
 *
 * A thread that finds no free chunk continues in its discard window at full speed. It checks again
 * each time the window is full. Counting is exact. A record may be reserved but not yet written
 * when the window is counted, because its probe was interrupted. An unwritten record stays and is
 * counted next time, and the window is armed after it.
 *
 * A thread waits while it still has space: its last chunk is open and it is not `busy`, so that
 * signal handlers record. They may run the whole slow path there. Threads with few chunks keep no
 * spare chunk, because half of their memory would stay unused.
 *
 * A handler that interrupts the slow path may fork. When its child returns from the handler, the
 * slow path belongs to the parent. The child leaves it and begins its own. The agent's signal
 * restorer calls sj_recorder_restart for that. The restorer finds the slow path only if the handler
 * interrupted the agent's code, so the slow path calls no other library. If the handler has no
 * gate, its child notices the fork only at the end of a wait.
 *
 * A thread without a slot has no window. All its probes take the slow path, so that each record is
 * counted at once: the thread may end after any of them. */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <signal.h>

enum { JUMP_WORDS = 5 }; /* size of __builtin_setjmp's buffer */

/* A running slow path. */
typedef struct sj_slow_path {
    void *beginning[JUMP_WORDS];
    struct sj_slow_path *outer; /* the slow path that a handler has interrupted; NULL: none */
    uint32_t tag;
} sj_slow_path;

enum { OFF_RECORDS = SJ_CHUNK_RECORDS, MAX_NOTES = 3, SPARE_FROM_CHUNKS = 4 };

/* Counts a record of a thread without a slot. */
static void count_refused(uint32_t tag)
{
    sj_recorder_add(&sj_recorder.arena->calls_refused, sj_record_calls(tag));
    sj_recorder_add(&sj_recorder.arena->events_refused, 1);
}

/* Drops the record of a signal handler's probe that found no space while the interrupted code runs
 * the slow path. */
static uint64_t drop_nested(sj_recorder_thread *self, uint32_t tag)
{
    if (!sj_recorder_usable(self->cursor)) {
        self->cursor = 0;
    }
    if (sj_recorder_is_armed() && !sj_recorder_is_forked()) {
        const uint64_t calls = sj_record_calls(tag);
        sj_recorder_add(&sj_recorder.arena->slow_path_reentries, 1);
        if (self->slot != NULL) {
            sj_recorder_add(&self->slot->dropped_calls, calls);
            sj_recorder_add(&self->slot->dropped_events, 1);
            sj_recorder_add(&self->nested, calls << 32 | 1);
        } else {
            count_refused(tag);
        }
    }
    return (uint64_t)(uintptr_t)&self->trash;
}

/* Adds what signal handlers have counted to the thread's own counts. */
static void collect_nested(sj_recorder_thread *self)
{
    const uint64_t counted = atomic_exchange_explicit(&self->nested, 0, memory_order_relaxed);
    self->drop_calls += counted >> 32;
    self->drop_events += (uint32_t)counted;
    self->open.is_unsure |= counted != 0;
}

/* Writes the thread's pending notes at `address` and returns their end. Writes at most MAX_NOTES
 * records and, after a discard window, the entries that it kept. */
static uint64_t put_notes(sj_recorder_thread *self, uint64_t address)
{
    const uint64_t ticks = sj_arch_ticks();
    if (self->waited_ticks != 0) {
        sj_recorder_put(address, ticks, self->waited_ticks,
                        sj_record_make_tag(SJ_RECORD_NOTE, SJ_NOTE_WAITED));
        self->waited_ticks = 0;
        address += SJ_RECORD_BYTES;
    }
    const bool has_dropped = self->drop_events != 0;
    if (has_dropped) {
        sj_recorder_put(address, ticks, self->drop_calls,
                        sj_record_make_tag(SJ_RECORD_NOTE, SJ_NOTE_DROPPED_CALLS));
        sj_recorder_put(address + SJ_RECORD_BYTES, ticks, self->drop_events,
                        sj_record_make_tag(SJ_RECORD_NOTE, SJ_NOTE_DROPPED_EVENTS));
        self->drop_calls = 0;
        self->drop_events = 0;
        address += 2 * SJ_RECORD_BYTES;
    }
    return sj_recorder_put_open(self, address, ticks, has_dropped);
}

static void close_chunk(sj_recorder_thread *self)
{
    /* Pairs with the consumer's acquire load before it frees the chunk. */
    atomic_store_explicit(&self->chunk->closed_records, SJ_CHUNK_RECORDS, memory_order_release);
    self->chunk = NULL;
}

static sj_chunk_header *chunk_at(const sj_thread_slot *slot, uint32_t number)
{
    const uint64_t offset =
        sj_arena_chunk_offset(sj_recorder.arena->max_threads, sj_recorder.arena->chunks_per_thread,
                              (uint32_t)(slot - sj_recorder.slots), number);
    return (sj_chunk_header *)((uint8_t *)sj_recorder.arena + offset);
}

/* Returns a free chunk that has memory, or else one that gets memory. Returns SJ_ARENA_MAX_CHUNKS
 * if there is none. */
static uint32_t find_chunk(sj_recorder_thread *self)
{
    sj_thread_slot *slot = self->slot;
    /* Pairs with the consumer's release when it gives the zeroed chunk back. */
    const uint64_t free_chunks = atomic_load_explicit(&slot->free_chunks, memory_order_acquire);
    const uint64_t backed = atomic_load_explicit(&slot->backed_chunks, memory_order_relaxed);
    if ((free_chunks & backed) != 0) {
        return (uint32_t)__builtin_ctzll(free_chunks & backed);
    }
    if (free_chunks == 0) {
        return SJ_ARENA_MAX_CHUNKS;
    }
    const uint32_t number = (uint32_t)__builtin_ctzll(free_chunks);
    uint32_t count = 0;
    for (uint64_t left = backed; left != 0; left &= left - 1) {
        count++;
    }
    if (!sj_recorder_back(self, chunk_at(slot, number), SJ_CHUNK_BYTES, count)) {
        return SJ_ARENA_MAX_CHUNKS;
    }
    atomic_store_explicit(&slot->backed_chunks, backed | UINT64_C(1) << number,
                          memory_order_relaxed);
    return number;
}

/* Claims a free chunk, writes the notes into it and points the cursor past them. */
static bool open_chunk(sj_recorder_thread *self)
{
    sj_thread_slot *slot = self->slot;
    const uint32_t number = find_chunk(self);
    if (number == SJ_ARENA_MAX_CHUNKS) {
        return false;
    }
    atomic_fetch_and_explicit(&slot->free_chunks, ~(UINT64_C(1) << number), memory_order_acq_rel);
    sj_chunk_header *chunk = chunk_at(slot, number);
    chunk->opened_ticks = sj_arch_ticks();
    chunk->thread_slot = (uint32_t)(slot - sj_recorder.slots);
    atomic_store_explicit(&chunk->closed_records, UINT32_MAX, memory_order_relaxed);
    const uint64_t sequence = atomic_load_explicit(&slot->chunk_sequence, memory_order_relaxed) + 1;
    collect_nested(self);
    const uint64_t noted = put_notes(self, (uint64_t)(uintptr_t)chunk + SJ_CHUNK_HEADER_BYTES);
    const uint64_t next = sj_recorder_put_alternate(self, noted, sequence == 1);
    /* Pairs with the consumer's acquire load that finds the chunk. */
    atomic_store_explicit(&chunk->sequence, sequence, memory_order_release);
    atomic_store_explicit(&slot->chunk_sequence, sequence, memory_order_release);
    sj_recorder_forget_place(self);
    self->chunk = chunk;
    self->mode = SJ_MODE_CHUNK;
    self->wait_failed = 0;
    atomic_signal_fence(memory_order_seq_cst);
    self->cursor = next;
    return true;
}

/* Closes the chunk or counts the window that the cursor pointed to. */
static void close_mode(sj_recorder_thread *self)
{
    if (self->mode == SJ_MODE_CHUNK) {
        close_chunk(self);
    } else if (self->mode == SJ_MODE_DISCARD) {
        sj_recorder_count_window(self);
    }
    self->mode = SJ_MODE_NEW;
}

/* Gives the thread a slot. A thread that found none searches again after some slots were
 * recycled. */
static bool find_slot(sj_recorder_thread *self, uint32_t forks)
{
    /* Pairs with the consumer's release after it made a slot free. */
    const uint64_t recycled =
        atomic_load_explicit(&sj_recorder.arena->slots_recycled, memory_order_acquire);
    if (self->refusal_counted && self->seen_recycled == recycled) {
        return false;
    }
    if (sj_recorder_claim(self) || sj_recorder_wait_for_slot(self)) {
        return true;
    }
    if (sj_recorder_has_forked(self, forks)) {
        return false;
    }
    if (!self->refusal_counted) {
        self->refusal_counted = 1;
        sj_recorder_add(&sj_recorder.arena->threads_refused, 1);
    }
    self->seen_recycled = recycled;
    return false;
}

/* True if the thread has opened its last chunk and has enough chunks to wait for another one. */
static bool has_opened_last(const sj_recorder_thread *self)
{
    return sj_recorder.arena->chunks_per_thread >= SPARE_FROM_CHUNKS && !self->is_forking &&
           atomic_load_explicit(&self->slot->free_chunks, memory_order_relaxed) == 0;
}

/* Opens a chunk; waits if the policy allows it. If signal handlers fill the chunk while the thread
 * waits for a spare one, the thread has no chunk, so it tries again. */
static bool open_with_spare(sj_recorder_thread *self, uint32_t forks)
{
    const bool may_wait = !self->wait_failed; /* opening a chunk resets it */
    while (open_chunk(self) || (sj_recorder_wait(self) && open_chunk(self))) {
        if (may_wait && has_opened_last(self)) {
            (void)sj_recorder_wait(self);
        }
        if (sj_recorder_has_forked(self, forks)) {
            return false;
        }
        if (self->mode == SJ_MODE_CHUNK) {
            return true;
        }
        close_mode(self);
    }
    return false;
}

/* Gives the cursor a new position. Returns false if the current record must be dropped alone, or if
 * this process is a child that was forked meanwhile. */
static bool advance_cursor(sj_recorder_thread *self, uint32_t forks)
{
    if (self->mode == SJ_MODE_EXEMPT) {
        sj_recorder_arm_void(self, OFF_RECORDS);
        return true;
    }
    if (!sj_recorder_is_armed() || sj_recorder_is_forked()) {
        atomic_store(&sj_recorder.armed, 0);
        self->mode = SJ_MODE_OFF;
        sj_recorder_arm_void(self, OFF_RECORDS);
        return true;
    }
    close_mode(self);
    const bool has_slot = self->slot != NULL || find_slot(self, forks);
    if (has_slot && open_with_spare(self, forks)) {
        return true;
    }
    if (sj_recorder_has_forked(self, forks)) {
        return false;
    }
    self->mode = has_slot ? SJ_MODE_DISCARD : SJ_MODE_REFUSED;
    return has_slot && sj_recorder_arm_window(self);
}

/* Writes notes about what handlers dropped during the slow path. Two records are reserved in one
 * instruction, so that no other record comes between them. At a chunk's end, the next chunk gets
 * the notes. */
static void put_nested_notes(sj_recorder_thread *self)
{
    const uint64_t at = self->cursor & (SJ_CHUNK_BYTES - 1);
    if (self->mode != SJ_MODE_CHUNK || !sj_recorder_usable(at) ||
        at > SJ_CHUNK_BYTES - MAX_NOTES * SJ_RECORD_BYTES || self->waited_ticks != 0) {
        return;
    }
    const uint64_t address = sj_recorder_advance(self, UINT64_C(2) * SJ_RECORD_BYTES);
    if ((address & (SJ_CHUNK_BYTES - 1)) >= SJ_CHUNK_HEADER_BYTES &&
        (address & (SJ_CHUNK_BYTES - 1)) <= SJ_CHUNK_BYTES - 2 * SJ_RECORD_BYTES) {
        collect_nested(self);
        (void)put_notes(self, address);
    } else if (sj_recorder_usable(address)) {
        sj_recorder_put(address, sj_arch_ticks(), 0,
                        sj_record_make_tag(SJ_RECORD_NOTE, SJ_NOTE_WAITED));
    }
}

/* True in the child of the fork that is under way. */
static bool is_forked_child(void)
{
    return sj_recorder_is_armed() && sj_recorder_is_forked();
}

/* Handles a fork that this process has not noticed yet. A child of fork() keeps the state that the
 * fork handlers use. A child that was forked without them is counted in its parent's arena and
 * records nothing. */
static void notice_fork(sj_recorder_thread *self)
{
    if (sj_recorder.fork_page == NULL || !sj_recorder_is_forked()) {
        return;
    }
    atomic_store(sj_recorder_usable_mask, SJ_USABLE_MASK);
    if (self->is_forking == 0 && atomic_exchange(&sj_recorder.armed, 0) != 0) {
        self->cursor = 0;
        if (sj_recorder.follows_forks) {
            atomic_fetch_add(&sj_recorder.arena->forks_unannounced, 1);
        }
    }
}

static void drop_one(sj_recorder_thread *self, uint32_t tag)
{
    if (self->slot != NULL) {
        self->open.is_unsure = true;
        sj_recorder_count_drop(self, sj_record_calls(tag), 1);
    } else {
        count_refused(tag);
    }
}

/* True if a signal handler left the code with the frame `at` by longjmp. A handler that still runs
 * on top of that code would lie further down its stack, or on an alternate one. */
static bool has_left(const sj_recorder_thread *self, uint64_t at, uint64_t here)
{
    stack_t alternate;
    return at != 0 && here >= at && self->slot != NULL && self->has_own_stack &&
           at > self->slot->stack_low && here < self->slot->stack_high && sj_recorder_may_call() &&
           SJ_SYS(SYS_sigaltstack, NULL, &alternate, 0, 0, 0, 0) == 0 &&
           (alternate.ss_flags & SS_ONSTACK) == 0;
}

/* Prepares the thread for a new slow path after another one was left half-way. */
static void forget_slow(sj_recorder_thread *self)
{
    if (self->chunk == NULL && self->mode == SJ_MODE_CHUNK) {
        self->mode = SJ_MODE_NEW;
    }
    self->busy = 0;
    atomic_signal_fence(memory_order_seq_cst);
    self->slow_at = 0;
}

void sj_recorder_leave(uint64_t low, uint64_t high)
{
    sj_recorder_thread *self = &sj_recorder_self;
    if (self->wait_at >= low && self->wait_at < high) {
        sj_recorder_forget_wait(self);
    }
    if (self->busy != 0 && self->slow_at >= low && self->slow_at < high) {
        forget_slow(self);
    }
    if (sj_recorder_must_restart(low, high)) {
        self->left_path = NULL;
    }
}

bool sj_recorder_must_restart(uint64_t low, uint64_t high)
{
    const uint64_t at = (uint64_t)(uintptr_t)sj_recorder_self.left_path;
    return at != 0 && at >= low && at < high;
}

_Noreturn void sj_recorder_restart(void)
{
    __builtin_longjmp(sj_recorder_self.left_path->beginning, 1);
}

static uint64_t run_slow_path(sj_recorder_thread *self, uint32_t tag)
{
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (has_left(self, self->wait_at, here)) {
        sj_recorder_forget_wait(self);
    }
    if (has_left(self, (uint64_t)(uintptr_t)self->left_path, here)) {
        self->left_path = NULL;
    }
    if (self->busy != 0) {
        if (!has_left(self, self->slow_at, here)) {
            return drop_nested(self, tag);
        }
        forget_slow(self);
    }
    /* `slow_at` is valid whenever `busy` is set: a handler may leave the slow path at any
     * instruction. An older frame at a lower address than this one has been left. */
    const uint64_t outer_at = self->slow_at > here ? self->slow_at : 0;
    self->slow_at = here;
    atomic_signal_fence(memory_order_seq_cst);
    self->busy = 1;
    const uint32_t forks = self->forks;
    atomic_signal_fence(memory_order_seq_cst);
    notice_fork(self);
    /* During a fork, every probe takes the slow path to find out whether it runs in the child. */
    if (self->is_forking) {
        self->cursor = is_forked_child() ? 0 : self->parked;
    }
    uint64_t address = sj_recorder_advance(self, SJ_RECORD_BYTES);
    while (!sj_recorder_usable(address)) {
        self->cursor = 0;
        if (!advance_cursor(self, forks)) {
            if (sj_recorder_has_forked(self, forks)) {
                self->busy = 0;
                return sj_recorder_slow(tag);
            }
            drop_one(self, tag);
            address = (uint64_t)(uintptr_t)&self->trash;
            break;
        }
        if (atomic_load_explicit(&self->nested, memory_order_relaxed) != 0) {
            put_nested_notes(self);
        }
        address = sj_recorder_advance(self, SJ_RECORD_BYTES);
    }
    if (self->is_forking) {
        self->parked = self->cursor;
        self->cursor = 0;
    }
    atomic_signal_fence(memory_order_seq_cst);
    self->busy = 0;
    atomic_signal_fence(memory_order_seq_cst);
    self->slow_at = outer_at;
    return address;
}

uint64_t sj_recorder_slow(uint32_t tag)
{
    sj_recorder_thread *self = &sj_recorder_self;
    sj_slow_path *before = self->slow_path;
    const bool is_nested = self->busy != 0 || self->wait_at != 0;
    sj_slow_path path; /* An initializer would call memset, which changes vector registers. */
    path.outer = is_nested ? before : NULL;
    path.tag = tag;
    self->slow_path = &path;
    if (__builtin_setjmp(path.beginning) != 0) {
        const sj_slow_path *left = sj_recorder_self.left_path;
        const uint32_t left_tag = left->tag;
        sj_recorder_self.left_path = left->outer;
        sj_recorder_self.busy = 0;
        return sj_recorder_slow(left_tag);
    }
    const uint64_t address = run_slow_path(self, tag);
    sj_recorder_self.slow_path = before;
    return address;
}

uint64_t sj_recorder_slow_at_once(uint32_t tag)
{
    sj_recorder_self.wait_failed = 1; /* until a chunk is free */
    return sj_recorder_slow(tag);
}
