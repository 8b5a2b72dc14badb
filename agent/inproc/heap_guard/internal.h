/* Internal header of heap_guard; not included outside this folder. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_INTERNAL_H
#define SJ_AGENT_INPROC_HEAP_GUARD_INTERNAL_H

#include "agent/abi/page.h"
#include "agent/abi/zombies.h"
#include "agent/inproc/heap_guard/delayed_free.h"
#include "agent/inproc/heap_guard/heap_guard.h"
#include "agent/inproc/heap_guard/objects.h"
#include "agent/inproc/heap_guard/residue.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/dispatch.h"

#include <signal.h>
#include <stddef.h>

/* The return address of the allocator call that this thread is counting (counting.c). 0 if the
 * thread is not counting a call. */
extern __thread uint64_t sj_counted_site
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns the return address of the program's call. Use it only in a function to which a patched
 * entry jumps: its return address lies directly above its saved frame pointer. */
#define SJ_CALL_SITE_OF_ENTRY()                                                                    \
    sj_return_slots_true_address((uint64_t)(uintptr_t)__builtin_frame_address(0) +                 \
                                     sizeof(uint64_t),                                             \
                                 (uint64_t)(uintptr_t)__builtin_return_address(0))

/* Like SJ_CALL_SITE_OF_ENTRY, but also correct in a function that counting.c calls: counting.c
 * saves the program's return address first. */
#define SJ_CALL_SITE() (sj_counted_site != 0 ? sj_counted_site : SJ_CALL_SITE_OF_ENTRY())

enum {
    SJ_POOL_SMALL_BYTES = 16 << 10, /* Largest block of the first class of slots. */
    SJ_POOL_BLOCK_MAX_BYTES = 1 << 20,
    SJ_POOL_ALIGNMENT = 16
};

/* States of a slot of the pool. A slot holds one block. */
typedef enum sj_slot_state {
    SJ_SLOT_UNUSED = 0, /* Never used, or a thread is filling it. */
    SJ_SLOT_LIVE = 1,
    SJ_SLOT_FREED = 2,
    /* Freed, and a thread restores the content of one of its pages. The slot is not reused now. */
    SJ_SLOT_RESTORING = 3
} sj_slot_state;

typedef struct sj_pool_slot {
    _Atomic uint32_t state; /* An sj_slot_state. */
    /* True if a page that should be closed is open, because the program accessed it. */
    _Atomic uint32_t is_open;
    _Atomic uint32_t is_reported; /* True if a use of this block was reported. */
    /* Bits of sj_block_family: the functions that may have allocated the block. */
    uint32_t families;
    uint32_t size;
    uint32_t held_bytes;  /* Bytes of memory that the slot's pages use. */
    uint32_t is_prepared; /* True once all pages of the slot have been closed. */
    uint32_t reserved;
    /* 1 + the position of the block's content in the ring of saved contents; 0 if it is not saved.
     */
    uint64_t saved_at;
    uint64_t address;
    uint64_t object;        /* Address of the Objective-C object in the block; 0 if not known. */
    const char *class_name; /* Name of the object's class. */
    /* The stack of the allocation follows this structure, and then the stack of the free. */
    sj_zombie_trace allocation;
    sj_zombie_trace release;
} sj_pool_slot;

static inline bool sj_slot_is_freed(const sj_pool_slot *slot)
{
    return atomic_load(&slot->state) >= SJ_SLOT_FREED;
}

#define sj_heap_pool (sj_residue_now->pool)

/* For each patched entry, the address by which the original function can be called. */
#define sj_heap_originals (sj_residue_now->originals)

/* Number of allocations of this thread until the next sampled one. */
extern __thread int64_t sj_sampling_countdown
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns the number of allocations until the next guarded one, at least 1. It is geometrically
 * distributed: on average one allocation in `one_in` is guarded. `random` is uniformly distributed.
 */
int64_t sj_sampling_distance(uint32_t random, uint64_t one_in);

/* Maps the pool of a new residue. Returns false if out of memory. */
bool sj_pool_init(const sj_zombie_settings *settings);

/* Uses the pool that an earlier agent left. Its live blocks stay valid. */
void sj_pool_resume(void);

/* Opens all pages, so that uses of freed blocks do not fault, and releases the memory of freed
 * blocks. The caller has stopped all other threads. */
void sj_pool_detach(void);

