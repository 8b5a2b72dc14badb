/* Design notes
 *
 * When a thread claims a slot, the recorder searches for the bounds of the thread's stack. glibc
 * keeps the stack's address and size in the thread's control block, at an offset that differs
 * between versions. So the recorder scans the block for two words that describe memory with both
 * this frame and the block. If there are none, the recorder reads /proc/self/maps, which takes a
 * hundred times as long. */
#include "agent/abi/page.h"
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/maps.h"
#include "agent/inproc/recorder/memory.h"
#include "agent/inproc/recorder/sys.h"

#include <sys/prctl.h>
#include <sys/resource.h>

enum { SLOTS_AT_ONCE = 16, BLOCK_SPACE_BYTES = 16384 };
/* The maximum size of a stack. Every stack lies above this address, also in emulators. */
#define STACK_MAX_BYTES (UINT64_C(1) << 36)

/* Finds the bounds of the stack in the thread's control block. The block lies at the thread pointer
 * (x86-64) or below the thread pointer (AArch64). Reads only the piece of a page around the thread
 * pointer, because other pages may be unmapped. Returns false if the piece does not contain the
 * bounds. */
static bool find_in_control_block(uint64_t here, sj_stack_bounds *bounds)
{
    const uint64_t block = sj_arch_thread_pointer();
    const uint64_t piece = block & ~(uint64_t)(SJ_PAGE_LEAST_BYTES - 1);
    const volatile uint64_t *words = (const volatile uint64_t *)piece;
    for (uint32_t i = 0; block > here && i + 1 < SJ_PAGE_LEAST_BYTES / sizeof(*words); i++) {
        const uint64_t low = words[i];
        const uint64_t bytes = words[i + 1];
        if (low > STACK_MAX_BYTES && low <= here && bytes < STACK_MAX_BYTES &&
            low + bytes > block && low + bytes - block < BLOCK_SPACE_BYTES) {
            *bounds = (sj_stack_bounds){.low = low, .high = block, .is_own = true};
            return true;
        }
    }
    return false;
}

/* Finds the bounds of the mapping that the thread runs on. The main thread's mapping may still grow
 * to RLIMIT_STACK, so the limit gives the lower bound. Stacks without guard pages share one
 * mapping. So the upper bound is the thread's control block, if the block lies in the mapping: a C
 * library puts it above the first frame. */
static sj_stack_bounds find_in_maps(uint64_t here)
{
    const uint64_t block = sj_arch_thread_pointer();
    sj_stack_bounds bounds = {0};
    char buffer[SJ_MAPS_LITTLE_BYTES];
    sj_maps maps;
    sj_mapping mapping;
    if (!sj_maps_open(&maps, buffer, sizeof(buffer))) {
        return bounds;
    }
    while (sj_maps_next(&maps, &mapping)) {
        if (here < mapping.low || here >= mapping.high) {
            continue;
        }
        bounds.low = mapping.low;
        bounds.high = block > here && block < mapping.high ? block : mapping.high;
        bounds.is_own = mapping.is_stack || bounds.high == block;
        struct rlimit limit;
        if (mapping.is_stack && SJ_SYS(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit, 0, 0) == 0 &&
            limit.rlim_cur > mapping.high - mapping.low && limit.rlim_cur < mapping.high) {
            bounds.low = mapping.high - limit.rlim_cur;
        }
        break;
    }
    sj_maps_close(&maps);
    return bounds;
}

sj_stack_bounds sj_recorder_find_stack(void)
{
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    sj_stack_bounds bounds;
    return find_in_control_block(here, &bounds) ? bounds : find_in_maps(here);
}

/* Distance in bytes from the thread pointer to the word where the C library keeps the thread's
 * number. 0: unknown. Threads that may make system calls learn the distance. Threads that claim a
 * slot while system calls are forbidden use it. */
static _Atomic int32_t tid_distance;

static uint32_t tid_at(int32_t distance)
{
    return *(const volatile uint32_t *)(sj_arch_thread_pointer() + (uint64_t)(int64_t)distance);
}

static void learn_tid_distance(uint32_t tid)
{
    const uint64_t block = sj_arch_thread_pointer();
    const int32_t in_piece = (int32_t)(block % SJ_PAGE_LEAST_BYTES);
    const int32_t known = atomic_load_explicit(&tid_distance, memory_order_relaxed);
    if (known != 0 && known < SJ_PAGE_LEAST_BYTES - in_piece && known >= -in_piece &&
        tid_at(known) == tid) {
        return;
    }
    for (int32_t at = 4; at < SJ_PAGE_LEAST_BYTES; at += 4) {
        /* Search above the thread pointer first: x86-64 has the number there. */
        const bool is_behind = at + 4 <= SJ_PAGE_LEAST_BYTES - in_piece;
        if (is_behind && tid_at(at) == tid) {
            atomic_store_explicit(&tid_distance, at, memory_order_relaxed);
            return;
        }
    }
    for (int32_t at = -4; at >= -in_piece; at -= 4) {
        if (tid_at(at) == tid) {
            atomic_store_explicit(&tid_distance, at, memory_order_relaxed);
            return;
        }
    }
}

