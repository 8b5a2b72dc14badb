/* Design notes
 *
 * Records form a ring: a freed block gets the next record, whose previous block is freed. So blocks
 * leave in the order of their frees, without a list or a lock. A thread that works on a record owns
 * its state. A thread or signal handler that finds the record owned frees its own block at once.
 * The last filled word of a block is the number of its record. It is verified against the record,
 * so it is harmless if the program overwrites it. Only the allocator knows where that last word
 * lies, and only for its own blocks. So objects are found by a hash table: a virtual call may be
 * made on any copy of an object. */
#include "agent/inproc/heap_guard/delayed_free.h"

#include "agent/inproc/heap_guard/internal.h"
#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/heap_guard/virtual_tables.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <time.h>

#define WORD_PATTERN UINT64_C(0xa5a5a5a5a5a5a5a5)
/* The lowest bits hold the number of the record. */
#define MARK_BITS UINT64_C(0xa55a5aa5a5000000)
#define WAIT_NS UINT64_C(5000000000)

enum {
    MIN_USABLE_BYTES = 24,
    MAX_USABLE_BYTES = 1 << 20,
    MAX_FILL_BYTES = 4096, /* A damaged header may claim any size, so no more is filled. */
    MAX_STACK_BYTES = 512,
    ONE_IN_MEASURED = 64, /* One block in so many is timed, for the overhead budget. */
    PLACES_PER_RECORD = 2,
    SHIFT_MASK = 31,
    NUMBER_BITS = 24,
    ALIGNMENT = 16,
    WORD = sizeof(uint64_t)
};

typedef enum sj_kept_state { RECORD_EMPTY = 0, RECORD_OWNED = 1, RECORD_KEPT = 2 } sj_kept_state;

typedef void (*free_function)(uint64_t block, uint64_t second, uint64_t third);
typedef uint64_t (*size_function)(uint64_t block);
typedef void *(*new_function)(uint64_t bytes);
typedef void *(*resize_function)(uint64_t block, uint64_t second, uint64_t third);

static uint8_t *records;
/* Hash table of objects by address: 1 + the number of the record. 0: empty. */
static _Atomic uint32_t *places;
static uint32_t place_mask;
static uint64_t stride;
static uint32_t stack_bytes;
static uint32_t record_count;
static _Atomic bool is_on;
static _Atomic uint64_t next; /* Number of the next record, modulo record_count. */
/* Number of the record that is freed first when memory is short, modulo record_count. */
static _Atomic uint64_t oldest;
static _Atomic uint64_t held_bytes;

static sj_kept_block *record_at(uint64_t number)
{
    return (sj_kept_block *)(void *)(records + number % record_count * stride);
}

static uint64_t filled_bytes(uint64_t usable)
{
    return (usable < MAX_FILL_BYTES ? usable : MAX_FILL_BYTES) & ~(uint64_t)(WORD - 1);
}

static bool claim(sj_kept_block *kept, uint32_t from)
{
    return atomic_compare_exchange_strong(&kept->state, &from, RECORD_OWNED);
}

static void set_state(sj_kept_block *kept, sj_kept_state state)
{
    atomic_store_explicit(&kept->state, state, memory_order_release);
}

static uint64_t number_of(const sj_kept_block *kept)
{
    return (uint64_t)((const uint8_t *)kept - records) / stride;
}

static uint64_t mark_of(const sj_kept_block *kept)
{
    return MARK_BITS | number_of(kept);
}

static _Atomic uint32_t *place_of(uint64_t object)
{
    return &places[(object / ALIGNMENT * UINT64_C(0x9e3779b97f4a7c15) >> 32) & place_mask];
}

static bool is_object_at(const sj_kept_block *kept, uint64_t address)
{
    return kept->address == address && kept->type != 0 && atomic_load(&kept->state) == RECORD_KEPT;
}

/* Two objects may share a place of the hash table: then the older one is searched for in all
 * records. */
static sj_kept_block *search_all_records(uint64_t address)
{
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        if (is_object_at(record_at(i), address)) {
            return record_at(i);
        }
    }
    return NULL;
}

sj_kept_block *sj_delayed_free_find_object(uint64_t address)
{
    const uint32_t place = records != NULL ? atomic_load(place_of(address)) : 0;
    if (place == 0) {
        return NULL;
    }
    sj_kept_block *kept = record_at(place - 1);
    return is_object_at(kept, address) ? kept : search_all_records(address);
}

