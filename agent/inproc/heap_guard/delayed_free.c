/* Design notes
 *
 * Records form a ring. Each delayed block gets the next record; the block that this record held
 * before is freed. So blocks are freed in the order in which their frees were delayed, without a
 * list or a lock.
 *
 * A thread that changes a record first sets its state to RECORD_OWNED. A thread or signal handler
 * that needs an owned record frees its own block at once instead.
 *
 * A second free finds the record by the last filled word of the block, which holds the record's
 * number. The program may overwrite this word, so the number is verified against the record.
 *
 * A virtual call finds the record by a hash table of addresses. The allocator cannot be asked for
 * the size of the block there: the call may be made on a copy of the object that is not a block. */
#include "agent/inproc/heap_guard/delayed_free.h"

#include "agent/inproc/heap_guard/free_check.h"
#include "agent/inproc/heap_guard/internal.h"
#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/heap_guard/virtual_tables.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <time.h>

#define WORD_PATTERN UINT64_C(0xa5a5a5a5a5a5a5a5)
/* Pattern of the last filled word. Its lowest NUMBER_BITS bits hold the number of the record. */
#define MARK_BITS UINT64_C(0xa55a5aa5a5000000)
#define WAIT_NS UINT64_C(5000000000)

enum {
    MIN_USABLE_BYTES = 24,
    MAX_USABLE_BYTES = 1 << 20,
    MAX_FILL_BYTES = 4096, /* A damaged block header may claim any size. */
    MAX_STACK_BYTES = 512,
    ONE_IN_MEASURED = 64, /* One record in 64 is timed, for the overhead budget. */
    TABLE_ENTRIES_PER_RECORD = 2,
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
/* Hash table by the address of objects. An entry is 1 + the number of the record, or 0 if empty. */
static _Atomic uint32_t *object_table;
static uint32_t table_mask;
static uint64_t stride;
static uint32_t stack_bytes;
static uint32_t record_count;
static _Atomic bool is_on;
static _Atomic uint64_t next; /* Number of the next record, modulo record_count. */
/* Number of the record whose block is freed next, modulo record_count. */
static _Atomic uint64_t oldest_number;
static _Atomic uint64_t held_bytes;

static sj_kept_block *record_at(uint64_t number)
{
    return (sj_kept_block *)(void *)(records + number % record_count * stride);
}

static uint64_t filled_bytes(uint64_t usable)
{
    return (usable < MAX_FILL_BYTES ? usable : MAX_FILL_BYTES) & ~(uint64_t)(WORD - 1);
}

static bool claim_record(sj_kept_block *kept, uint32_t from)
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

static _Atomic uint32_t *table_entry_of(uint64_t object)
{
    return &object_table[(object / ALIGNMENT * UINT64_C(0x9e3779b97f4a7c15) >> 32) & table_mask];
}

static bool is_object_at(const sj_kept_block *kept, uint64_t address)
{
    return kept->address == address && kept->type != 0 && atomic_load(&kept->state) == RECORD_KEPT;
}

/* Finds an object whose entry in the hash table was overwritten by an object with the same hash. */
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
    const uint32_t number = records != NULL ? atomic_load(table_entry_of(address)) : 0;
    if (number == 0) {
        return NULL;
    }
    sj_kept_block *kept = record_at(number - 1);
    return is_object_at(kept, address) ? kept : search_all_records(address);
}

/* Returns the address of the first word that the program changed since the free, or 0. */
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

