/* Internal header of heap_guard; not included outside this folder. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_INTERNAL_H
#define SJ_AGENT_INPROC_HEAP_GUARD_INTERNAL_H

#include "agent/abi/zombies.h"
#include "agent/inproc/heap_guard/delayed_free.h"
#include "agent/inproc/heap_guard/heap_guard.h"
#include "agent/inproc/heap_guard/objects.h"
#include "agent/inproc/heap_guard/residue.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/dispatch.h"

#include <signal.h>
#include <stddef.h>

/* The address to which the entry returns whose call this thread is counting (counting.c). 0 if the
 * thread is not in a counted entry. */
extern __thread uint64_t sj_counted_site
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns the address at which the program called the entry. Use it only in a function that an
 * entry jumps to: its return address lies directly above its saved frame pointer. */
#define SJ_CALL_SITE_OF_ENTRY()                                                                    \
    sj_return_slots_true_address((uint64_t)(uintptr_t)__builtin_frame_address(0) +                 \
                                     sizeof(uint64_t),                                             \
                                 (uint64_t)(uintptr_t)__builtin_return_address(0))

/* Like SJ_CALL_SITE_OF_ENTRY, but right also in a function that counting.c calls: that file has
 * saved the program's address. */
#define SJ_CALL_SITE() (sj_counted_site != 0 ? sj_counted_site : SJ_CALL_SITE_OF_ENTRY())

enum { SJ_POOL_PAGE = 4096, SJ_POOL_DATA_PAGES = 4 };
enum {
    SJ_POOL_BLOCK_MAX_BYTES = SJ_POOL_DATA_PAGES * SJ_POOL_PAGE,
    SJ_POOL_SLOT_BYTES = (SJ_POOL_DATA_PAGES + 1) * SJ_POOL_PAGE,
    SJ_POOL_ALIGNMENT = 16
};

/* States of a slot of the pool: a slot holds one block. */
typedef enum sj_slot_state {
    SJ_SLOT_UNUSED = 0, /* Never used, or a thread is filling it. */
    SJ_SLOT_LIVE = 1,
    SJ_SLOT_FREED = 2,
    /* Freed; not reused while a thread restores the content of one of its pages. */
    SJ_SLOT_RESTORING = 3
} sj_slot_state;

typedef struct sj_pool_slot {
    _Atomic uint32_t state; /* An sj_slot_state. */
    /* True after a use was found: pages that should be closed are open. */
    _Atomic uint32_t is_open;
    _Atomic uint32_t is_reported; /* True if a use of this block was reported. */
    uint32_t families; /* Bits of sj_block_family: which functions may have allocated the block. */
    uint32_t size;
    uint32_t held_bytes;  /* Bytes of memory that the slot's pages hold. */
    uint32_t is_prepared; /* True if all pages of the slot were closed once. */
    uint32_t reserved;
    /* 1 + the position of the block's content in the ring of saved content. 0: not saved. */
    uint64_t saved_at;
    uint64_t address;
    uint64_t object;        /* Address of the Objective-C object in the block. 0: none is known. */
    const char *class_name; /* Name of the object's class. */
    /* Its stack follows this structure. The stack of the free follows that one. */
    sj_zombie_trace allocation;
    sj_zombie_trace release;
} sj_pool_slot;

static inline bool sj_slot_is_freed(const sj_pool_slot *slot)
{
    return atomic_load(&slot->state) >= SJ_SLOT_FREED;
}

/* The pool. Then, for each entry, the address of the program's own code behind our patch. */
#define sj_heap_pool (sj_residue_now->pool)
#define sj_heap_originals (sj_residue_now->originals)

extern __thread int64_t sj_sampling_countdown
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns how many allocations away the next guarded one is, at least 1. The distances are
 * geometric: on average one allocation in `one_in` is guarded. `random` is uniformly distributed.
 */
int64_t sj_sampling_distance(uint32_t random, uint64_t one_in);

/* sj_pool_init maps the pool of a new residue. It returns false if out of memory. sj_pool_resume
 * takes over the pool that an earlier agent left; its live blocks stay valid. */
bool sj_pool_init(const sj_zombie_settings *settings);
void sj_pool_resume(void);

/* Opens all pages, so that uses of freed blocks do not fault, and gives the memory of freed blocks
 * back. The caller has stopped all other threads. */
void sj_pool_detach(void);

/* True if a sampled allocation is to be left out, because almost all blocks are in use: the fewer
 * are left, the more rarely an allocation gets one. So later allocations have a chance, too, and
 * freed blocks stay watched for a while. `random` is uniformly distributed. */
bool sj_pool_spares_blocks(uint32_t random);

/* Returns a zeroed block for functions of `families`, or NULL, which is counted. `alignment` is a
 * power of two, at least SJ_POOL_ALIGNMENT. Async-signal-safe. */
void *sj_pool_allocate(size_t bytes, size_t alignment, uint32_t families);

/* sj_pages_map_pool maps the pages of a pool, all of them closed. It may reduce the number of
 * slots. It returns false if out of memory. sj_pages_open_all opens all pages of the pool. */
bool sj_pages_map_pool(sj_pool *pool, uint64_t memory_bytes);
void sj_pages_open_all(sj_pool *pool);

/* sj_pages_open and sj_pages_close open and close whole pages; closing may drop their content.
 * sj_pages_open_touched opens a page that the program has touched, also one of a slot that was
 * never used. sj_pages_close_slot closes all pages of a slot that was never used or may be open.
 * The functions return false if the kernel refuses. */