/* Returns the address of the first word that was changed; 0 if none was. */
static uint64_t find_change(const sj_kept_block *kept)
{
    const uint64_t *words = (const uint64_t *)(uintptr_t)kept->address;
    const uint64_t last = filled_bytes(kept->usable) / WORD - 1;
    for (uint64_t i = 0; i < last; i++) {
        if (words[i] != WORD_PATTERN && (kept->type == 0 || !sj_virtual_is_table(words[i]))) {
            return kept->address + i * WORD;
        }
    }
    return words[last] == mark_of(kept) ? 0 : kept->address + last * WORD;
}

static void count_release(sj_release_reason why)
{
    switch (why) {
    case SJ_RELEASE_FULL:
        sj_objects_count(delayed_full, 1);
        break;
    case SJ_RELEASE_PRESSURE:
        sj_objects_count(delayed_pressure, 1);
        break;
    default:
        sj_objects_count(delayed_left, 1);
        break;
    }
}

/* Removes our tables from a block. They point into the agent, which may be unloaded after the block
 * is freed. */
static void remove_tables(const sj_kept_block *kept)
{
    uint64_t *words = (uint64_t *)(uintptr_t)kept->address;
    const uint64_t last = filled_bytes(kept->usable) / WORD - 1;
    for (uint64_t i = 0; kept->type != 0 && i < last && i < SJ_VIRTUAL_WORDS; i++) {
        words[i] = sj_virtual_is_table(words[i]) ? WORD_PATTERN : words[i];
    }
}

/* Reports a changed block. A block that is found because the agent detaches does not end the
 * program. */
static void report_change(sj_kept_block *kept, uint64_t changed, sj_release_reason why)
{
    const sj_zombie_on_use next_action =
        sj_report_kept(kept, SJ_ZOMBIE_WRITE_AFTER_FREE, changed, NULL, kept->site);
    if (why != SJ_RELEASE_DETACH) {
        sj_report_stop_if(next_action);
    }
}

/* Frees the block of a record that the caller owns. */
static void release_block(sj_kept_block *kept, sj_release_reason why)
{
    const uint64_t changed = find_change(kept);
    const uint64_t block = kept->address;
    if (changed != 0) {
        report_change(kept, changed, why);
    }
    remove_tables(kept);
    kept->address = 0;
    atomic_fetch_sub(&held_bytes, kept->usable + stride);
    ((free_function)sj_heap_originals[SJ_ENTRY_FREE])(block, 0, 0);
    count_release(why);
}

/* Frees the oldest block. Returns false if there is none. */
static bool release_oldest(sj_release_reason why)
{
    uint64_t number = atomic_load(&oldest);
    while (number < atomic_load(&next)) {
        if (atomic_compare_exchange_strong(&oldest, &number, number + 1)) {
            sj_kept_block *kept = record_at(number);
            if (claim(kept, RECORD_KEPT)) {
                release_block(kept, why);
                set_state(kept, RECORD_EMPTY);
                return true;
            }
            number++;
        }
    }
    return false;
}

static void release_above_limit(const sj_zombie_region *region)
{
    const uint64_t limit = (uint64_t)region->settings.delayed_kib << 10;
    while (atomic_load(&held_bytes) > limit && release_oldest(SJ_RELEASE_FULL)) {
    }
}

/* Returns the next record, empty and owned. Returns NULL if another thread owns it. */
static sj_kept_block *claim_next_record(void)
{
    const uint64_t number = atomic_fetch_add(&next, 1);
    uint64_t first = atomic_load(&oldest);
    sj_kept_block *kept = record_at(number);
    while (number >= record_count && first <= number - record_count &&
           !atomic_compare_exchange_strong(&oldest, &first, number - record_count + 1)) {
    }
    if (claim(kept, RECORD_KEPT)) {
        release_block(kept, SJ_RELEASE_FULL);
        return kept;
    }
    return claim(kept, RECORD_EMPTY) ? kept : NULL;
}

/* Fills the block. Returns false without a change if one of the object's virtual tables is too
 * large. */