/* Reads the thread's number from its control block, without a system call. Returns 0 if the place
 * is unknown. */
static uint32_t tid_without_call(void)
{
    const uint64_t block = sj_arch_thread_pointer();
    const int32_t in_piece = (int32_t)(block % SJ_PAGE_LEAST_BYTES);
    const int32_t known = atomic_load_explicit(&tid_distance, memory_order_relaxed);
    const bool is_readable =
        known != 0 && known < SJ_PAGE_LEAST_BYTES - in_piece && known >= -in_piece;
    return is_readable ? tid_at(known) : 0;
}

/* Prepares a slot at its first claim: all its chunks become free, and `slots_begun` covers the
 * slot. The arena does not prepare all 512 slots at its start. They take 32 pages, which would cost
 * a tenth of a short process's time. */
static void prepare_slot(sj_thread_slot *slot)
{
    sj_arena_header *arena = sj_recorder.arena;
    const uint32_t end = (uint32_t)(slot - sj_recorder.slots) + 1;
    uint32_t begun = atomic_load_explicit(&arena->slots_begun, memory_order_relaxed);
    if (slot->start_ticks == 0) {
        const uint64_t all = arena->chunks_per_thread == SJ_ARENA_MAX_CHUNKS
                                 ? UINT64_MAX
                                 : (UINT64_C(1) << arena->chunks_per_thread) - 1;
        atomic_store_explicit(&slot->free_chunks, all, memory_order_relaxed);
    }
    while (begun < end &&
           !atomic_compare_exchange_weak_explicit(&arena->slots_begun, &begun, end,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void fill_slot(sj_thread_slot *slot)
{
    sj_stack_bounds bounds = {0};
    prepare_slot(slot);
    slot->start_ticks = sj_arch_ticks();
    for (size_t i = 0; i < sizeof(slot->name); i++) {
        slot->name[i] = '\0';
        slot->last_name[i] = '\0';
    }
    if (sj_recorder_begin_calls()) {
        slot->tid = sj_sys_tid();
        learn_tid_distance(slot->tid);
        bounds = sj_recorder_find_stack();
        (void)SJ_SYS(SYS_prctl, PR_GET_NAME, slot->name, 0, 0, 0, 0);
        sj_recorder_end_calls();
    } else {
        slot->tid = tid_without_call();
    }
    slot->stack_low = bounds.low;
    slot->stack_high = bounds.high;
    sj_recorder_self.has_own_stack = bounds.is_own;
    atomic_store_explicit(&slot->backed_chunks, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->chunk_sequence, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->dropped_calls, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->dropped_events, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->waited_ticks, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->has_exited, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->cpu_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->allocated_bytes, 0, memory_order_relaxed);
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        atomic_store_explicit(&slot->memory[i], 0, memory_order_relaxed);
    }
}

static bool claim_slot(sj_recorder_thread *self, sj_thread_slot *slot)
{
    uint32_t expected = SJ_THREAD_FREE;
    if (atomic_load_explicit(&slot->state, memory_order_relaxed) != SJ_THREAD_FREE ||
        !atomic_compare_exchange_strong_explicit(&slot->state, &expected, SJ_THREAD_CLAIMED,
                                                 memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    fill_slot(slot);
    /* Pairs with the consumer's acquire load of the state. */
    atomic_store_explicit(&slot->state, SJ_THREAD_LIVE, memory_order_release);
    self->window_low = 0;
    self->has_window = false;
    self->open = (sj_recorder_open_calls){.kept = 0};
    self->slot = slot;
    sj_recorder_begin_counting(self);
    sj_recorder_begin_showing_memory();
    return true;
}

/* Allocates memory for the next slots. Returns false if all slots have memory or the
 * allocation fails. */
static bool back_more_slots(sj_recorder_thread *self)
{
    uint64_t counts = atomic_load_explicit(&sj_recorder.slot_counts, memory_order_acquire);
    const uint32_t backed = sj_recorder_backed_of(counts);
    if (backed >= sj_recorder_most_of(counts) ||
        !sj_recorder_back(self, &sj_recorder.slots[backed], SLOTS_AT_ONCE * sizeof(sj_thread_slot),
                          0)) {
        return false;
    }
    /* If another thread has counted these slots meanwhile, the exchange fails, and they are
     * counted once. */
    (void)atomic_compare_exchange_strong(&sj_recorder.slot_counts, &counts, counts + SLOTS_AT_ONCE);
    return true;
}

static bool claim_backed(sj_recorder_thread *self)
{
    const uint32_t first = atomic_load_explicit(&sj_recorder.next_slot, memory_order_relaxed);
    const uint32_t count = sj_recorder_slots_backed();
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = (first + i) % count;
        if (claim_slot(self, &sj_recorder.slots[number])) {
            atomic_store_explicit(&sj_recorder.next_slot, number + 1, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

bool sj_recorder_claim(sj_recorder_thread *self)
{
    atomic_fetch_add_explicit(&sj_recorder.arena->slot_requests, 1, memory_order_relaxed);
    do {
        if (claim_backed(self)) {
            return true;
        }
    } while (back_more_slots(self));
    return false;
}