/* True if a sampled allocation should not be guarded, because few blocks are unused. The fewer
 * blocks are unused, the more often this returns true. So later allocations still find blocks, and
 * freed blocks stay closed longer. `random` is uniformly distributed. */
bool sj_pool_spares_blocks(uint32_t random);

/* Returns the class whose slots contain an address of the pool, or NULL for an address after the
 * last slot. */
static inline __attribute__((always_inline)) const sj_pool_class *
sj_pool_class_at(const sj_pool *pool, uint64_t address)
{
    for (uint32_t i = 0; i < SJ_POOL_CLASSES; i++) {
        const sj_pool_class *class = &pool->classes[i];
        if (address < class->start + (uint64_t) class->slots * class->slot_bytes) {
            return class;
        }
    }
    return NULL;
}

/* Returns a zeroed block for functions of `families`. Returns NULL and counts the failure if it has
 * none. `alignment` is a power of two, at least SJ_POOL_ALIGNMENT. Async-signal-safe. */
void *sj_pool_allocate(size_t bytes, size_t alignment, uint32_t families);

/* Maps the pages of a pool with `slots` slots for small blocks; all are closed. May reduce the
 * number of slots. Returns false if out of memory. */
bool sj_pages_map_pool(sj_pool *pool, uint32_t slots, uint64_t memory_bytes);

/* Sets the number and the size of the slots of each class, for `slots` slots of small blocks. The
 * start of each class is its distance from the pool's base. Returns the bytes of all slots. */
uint64_t sj_pool_size_classes(sj_pool *pool, uint32_t slots);

/* Turns the start of each class into an address. Call it once, when `pool->base` is mapped. */
void sj_pool_place_classes(sj_pool *pool);

/* Opens all pages of the pool and drops the saved contents. */
void sj_pages_open_all(sj_pool *pool);

/* Makes whole pages accessible. Returns false if the kernel refuses. */
bool sj_pages_open(uint64_t address, uint64_t bytes);

/* Opens a page that the program has accessed. The page may belong to a slot that was never used. */
void sj_pages_open_touched(uint64_t page);

/* Makes whole pages inaccessible. May drop their content. Returns false if the kernel refuses. */
bool sj_pages_close(uint64_t address, uint64_t bytes);

/* Closes all pages of a slot that was never used, or of which some pages may be open. Returns false
 * if the kernel refuses. */
bool sj_pages_close_slot(uint64_t slot_start, uint64_t slot_bytes);

/* Saves the content of a block that is about to be closed, if closing would drop it. */
void sj_pages_save(sj_pool_slot *slot);

/* True if the saved content of a block still exists. */
bool sj_pages_is_saved(const sj_pool_slot *slot);

/* Copies the saved content of a block back to one open page. Does nothing if it no longer exists.
 */
void sj_pages_restore(const sj_pool_slot *slot, uint64_t page);

/* Drops the older half of all saved contents. */
void sj_pages_forget_half(sj_pool *pool);

/* Counts an allocation that is not guarded because faults cannot be handled. */
void sj_pool_count_refused(void);

/* Frees a block of the pool, or reports why it cannot be freed. Also reports a block that functions
 * of `families` may not free. `site` is the return address of the call that frees the block. */
void sj_pool_free(void *block, uint64_t site, uint32_t families);

/* Reports a live block if the program has written to the bytes around it, unless the block was
 * reported before. Call it when the program passes the block to a call. `site` is the return
 * address of the call. */
void sj_pool_check(sj_pool_slot *slot, uint64_t site);

/* Drops the older half of the saved contents. If the pool has no guard regions, drops the content
 * of the older half of the freed blocks instead. The pages of freed blocks stay closed. */
void sj_pool_shrink(void);

/* True if the address lies in the pool. */
static inline bool sj_pool_has(uint64_t address)
{
    return (address - sj_heap_pool.base) >> sj_heap_pool.shift == 0;
}

/* Returns the slot whose data pages, or the guard page before them, contain an address of the pool.
 * Returns NULL for an address after the last slot. */
sj_pool_slot *sj_pool_find(uint64_t address);

sj_pool_slot *sj_pool_slot_at(uint32_t index);

/* Returns the address of the guard page before the slot's data pages. */
uint64_t sj_pool_slot_start(const sj_pool_slot *slot);

/* Returns the address after the slot's data pages. The next slot's guard page, or a closed page,
 * follows. */
uint64_t sj_pool_slot_end(const sj_pool_slot *slot);