static bool fill(sj_kept_block *kept, bool with_tables)
{
    uint64_t *words = (uint64_t *)(uintptr_t)kept->address;
    const uint64_t last = filled_bytes(kept->usable) / WORD - 1;
    uint64_t tables = 0;
    if (with_tables && !sj_virtual_replace(words, last, &kept->type, &tables)) {
        return false;
    }
    for (uint64_t i = 0; i < last; i++) {
        if (i >= SJ_VIRTUAL_WORDS || (tables >> i & 1) == 0) {
            words[i] = WORD_PATTERN;
        }
    }
    words[last] = mark_of(kept);
    if (kept->type != 0) {
        atomic_store(place_of(kept->address), (uint32_t)number_of(kept) + 1);
    }
    return true;
}

static __attribute__((noinline)) bool start_delay(uint64_t block, uint64_t usable, uint64_t site,
                                                  const sj_zombie_region *region)
{
    const uint64_t start = sj_arch_ticks();
    sj_kept_block *kept = claim_next_record();
    if (kept == NULL) {
        return false;
    }
    const bool is_measured = number_of(kept) % ONE_IN_MEASURED == 0;
    if (!atomic_load(&is_on)) {
        set_state(kept, RECORD_EMPTY);
        return false;
    }
    kept->address = block;
    kept->usable = usable;
    kept->site = site;
    kept->type = 0;
    atomic_store(&kept->is_reported, 0);
    kept->release.ticks = start;
    kept->release.tid = sj_thread_number();
    sj_trace_here(&kept->release);
    sj_stack_copy_own(&kept->release, kept + 1, stack_bytes);
    if (!fill(kept, region->settings.vtables != 0)) {
        kept->address = 0;
        set_state(kept, RECORD_EMPTY);
        return false;
    }
    atomic_fetch_add(&held_bytes, usable + stride);
    set_state(kept, RECORD_KEPT);
    sj_objects_count(delayed, 1);
    release_above_limit(region);
    if (is_measured) {
        sj_objects_count(delayed_ticks, (sj_arch_ticks() - start) * ONE_IN_MEASURED);
    }
    return true;
}

static uint64_t usable_size(uint64_t block)
{
    return ((size_function)sj_heap_originals[SJ_ENTRY_USABLE_SIZE])(block);
}

static bool is_block(uint64_t block)
{
    return block != 0 && block % ALIGNMENT == 0;
}

static sj_kept_block *find_marked(uint64_t block, uint64_t usable)
{
    if (usable < MIN_USABLE_BYTES || usable > MAX_USABLE_BYTES) {
        return NULL;
    }
    const uint64_t *words = (const uint64_t *)(uintptr_t)block;
    const uint64_t mark = words[filled_bytes(usable) / WORD - 1];
    if (mark >> NUMBER_BITS != MARK_BITS >> NUMBER_BITS ||
        (mark & ((1 << NUMBER_BITS) - 1)) >= record_count) {
        return NULL;
    }
    sj_kept_block *kept = record_at(mark & ((1 << NUMBER_BITS) - 1));
    return kept->address == block ? kept : NULL;
}

static __attribute__((noinline)) void report_double_free(sj_kept_block *kept, uint64_t site)
{
    sj_zombie_trace here = {0};
    sj_trace_here(&here);
    sj_report_stop_if(sj_report_kept(kept, SJ_ZOMBIE_DOUBLE_FREE, kept->address, &here, site));
}

/* True if the overhead budget leaves this free out. It delays only one in so many frees of a
 * thread. */
static bool is_left_out_by_budget(const sj_zombie_region *region)
{
    static __thread uint32_t frees __attribute__((tls_model("initial-exec")));
    const uint32_t shift =
        atomic_load_explicit(&region->delayed_shift, memory_order_relaxed) & SHIFT_MASK;
    return shift != 0 && (++frees & ((UINT32_C(1) << shift) - 1)) != 0;
}

/* Delays the free of a block, or reports a second free of it. Returns false if the caller has to
 * free the block. */