bool sj_pages_open(uint64_t address, uint64_t bytes);
void sj_pages_open_touched(uint64_t page);
bool sj_pages_close(uint64_t address, uint64_t bytes);
bool sj_pages_close_slot(uint64_t slot_start);

/* sj_pages_save copies the content of a block that is about to be closed, if closing would drop it.
 * sj_pages_is_saved: true if the copy still exists. sj_pages_restore writes the copy back to one
 * open page. sj_pages_forget_half drops the older half of all copies. */
void sj_pages_save(sj_pool_slot *slot);
bool sj_pages_is_saved(const sj_pool_slot *slot);
void sj_pages_restore(const sj_pool_slot *slot, uint64_t page);
void sj_pages_forget_half(sj_pool *pool);

/* Counts an allocation that is not guarded because a use of it could not be reported. */
void sj_pool_count_refused(void);

/* Frees a block of the pool, or reports why it cannot be freed. It also reports a block that none
 * of `families` may free. `site` is the return address of the call that frees. */
void sj_pool_free(void *block, uint64_t site, uint32_t families);

/* Drops the content of the older half of the freed blocks. Their pages stay closed. */
void sj_pool_shrink(void);

/* True if the address lies in the pool. */
static inline bool sj_pool_has(uint64_t address)
{
    return (address - sj_heap_pool.base) >> sj_heap_pool.shift == 0;
}

/* Returns the slot whose data pages, or the guard page before them, contain an address of the pool.
 * Returns NULL for an address behind the last slot. */
sj_pool_slot *sj_pool_find(uint64_t address);
sj_pool_slot *sj_pool_slot_at(uint32_t index);
/* Returns the address of the slot's first guard page. */
uint64_t sj_pool_slot_start(const sj_pool_slot *slot);

/* Opens the page that the program has touched, so that the program can continue. */
void sj_pool_open_pages(sj_pool_slot *slot, uint64_t address);

/* Reports a use of a slot's block. `use` is borrowed; this function reads the stack. `site` is the
 * address of the code that made the mistake: one site cannot use more than its share of the
 * reports. Returns what the program has to do next. */
sj_zombie_on_use sj_report_use(sj_pool_slot *slot, sj_zombie_kind kind, uint64_t address,
                               bool is_write, const sj_zombie_trace *use, uint64_t site);

/* sj_report_kept reports a use of a block whose free is delayed. `here` is NULL if it is not known
 * which code used it. sj_report_fill_kept fills in everything except the use, for sj_report_finish.
 */
sj_zombie_on_use sj_report_kept(sj_kept_block *kept, sj_zombie_kind kind, uint64_t address,
                                const sj_zombie_trace *here, uint64_t site);
void sj_report_fill_kept(sj_zombie_report *report, const sj_kept_block *kept, sj_zombie_kind kind,
                         uint64_t address);

/* Allocations that the policy always guards. sj_guard_has_rules: true if every allocation has to be
 * checked. sj_guard_wants: true if the policy names this one. sj_guard_is_forced: true if
 * sj_guard_next_allocations has asked for it. */
bool sj_guard_has_rules(const sj_zombie_region *region);
bool sj_guard_wants(const sj_zombie_region *region, size_t bytes, uint64_t site);
bool sj_guard_is_forced(void);

/* sj_faults_adopt makes the calling process the one whose signals are handled.
 * sj_faults_are_handled installs our handlers of SIGSEGV and SIGBUS at its first call. It returns
 * false if that is not possible, or if another thread is doing so now. From then on
 * sj_faults_sigaction is the program's sigaction. sj_faults_end removes our handlers; the caller
 * has stopped all other threads. */
bool sj_faults_are_handled(void);
void sj_faults_end(void);
void sj_faults_adopt(void);
int sj_faults_sigaction(int signal, const struct sigaction *action, struct sigaction *old);

/* Like pthread_sigmask, but leaves SIGSEGV and SIGBUS unblocked: the kernel ends a program that
 * faults while they are blocked. */
int sj_faults_sigmask(int how, const sigset_t *set, sigset_t *old);

/* The patched entries of one module. */
typedef struct sj_entries_context {
    const sj_zombie_region *region; /* Its residue exists. */
    sj_heap_part part;
} sj_entries_context;

/* The `emit` function of sj_hooks_entries. Its context is an sj_entries_context. */
void sj_entries_emit(void *context, sj_code_emitter *emitter, uint32_t index);

/* Counting of what threads allocate and free. sj_counting_entry returns the function that counts
 * the calls of an entry; 0 if they are not counted. sj_counting_is_possible: true if the sizes of
 * blocks can be known. sj_counting_begin and sj_counting_end start and stop it; other threads may
 * run. */
uint64_t sj_counting_entry(const sj_zombie_region *region, sj_heap_entry entry);
bool sj_counting_is_possible(const sj_zombie_region *region);
void sj_counting_begin(const sj_zombie_region *region);
void sj_counting_end(void);

/* True if this processor is supported. */
bool sj_entries_supported(void);

/* sj_allocation_handler returns the function that an allocating entry calls for each allocation
 * that may be sampled. sj_free_handler returns the function that a freeing entry calls for blocks
 * of the pool; sj_residue.families has to be filled before. */
const void *sj_allocation_handler(sj_heap_entry entry);
const void *sj_free_handler(sj_heap_entry entry);

/* Returns the function that the entry of a system call jumps to if the buffer lies in the pool. */
uint64_t sj_buffer_call(sj_heap_entry entry);

/* Ends the program by SIGABRT if `next` says so. */
void sj_report_stop_if(sj_zombie_on_use next);

#endif
