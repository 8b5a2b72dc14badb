/* What the files of heap_guard/ share. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_INTERNAL_H
#define SJ_AGENT_INPROC_HEAP_GUARD_INTERNAL_H

#include "agent/abi/zombies.h"
#include "agent/inproc/heap_guard/custody.h"
#include "agent/inproc/heap_guard/objects.h"
#include "agent/inproc/heap_guard/quarantine.h"
#include "agent/inproc/heap_guard/zombies.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/dispatch.h"

#include <signal.h>
#include <stddef.h>

/* Whom an entry returns to, as far as the program is concerned: an entry that counts calls the rest
 * of itself (counting.c) and says here who called it; 0: none does. */
extern __thread uint64_t sj_counted_site
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Where the program called the function that this is written in, which is an entry's: its return
 * address lies above its frame's. */
#define SJ_ENTRY_SITE()                                                                            \
    sj_return_slots_true_address((uint64_t)(uintptr_t)__builtin_frame_address(0) +                 \
                                     sizeof(uint64_t),                                             \
                                 (uint64_t)(uintptr_t)__builtin_return_address(0))

/* The same, for what may be the rest of an entry that counts. */
#define SJ_SITE() (sj_counted_site != 0 ? sj_counted_site : SJ_ENTRY_SITE())

enum { SJ_POOL_PAGE = 4096, SJ_POOL_DATA_PAGES = 4 };
enum {
    SJ_POOL_BLOCK_MAX_BYTES = SJ_POOL_DATA_PAGES * SJ_POOL_PAGE,
    SJ_POOL_ROOM_BYTES = (SJ_POOL_DATA_PAGES + 1) * SJ_POOL_PAGE,
    SJ_POOL_ALIGNMENT = 16
};

/* What is known of one block's room. */
typedef enum sj_slot_state {
    SJ_SLOT_UNUSED = 0, /* never used, or being filled */
    SJ_SLOT_LIVE = 1,
    SJ_SLOT_FREED = 2,
    SJ_SLOT_RESTORING = 3 /* freed, and not to be used again while a page of it is opened */
} sj_slot_state;

typedef struct sj_pool_slot {
    _Atomic uint32_t state;       /* sj_slot_state */
    _Atomic uint32_t is_open;     /* after a use: pages that should be closed are not */
    _Atomic uint32_t is_reported; /* a use of this block has been reported */
    uint32_t families;            /* sj_block_family: where the block is from */
    uint32_t size;
    uint32_t held_bytes;  /* of memory */
    uint32_t is_prepared; /* its room was closed once */
    uint32_t reserved;
    uint64_t saved_at; /* 1 + place of its content, which closing its pages dropped; 0: none */
    uint64_t address;
    uint64_t object;            /* of Objective-C, in the block; 0: none that is known */
    const char *class_name;     /* its class's */
    sj_zombie_trace allocation; /* its stack lies behind the slot, then that of the release */
    sj_zombie_trace release;
} sj_pool_slot;

static inline bool sj_slot_is_freed(const sj_pool_slot *slot)
{
    return atomic_load(&slot->state) >= SJ_SLOT_FREED;
}

/* The pool, and what entries go on with when we have nothing to do. */
#define sj_zombie_pool (sj_custody_now->pool)
#define sj_zombie_originals (sj_custody_now->originals)

extern __thread int64_t sj_zombie_countdown
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* sj_sampling_distance returns the geometric distance to the next guarded allocation, of which
 * there is one in so many, by a random number. */
int64_t sj_sampling_distance(uint32_t random, uint64_t one_in);

/* sj_pool_open maps the pool of a new custody. False: no memory. sj_pool_go_on takes over the one
 * that an agent left: what lives in it lives on. */
bool sj_pool_open(const sj_zombie_settings *settings);
void sj_pool_go_on(void);

/* sj_pool_leave opens all pages, so that uses of freed blocks fault no more, and gives the memory
 * of those back. No other thread runs. */
void sj_pool_leave(void);

/* sj_pool_take gives a zeroed block of `families`; NULL, counted: none. `alignment` is a power of
 * two, at least SJ_POOL_ALIGNMENT. Async-signal-safe. */
void *sj_pool_take(size_t bytes, size_t alignment, uint32_t families);

/* Pages (pages.c). sj_pages_open_pool maps the rooms of a pool, closed; it may have fewer slots
 * then. False: no memory. sj_pages_open_all opens all of it. */
bool sj_pages_open_pool(sj_pool *pool, uint64_t memory_bytes);
void sj_pages_open_all(sj_pool *pool);

/* sj_pages_open and sj_pages_close change whole pages. What is closed may lose its content.
 * sj_pages_open_met opens a page that a use has met, also of a room that was never used.
 * sj_pages_close_room closes a room that was never used or may be open. False: refused. */
bool sj_pages_open(uint64_t address, uint64_t bytes);
void sj_pages_open_met(uint64_t page);
bool sj_pages_close(uint64_t address, uint64_t bytes);
bool sj_pages_close_room(uint64_t room);

/* sj_pages_save keeps the content of a block that is about to be closed, where that drops it;
 * sj_pages_is_saved: it is still known. sj_pages_restore writes it back to one open page.
 * sj_pages_forget_half drops the older half of all content. */