static bool delay_free(uint64_t block, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (!is_block(block)) {
        return false;
    }
    const uint64_t usable = usable_size(block);
    sj_kept_block *kept = find_marked(block, usable);
    if (kept != NULL) {
        report_double_free(kept, site);
        return true;
    }
    if (region == NULL || region->settings.delayed_kib == 0 ||
        atomic_load(&sj_residue_now->shared.is_whole) == 0) {
        (void)release_oldest(SJ_RELEASE_DETACH);
        return false;
    }
    const uint64_t limit = (uint64_t)region->settings.delayed_kib << 10;
    if (usable < MIN_USABLE_BYTES || usable > MAX_USABLE_BYTES || usable + stride > limit ||
        is_left_out_by_budget(region) || !start_delay(block, usable, site, region)) {
        sj_objects_count(not_delayed, 1);
        return false;
    }
    return true;
}

/* Handles the resizing of a block that was freed. It is reported, then it is a live block of the
 * allocator again. */
static void forget_block(uint64_t block, uint64_t site)
{
    sj_kept_block *kept = is_block(block) ? find_marked(block, usable_size(block)) : NULL;
    if (kept != NULL) {
        report_double_free(kept, site);
    }
    if (kept != NULL && claim(kept, RECORD_KEPT)) {
        remove_tables(kept);
        kept->address = 0;
        atomic_fetch_sub(&held_bytes, kept->usable + stride);
        ((uint64_t *)(uintptr_t)block)[filled_bytes(kept->usable) / WORD - 1] = WORD_PATTERN;
        sj_objects_count(delayed_left, 1);
        set_state(kept, RECORD_EMPTY);
    }
}

/* Moves a block that has to grow, so that the free of its old memory is delayed and a kept pointer
 * to it is found. Larger blocks are left to the allocator, because a program may grow one byte by
 * byte. Returns NULL if the block is left to the allocator. */
static void *move_to_grow(uint64_t block, uint64_t bytes, uint64_t site)
{
    const uint64_t usable = is_block(block) ? usable_size(block) : 0;
    if (usable < MIN_USABLE_BYTES || usable > MAX_FILL_BYTES || bytes <= usable ||
        !atomic_load(&is_on)) {
        return NULL;
    }
    void *moved = ((new_function)sj_heap_originals[SJ_ENTRY_MALLOC])(bytes);
    if (moved == NULL) {
        return NULL;
    }
    memcpy(moved, (const void *)(uintptr_t)block, usable);
    if (!delay_free(block, site)) {
        ((free_function)sj_heap_originals[SJ_ENTRY_FREE])(block, 0, 0);
    }
    return moved;
}

static void *resize(uint64_t block, uint64_t bytes, uint64_t unused)
{
    const uint64_t site = SJ_CALL_SITE_OF_ENTRY();
    (void)unused;
    forget_block(block, site);
    void *moved = move_to_grow(block, bytes, site);
    return moved != NULL ? moved
                         : ((resize_function)sj_heap_originals[SJ_ENTRY_REALLOC])(block, bytes, 0);
}

#define DELAY_ENTRY(name, entry)                                                                   \
    static void name(uint64_t block, uint64_t second, uint64_t third)                              \
    {                                                                                              \
        if (!delay_free(block, SJ_CALL_SITE())) {                                                  \
            ((free_function)sj_heap_originals[entry])(block, second, third);                       \
        }                                                                                          \
    }

/* Handles jemalloc's rallocx; its flags say how the new block is aligned. */
static void *resize_with_flags(uint64_t block, uint64_t bytes, uint64_t flags)
{
    forget_block(block, SJ_CALL_SITE());
    return ((resize_function)sj_heap_originals[SJ_ENTRY_RALLOCX])(block, bytes, flags);
}