/* Opens the page at `address`, so that the program can access it and continue. Restores the content
 * of a freed block. `slot` may be NULL. */
void sj_pool_open_pages(sj_pool_slot *slot, uint64_t address);

/* Reports a use of a slot's block, or of no block if `slot` is NULL. Each block is reported once.
 * `use` has the registers; this function copies the stack. `site` is the address of the faulty
 * code; the number of reports per site is limited. Returns whether the program continues or stops.
 */
sj_zombie_on_use sj_report_use(sj_pool_slot *slot, sj_zombie_kind kind, uint64_t address,
                               bool is_write, const sj_zombie_trace *use, uint64_t site);

/* Reports a use of a block whose free is delayed. `here` is NULL if the code that used the block is
 * not known. Returns whether the program continues or stops. */
sj_zombie_on_use sj_report_kept(sj_kept_block *kept, sj_zombie_kind kind, uint64_t address,
                                const sj_zombie_trace *here, uint64_t site);

/* Writes everything into the report except the use, which sj_report_finish writes. */
void sj_report_fill_kept(sj_zombie_report *report, const sj_kept_block *kept, sj_zombie_kind kind,
                         uint64_t address);

/* True if the policy has rules that always guard some allocations, by size or by call site. Then
 * sj_guard_wants has to check every allocation. */
bool sj_guard_has_rules(const sj_zombie_region *region);

/* True if a rule of the policy guards an allocation of this size or with this return address. */
bool sj_guard_wants(const sj_zombie_region *region, size_t bytes, uint64_t site);

/* True if sj_guard_next_allocations asked for guarded allocations on this thread. */
bool sj_guard_is_forced(void);

/* True if our handlers of SIGSEGV and SIGBUS are installed. The first call installs them. Returns
 * false after that has failed, while another thread installs them, and in a child of vfork. */
bool sj_faults_are_handled(void);

/* Returns the slot whose block an access to a closed page of the pool belongs to, and writes what
 * is wrong. Returns NULL and writes SJ_ZOMBIE_WILD_ACCESS if no block is near. */
sj_pool_slot *sj_faults_classify(uint64_t address, sj_zombie_kind *kind);

/* Restores the program's handlers. The caller has stopped all other threads. */
void sj_faults_end(void);

/* Lets the calling process install our handlers. A child of vfork may not. */
void sj_faults_adopt(void);

/* Replaces the program's sigaction. Stores an action for SIGSEGV or SIGBUS while our handlers are
 * installed. */
int sj_faults_sigaction(int signal, const struct sigaction *action, struct sigaction *old);

/* Like pthread_sigmask, but leaves SIGSEGV and SIGBUS unblocked: the kernel ends a program that
 * faults while they are blocked. */
int sj_faults_sigmask(int how, const sigset_t *set, sigset_t *old);

/* Context of sj_entries_emit: the module whose entries are patched. */
typedef struct sj_entries_context {
    const sj_zombie_region *region;
    sj_heap_part part;
} sj_entries_context;

/* Writes the stub of one entry, as the `emit` function of sj_hooks_entries. `context` is an
 * sj_entries_context. sj_residue_now has been created. */
void sj_entries_emit(void *context, sj_code_emitter *emitter, uint32_t index);

/* Returns the address of the function that counts the allocations or frees of an entry, or 0 if its
 * calls are not counted. */
uint64_t sj_counting_entry(const sj_zombie_region *region, sj_heap_entry entry);

/* True if the sizes of the allocator's blocks can be read. */
bool sj_counting_is_possible(const sj_zombie_region *region);

/* Start and stop counting the bytes that threads allocate and free. Other threads may run. */
void sj_counting_begin(const sj_zombie_region *region);
void sj_counting_end(void);

/* True if this processor is supported. */
bool sj_entries_supported(void);

/* Returns the function that an allocating entry calls for each allocation that may be sampled. */
const void *sj_allocation_handler(sj_heap_entry entry);

/* Returns the function that a freeing entry calls for blocks of the pool. sj_residue.families is
 * filled before. */
const void *sj_free_handler(sj_heap_entry entry);

/* Returns the function to which the entry of a system call (read, write, ...) jumps if the buffer
 * lies in the pool. */
uint64_t sj_buffer_call(sj_heap_entry entry);

/* Sends SIGABRT to the calling thread if `next` is SJ_ZOMBIE_STOP. */
void sj_report_stop_if(sj_zombie_on_use next);

#endif