void sj_pages_save(sj_pool_slot *slot);
bool sj_pages_is_saved(const sj_pool_slot *slot);
void sj_pages_restore(const sj_pool_slot *slot, uint64_t page);
void sj_pages_forget_half(sj_pool *pool);

/* sj_pool_count_refused counts an allocation that is not guarded because no use of it could be
 * reported. */
void sj_pool_count_refused(void);

/* sj_pool_put frees a block of the pool, or reports why it cannot be freed; also that none of
 * `families` is the block's. `site` is where the function that was called to free it returns to. */
void sj_pool_put(void *block, uint64_t site, uint32_t families);

/* sj_pool_shrink drops the content of the older half of the freed blocks, whose pages stay closed.
 */
void sj_pool_shrink(void);

/* sj_pool_has: an address lies in the pool. */
static inline bool sj_pool_has(uint64_t address)
{
    return (address - sj_zombie_pool.base) >> sj_zombie_pool.shift == 0;
}

/* sj_pool_find returns the slot in whose data pages, or in the guard page in front of them, an
 * address of the pool lies; NULL: behind the last. */
sj_pool_slot *sj_pool_find(uint64_t address);
sj_pool_slot *sj_pool_slot_at(uint32_t index);
uint64_t sj_pool_room(const sj_pool_slot *slot); /* address of its first guard page */

/* sj_pool_open_pages opens what a use has met, so that the program can go on. */
void sj_pool_open_pages(sj_pool_slot *slot, uint64_t address);

/* sj_report_use reports a use of a slot's block; `use` is borrowed, its stack is read here. `site`
 * is the address of the code that made the mistake: one site fills no more than its share of the
 * reports. Returns what the program is to do next. */
sj_zombie_on_use sj_report_use(sj_pool_slot *slot, sj_zombie_kind kind, uint64_t address,
                               bool is_write, const sj_zombie_trace *use, uint64_t site);

/* sj_report_kept reports a use of a quarantined block; `here` NULL: by whom is not known.
 * sj_report_fill_kept fills in all but the use, for sj_report_finish. */
sj_zombie_on_use sj_report_kept(sj_kept_block *kept, sj_zombie_kind kind, uint64_t address,
                                const sj_zombie_trace *here, uint64_t site);
void sj_report_fill_kept(sj_zombie_report *report, const sj_kept_block *kept, sj_zombie_kind kind,
                         uint64_t address);

/* What the policy names is guarded always. sj_guard_has_rules: every allocation is to be looked at;
 * sj_guard_wants: this one is named; sj_guard_is_forced: sj_zombies_guard_next says so. */
bool sj_guard_has_rules(const sj_zombie_region *region);
bool sj_guard_wants(const sj_zombie_region *region, size_t bytes, uint64_t site);
bool sj_guard_is_forced(void);

/* sj_faults_adopt: the calling process is the one whose signals are to be handled.
 * sj_faults_are_handled: SIGSEGV and SIGBUS are handled in front of the program's handlers, from
 * the first call on. False: not possible, or another thread is about to. sj_faults_sigaction is
 * sigaction as the program sees it from then on. sj_faults_end gives the signals back; no other
 * thread runs. */
bool sj_faults_are_handled(void);
void sj_faults_end(void);
void sj_faults_adopt(void);
int sj_faults_sigaction(int signal, const struct sigaction *action, struct sigaction *old);

/* sj_faults_sigmask is pthread_sigmask that leaves both signals unblocked: the kernel ends a
 * program that faults while they are blocked. */
int sj_faults_sigmask(int how, const sigset_t *set, sigset_t *old);

/* The entries of one module. */
typedef struct sj_heads_context {
    const sj_zombie_region *region; /* whose custody exists */
    sj_heap_part part;
} sj_heads_context;

/* sj_heads_emit is sj_hooks_heads.emit; its context is an sj_heads_context. */
void sj_heads_emit(void *context, sj_code_emitter *emitter, uint32_t index);

/* Counting what threads allocate and free. sj_counting_entry returns what an entry leads to for
 * that; 0: it is not counted. sj_counting_is_possible: the sizes of blocks can be known. Both
 * others while is_whole says that the entries are patched, or before; other threads may run. */
uint64_t sj_counting_entry(const sj_zombie_region *region, sj_zombie_head head);
bool sj_counting_is_possible(const sj_zombie_region *region);
void sj_counting_begin(const sj_zombie_region *region);
void sj_counting_end(void);

/* sj_heads_supported: the machine is. */
bool sj_heads_supported(void);

/* What the entries of this number call instead. Of what gives blocks out at every call that may be
 * sampled, of what takes them back for blocks of the pool, after sj_custody.families was filled. */
const void *sj_allocation_giver(sj_zombie_head head);
const void *sj_allocation_taker(sj_zombie_head head);

/* sj_buffer_call returns what the entry of a system call leads to for a buffer of the pool. */
uint64_t sj_buffer_call(sj_zombie_head head);

/* sj_report_follow ends the program by SIGABRT if it is to stop. */
void sj_report_follow(sj_zombie_on_use next);

#endif