DELAY_ENTRY(keep_free, SJ_ENTRY_FREE)
DELAY_ENTRY(keep_cfree, SJ_ENTRY_CFREE)
DELAY_ENTRY(keep_free_sized, SJ_ENTRY_FREE_SIZED)
DELAY_ENTRY(keep_free_aligned_sized, SJ_ENTRY_FREE_ALIGNED_SIZED)
DELAY_ENTRY(keep_dallocx, SJ_ENTRY_DALLOCX)
DELAY_ENTRY(keep_sdallocx, SJ_ENTRY_SDALLOCX)
DELAY_ENTRY(keep_delete, SJ_ENTRY_DELETE)
DELAY_ENTRY(keep_delete_nothrow, SJ_ENTRY_DELETE_NOTHROW)
DELAY_ENTRY(keep_delete_sized, SJ_ENTRY_DELETE_SIZED)
DELAY_ENTRY(keep_delete_aligned, SJ_ENTRY_DELETE_ALIGNED)
DELAY_ENTRY(keep_delete_aligned_nothrow, SJ_ENTRY_DELETE_ALIGNED_NOTHROW)
DELAY_ENTRY(keep_delete_sized_aligned, SJ_ENTRY_DELETE_SIZED_ALIGNED)
DELAY_ENTRY(keep_delete_array, SJ_ENTRY_DELETE_ARRAY)
DELAY_ENTRY(keep_delete_array_nothrow, SJ_ENTRY_DELETE_ARRAY_NOTHROW)
DELAY_ENTRY(keep_delete_array_sized, SJ_ENTRY_DELETE_ARRAY_SIZED)
DELAY_ENTRY(keep_delete_array_aligned, SJ_ENTRY_DELETE_ARRAY_ALIGNED)
DELAY_ENTRY(keep_delete_array_aligned_nothrow, SJ_ENTRY_DELETE_ARRAY_ALIGNED_NOTHROW)
DELAY_ENTRY(keep_delete_array_sized_aligned, SJ_ENTRY_DELETE_ARRAY_SIZED_ALIGNED)

/* True if the allocator's free takes blocks of this entry. Operators that the program defines may
 * use another heap: they count only if operator new is the allocator's, too. */
static bool is_of_allocator(const sj_zombie_region *region, sj_heap_entry entry)
{
    const bool is_operator = entry >= SJ_ENTRY_DELETE && entry < SJ_ENTRY_SIGACTION;
    return region->parts[entry] == SJ_HEAP_ALLOCATOR && region->heap_entries[SJ_ENTRY_FREE] != 0 &&
           region->heap_entries[SJ_ENTRY_USABLE_SIZE] != 0 &&
           (!is_operator || (region->heap_entries[SJ_ENTRY_NEW] != 0 &&
                             region->parts[SJ_ENTRY_NEW] == SJ_HEAP_ALLOCATOR));
}

uint64_t sj_delayed_free_entry(const sj_zombie_region *region, sj_heap_entry entry)
{
#define ENTRY(entry, function) [SJ_ENTRY_##entry] = (uint64_t)(uintptr_t)function
    static const uint64_t entries[SJ_HEAP_ENTRIES] = {
        ENTRY(FREE, keep_free),
        ENTRY(REALLOC, resize),
        ENTRY(CFREE, keep_cfree),
        ENTRY(FREE_SIZED, keep_free_sized),
        ENTRY(FREE_ALIGNED_SIZED, keep_free_aligned_sized),
        ENTRY(DALLOCX, keep_dallocx),
        ENTRY(SDALLOCX, keep_sdallocx),
        ENTRY(RALLOCX, resize_with_flags),
        ENTRY(DELETE, keep_delete),
        ENTRY(DELETE_NOTHROW, keep_delete_nothrow),
        ENTRY(DELETE_SIZED, keep_delete_sized),
        ENTRY(DELETE_ALIGNED, keep_delete_aligned),
        ENTRY(DELETE_ALIGNED_NOTHROW, keep_delete_aligned_nothrow),
        ENTRY(DELETE_SIZED_ALIGNED, keep_delete_sized_aligned),
        ENTRY(DELETE_ARRAY, keep_delete_array),
        ENTRY(DELETE_ARRAY_NOTHROW, keep_delete_array_nothrow),
        ENTRY(DELETE_ARRAY_SIZED, keep_delete_array_sized),
        ENTRY(DELETE_ARRAY_ALIGNED, keep_delete_array_aligned),
        ENTRY(DELETE_ARRAY_ALIGNED_NOTHROW, keep_delete_array_aligned_nothrow),
        ENTRY(DELETE_ARRAY_SIZED_ALIGNED, keep_delete_array_sized_aligned)};
#undef ENTRY
    return region->heap_entries[entry] != 0 && is_of_allocator(region, entry) ? entries[entry] : 0;
}

static bool is_resizing(uint32_t entry)
{
    return entry == SJ_ENTRY_REALLOC || entry == SJ_ENTRY_RALLOCX;
}

/* Sets the handlers of resizing entries, or of all others. Resizing entries need theirs before the
 * first free is delayed and until the last block is freed. */