static void count_release(sj_release_reason reason)
{
    switch (reason) {
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

/* Removes the pointers to our virtual tables from a block. The tables are in the agent, which may
 * be unloaded after the block is freed. */
static void remove_tables(const sj_kept_block *kept)
{
    uint64_t *words = (uint64_t *)(uintptr_t)kept->address;
    const uint64_t last = filled_bytes(kept->usable) / WORD - 1;
    for (uint64_t i = 0; kept->type != 0 && i < last && i < SJ_VIRTUAL_WORDS; i++) {
        words[i] = sj_virtual_is_table(words[i]) ? WORD_PATTERN : words[i];
    }
}

/* Reports that the program wrote to a freed block. During a detach, the report does not stop the
 * program. */
static void report_change(sj_kept_block *kept, uint64_t changed, sj_release_reason reason)
{
    const sj_zombie_on_use next_action =
        sj_report_kept(kept, SJ_ZOMBIE_WRITE_AFTER_FREE, changed, NULL, kept->site);
    if (reason != SJ_RELEASE_DETACH) {
        sj_report_stop_if(next_action);
    }
}

/* Frees the block of a record that the caller owns. */
static void release_block(sj_kept_block *kept, sj_release_reason reason)
{
    const uint64_t changed = find_change(kept);
    const uint64_t block = kept->address;
    if (changed != 0) {
        report_change(kept, changed, reason);
    }
    remove_tables(kept);
    kept->address = 0;
    atomic_fetch_sub(&held_bytes, kept->usable + stride);
    ((free_function)sj_heap_originals[SJ_ENTRY_FREE])(block, 0, 0);
    count_release(reason);
}

/* Frees the oldest block. Returns false if there is none. */
static bool release_oldest(sj_release_reason reason)
{
    uint64_t number = atomic_load(&oldest_number);
    while (number < atomic_load(&next)) {
        if (atomic_compare_exchange_strong(&oldest_number, &number, number + 1)) {
            sj_kept_block *kept = record_at(number);
            if (claim_record(kept, RECORD_KEPT)) {
                release_block(kept, reason);
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

/* Claims the next record of the ring and frees the block that it holds. Returns NULL if another
 * thread owns the record. */
static sj_kept_block *claim_next_record(void)
{
    const uint64_t number = atomic_fetch_add(&next, 1);
    uint64_t first = atomic_load(&oldest_number);
    sj_kept_block *kept = record_at(number);
    while (number >= record_count && first <= number - record_count &&
           !atomic_compare_exchange_strong(&oldest_number, &first, number - record_count + 1)) {
    }
    if (claim_record(kept, RECORD_KEPT)) {
        release_block(kept, SJ_RELEASE_FULL);
        return kept;
    }
    return claim_record(kept, RECORD_EMPTY) ? kept : NULL;
}

/* Fills the block with the pattern and its mark. With `with_tables`, replaces the object's virtual
 * tables by ours. Returns false without a change if one of its tables is too large. */
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
        atomic_store(table_entry_of(kept->address), (uint32_t)number_of(kept) + 1);
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

/* True if this free is not delayed because of the overhead budget. The budget lets each thread
 * delay one in 2^delayed_shift of its frees. */
static bool is_left_out_by_budget(const sj_zombie_region *region)
{
    static __thread uint32_t frees __attribute__((tls_model("initial-exec")));
    const uint32_t shift =
        atomic_load_explicit(&region->delayed_shift, memory_order_relaxed) & SHIFT_MASK;
    return shift != 0 && (++frees & ((UINT32_C(1) << shift) - 1)) != 0;
}

/* True if no free was ever delayed. Frees are then only checked. */
static bool is_idle(void)
{
    return records == NULL;
}

/* Delays the free of a block. If its free is delayed already, reports a double free. Returns false
 * if the caller has to free the block. */
static bool delay_free(uint64_t block, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (!sj_free_check_may_be_block(block)) {
        sj_free_check_report(block, site);
        return false; /* The allocator handles it as it does without the agent. */
    }
    if (!is_block(block) || is_idle()) {
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

/* Reports a resize of an address that is not a block. If the free of the block is delayed, reports
 * a double free and cancels the delayed free. The block is then a live block of the allocator
 * again. */
static void forget_block(uint64_t block, uint64_t site)
{
    if (!sj_free_check_may_be_block(block)) {
        sj_free_check_report(block, site);
        return;
    }
    if (is_idle()) {
        return;
    }
    sj_kept_block *kept = is_block(block) ? find_marked(block, usable_size(block)) : NULL;
    if (kept != NULL) {
        report_double_free(kept, site);
    }
    if (kept != NULL && claim_record(kept, RECORD_KEPT)) {
        remove_tables(kept);
        kept->address = 0;
        atomic_fetch_sub(&held_bytes, kept->usable + stride);
        ((uint64_t *)(uintptr_t)block)[filled_bytes(kept->usable) / WORD - 1] = WORD_PATTERN;
        sj_objects_count(delayed_left, 1);
        set_state(kept, RECORD_EMPTY);
    }
}

/* Moves a block that has to grow, and delays the free of its old memory. So a use of a pointer to
 * the old memory is found. Returns NULL if the allocator has to resize the block: for example if it
 * is large, because copying a large block at each small growth would be slow. */
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
        if ((is_idle() && sj_free_check_may_be_block(block)) ||                                    \
            !delay_free(block, SJ_CALL_SITE())) {                                                  \
            ((free_function)sj_heap_originals[entry])(block, second, third);                       \
        }                                                                                          \
    }

/* Replaces jemalloc's rallocx. Does not move the block, because `flags` may ask for an alignment.
 */
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

/* True if blocks that this entry frees may be freed by the allocator's free. The program may define
 * operators that use another heap, so an operator delete counts only if operator new is the
 * allocator's. */
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

static bool is_resizing_entry(uint32_t entry)
{
    return entry == SJ_ENTRY_REALLOC || entry == SJ_ENTRY_RALLOCX;
}

/* Sets the handlers of the resizing entries (realloc, rallocx) or of all other entries. Removes
 * them if `region` is NULL. Resizing entries need handlers as long as any free is delayed. */
static void set_handlers(const sj_zombie_region *region, bool are_resizing)
{
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        if (is_resizing_entry(entry) == are_resizing) {
            atomic_store(&sj_residue_now->delay_handlers[entry],
                         region != NULL ? sj_delayed_free_entry(region, (sj_heap_entry)entry) : 0);
        }
    }
}

/* Returns the size of the mapping: the hash table, then the records. */
static uint64_t mapped_bytes(void)
{
    return ((uint64_t)table_mask + 1) * sizeof(*object_table) + record_count * stride;
}

static bool map_records(const sj_zombie_settings *settings)
{
    uint64_t table_size = 1;
    if (records != NULL) {
        return true;
    }
    const uint32_t wanted =
        settings->stack_bytes < MAX_STACK_BYTES ? settings->stack_bytes : MAX_STACK_BYTES;
    stack_bytes = wanted & ~(uint32_t)(ALIGNMENT - 1);
    stride = sizeof(sj_kept_block) + stack_bytes;
    record_count = settings->delayed_blocks;
    while (table_size < (uint64_t)record_count * TABLE_ENTRIES_PER_RECORD) {
        table_size *= 2;
    }
    table_mask = (uint32_t)(table_size - 1);
    void *mapped = sj_sys_map(NULL, mapped_bytes(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sj_sys_failed(mapped)) {
        return false;
    }
    object_table = mapped;
    records = (uint8_t *)mapped + table_size * sizeof(*object_table);
    return true;
}

void sj_delayed_free_begin(const sj_zombie_region *region)
{
    const sj_zombie_settings *settings = &region->settings;
    const bool is_checked = sj_free_check_begin(region);
    const bool is_wanted = settings->delayed_kib != 0 && settings->delayed_blocks != 0 &&
                           settings->delayed_blocks < 1 << NUMBER_BITS;
    if (!atomic_load(&is_on) && is_wanted && map_records(settings)) {
        sj_virtual_tables_init();
        set_handlers(region, true);
        atomic_store(&is_on, true);
        set_handlers(region, false);
    } else if (is_checked && !atomic_load(&is_on)) {
        set_handlers(region, true);
        set_handlers(region, false);
    }
}

bool sj_delayed_free_is_on(void)
{
    return atomic_load(&is_on);
}

/* Frees the block of a record. If a thread owns the record, waits for it until the deadline. */
static void empty_record(sj_kept_block *kept, uint64_t deadline_ns)
{
    while (atomic_load(&kept->state) != RECORD_EMPTY) {
        if (claim_record(kept, RECORD_KEPT)) {
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
        if (claim_record(kept, RECORD_KEPT)) {
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

/* The threads that owned these records do not exist in the child, so their blocks are lost. It is
 * not known whether `held_bytes` includes their bytes, so it is computed again from the kept
 * blocks. */
void sj_delayed_free_after_fork(void)
{
    uint64_t held = 0;
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        sj_kept_block *kept = record_at(i);
        uint32_t owned = RECORD_OWNED;
        (void)atomic_compare_exchange_strong(&kept->state, &owned, RECORD_EMPTY);
        held += atomic_load(&kept->state) == RECORD_KEPT ? kept->usable + stride : 0;
    }
    atomic_store(&held_bytes, held);
}

void sj_delayed_free_deinit(void)
{
    if (records == NULL || atomic_load(&is_on)) {
        return; /* sj_delayed_free_end was not called, so blocks are still delayed. */
    }
    (void)sj_sys_unmap((void *)object_table, mapped_bytes());
    records = NULL;
    atomic_store(&next, 0);
    atomic_store(&oldest_number, 0);
    atomic_store(&held_bytes, 0);
}