static void set_handlers(const sj_zombie_region *region, bool are_resizing)
{
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        if (is_resizing(entry) == are_resizing) {
            atomic_store(&sj_residue_now->delay_handlers[entry],
                         region != NULL ? sj_delayed_free_entry(region, (sj_heap_entry)entry) : 0);
        }
    }
}

/* The hash table lies before the records. */
static uint64_t mapped_bytes(void)
{
    return ((uint64_t)place_mask + 1) * sizeof(*places) + record_count * stride;
}

static bool map_records(const sj_zombie_settings *settings)
{
    uint64_t place_count = 1;
    if (records != NULL) {
        return true;
    }
    const uint32_t wanted =
        settings->stack_bytes < MAX_STACK_BYTES ? settings->stack_bytes : MAX_STACK_BYTES;
    stack_bytes = wanted & ~(uint32_t)(ALIGNMENT - 1);
    stride = sizeof(sj_kept_block) + stack_bytes;
    record_count = settings->delayed_blocks;
    while (place_count < (uint64_t)record_count * PLACES_PER_RECORD) {
        place_count *= 2;
    }
    place_mask = (uint32_t)(place_count - 1);
    void *mapped = sj_sys_map(NULL, mapped_bytes(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sj_sys_failed(mapped)) {
        return false;
    }
    places = mapped;
    records = (uint8_t *)mapped + place_count * sizeof(*places);
    return true;
}

void sj_delayed_free_begin(const sj_zombie_region *region)
{
    const sj_zombie_settings *settings = &region->settings;
    const bool is_wanted = settings->delayed_kib != 0 && settings->delayed_blocks != 0 &&
                           settings->delayed_blocks < 1 << NUMBER_BITS;
    if (!atomic_load(&is_on) && is_wanted && map_records(settings)) {
        sj_virtual_tables_init();
        set_handlers(region, true);
        atomic_store(&is_on, true);
        set_handlers(region, false);
    }
}

bool sj_delayed_free_is_on(void)
{
    return atomic_load(&is_on);
}

/* Waits for a thread that owns the record, but not longer than the deadline. */
static void empty_record(sj_kept_block *kept, uint64_t deadline_ns)
{
    while (atomic_load(&kept->state) != RECORD_EMPTY) {
        if (claim(kept, RECORD_KEPT)) {
            release_block(kept, SJ_RELEASE_DETACH);
            set_state(kept, RECORD_EMPTY);
        } else if (sj_sys_clock_ns(CLOCK_MONOTONIC) > deadline_ns) {
            return;
        } else {
            (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        }
    }
}

void sj_delayed_free_end(void)
{
    const uint64_t deadline_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
    if (!atomic_load(&is_on)) {
        return;
    }
    set_handlers(NULL, false);
    atomic_store(&is_on, false);
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        empty_record(record_at(i), deadline_ns);
    }
    set_handlers(NULL, true);
}

void sj_delayed_free_check(void)
{
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        sj_kept_block *kept = record_at(i);
        if (claim(kept, RECORD_KEPT)) {
            const uint64_t changed = find_change(kept);
            if (changed != 0) {
                (void)sj_report_kept(kept, SJ_ZOMBIE_WRITE_AFTER_FREE, changed, NULL, kept->site);
            }
            set_state(kept, RECORD_KEPT);
        }
    }
}

void sj_delayed_free_shrink(void)
{
    const uint64_t half = atomic_load(&held_bytes) / 2;
    while (records != NULL && atomic_load(&held_bytes) > half &&
           release_oldest(SJ_RELEASE_PRESSURE)) {
    }
}

/* Frees the records that other threads of the parent owned. The child has no such threads, so these
 * blocks are lost. */
void sj_delayed_free_after_fork(void)
{
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        uint32_t owned = RECORD_OWNED;
        (void)atomic_compare_exchange_strong(&record_at(i)->state, &owned, RECORD_EMPTY);
    }
}

void sj_delayed_free_deinit(void)
{
    if (records == NULL || atomic_load(&is_on)) {
        return; /* Delaying was never ended, so the blocks keep their records. */
    }
    (void)sj_sys_unmap((void *)places, mapped_bytes());
    records = NULL;
    atomic_store(&next, 0);
    atomic_store(&oldest, 0);
    atomic_store(&held_bytes, 0);
}
