/* Design notes
 *
 * A ring of records: a block that is freed takes the next one, whose block is let go, so that the
 * first in is the first out without a list or a lock. Who works on a record owns its state; who
 * finds it owned, a signal handler or a thread that was overtaken by a whole round, frees its block
 * at once. The last word of what is filled is the record's number, which is verified: so a block in
 * quarantine is known without a search, and nothing is believed that the program has overwritten.
 * Where that word lies the allocator says, which may be asked about its blocks only: objects are
 * found by a table of their own, since what calls a virtual function may be any copy of one. */
#include "agent/inproc/heap_guard/quarantine.h"

#include "agent/inproc/heap_guard/internal.h"
#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/heap_guard/virtual_tables.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <time.h>

#define WORD_PATTERN UINT64_C(0xa5a5a5a5a5a5a5a5)
#define MARK UINT64_C(0xa55a5aa5a5000000) /* and the record's number in the lowest bits */
#define WAIT_NS UINT64_C(5000000000)

enum {
    USABLE_LEAST = 24,
    USABLE_MOST = 1 << 20,
    FILL_MOST = 4096, /* a damaged header may claim any size: no more is written */
    STACK_MOST = 512,
    MEASURED = 64, /* of so many blocks one is timed, for the overhead budget */
    PLACES_PER_RECORD = 2,
    SHIFT_MASK = 31,
    NUMBER_BITS = 24,
    ALIGNMENT = 16,
    WORD = sizeof(uint64_t)
};

typedef enum sj_kept_state { KEPT_NONE = 0, KEPT_OWNED = 1, KEPT_WHOLE = 2 } sj_kept_state;

typedef void (*free_function)(uint64_t block, uint64_t second, uint64_t third);
typedef uint64_t (*size_function)(uint64_t block);
typedef void *(*new_function)(uint64_t bytes);
typedef void *(*resize_function)(uint64_t block, uint64_t second, uint64_t third);

static uint8_t *records;
static _Atomic uint32_t *places; /* 1 + number of an object's record, by address; 0: none */
static uint32_t place_mask;
static uint64_t stride;
static uint32_t stack_bytes;
static uint32_t record_count;
static _Atomic bool is_on;
static _Atomic uint64_t next;   /* record to use; modulo record_count, as the following */
static _Atomic uint64_t oldest; /* record to let go when memory is to be saved */
static _Atomic uint64_t held_bytes;

static sj_kept_block *record_at(uint64_t number)
{
    return (sj_kept_block *)(void *)(records + number % record_count * stride);
}

static uint64_t filled_bytes(uint64_t usable)
{
    return (usable < FILL_MOST ? usable : FILL_MOST) & ~(uint64_t)(WORD - 1);
}

static bool take_state(sj_kept_block *kept, uint32_t from)
{
    return atomic_compare_exchange_strong(&kept->state, &from, KEPT_OWNED);
}

static void put_state(sj_kept_block *kept, sj_kept_state state)
{
    atomic_store_explicit(&kept->state, state, memory_order_release);
}

static uint64_t number_of(const sj_kept_block *kept)
{
    return (uint64_t)((const uint8_t *)kept - records) / stride;
}

static uint64_t mark_of(const sj_kept_block *kept)
{
    return MARK | number_of(kept);
}

static _Atomic uint32_t *place_of(uint64_t object)
{
    return &places[(object / ALIGNMENT * UINT64_C(0x9e3779b97f4a7c15) >> 32) & place_mask];
}

static bool is_object_at(const sj_kept_block *kept, uint64_t address)
{
    return kept->address == address && kept->type != 0 && atomic_load(&kept->state) == KEPT_WHOLE;
}

/* Where two objects share a place, the one that was freed first is looked for in all records. */
static sj_kept_block *look_through(uint64_t address)
{
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        if (is_object_at(record_at(i), address)) {
            return record_at(i);
        }
    }
    return NULL;
}

sj_kept_block *sj_quarantine_find_object(uint64_t address)
{
    const uint32_t place = records != NULL ? atomic_load(place_of(address)) : 0;
    if (place == 0) {
        return NULL;
    }
    sj_kept_block *kept = record_at(place - 1);
    return is_object_at(kept, address) ? kept : look_through(address);
}

/* The address of the first word that is not as it was filled; 0: all are. */
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

static void count_gone(sj_quarantine_gone why)
{
    switch (why) {
    case SJ_GONE_FULL:
        sj_objects_count(quarantine_full, 1);
        break;
    case SJ_GONE_PRESSURE:
        sj_objects_count(quarantine_pressure, 1);
        break;
    default:
        sj_objects_count(quarantine_left, 1);
        break;
    }
}

/* Our tables lead into the agent, which may leave: nothing that is let go keeps one. */
static void take_tables_out(const sj_kept_block *kept)
{
    uint64_t *words = (uint64_t *)(uintptr_t)kept->address;
    const uint64_t last = filled_bytes(kept->usable) / WORD - 1;
    for (uint64_t i = 0; kept->type != 0 && i < last && i < SJ_VIRTUAL_WORDS; i++) {
        words[i] = sj_virtual_is_table(words[i]) ? WORD_PATTERN : words[i];
    }
}

/* What is found only because the agent leaves does not end the program. */
static void report_change(sj_kept_block *kept, uint64_t changed, sj_quarantine_gone why)
{
    const sj_zombie_on_use then =
        sj_report_kept(kept, SJ_ZOMBIE_WRITE_AFTER_FREE, changed, NULL, kept->site);
    if (why != SJ_GONE_LEFT) {
        sj_report_follow(then);
    }
}

/* The caller owns the record, whose block the allocator gets. */
static void let_go(sj_kept_block *kept, sj_quarantine_gone why)
{
    const uint64_t changed = find_change(kept);
    const uint64_t block = kept->address;
    if (changed != 0) {
        report_change(kept, changed, why);
    }
    take_tables_out(kept);
    kept->address = 0;
    atomic_fetch_sub(&held_bytes, kept->usable + stride);
    ((free_function)sj_zombie_originals[SJ_HEAD_FREE])(block, 0, 0);
    count_gone(why);
}

/* Lets the oldest block go. False: there is none. */
static bool let_oldest_go(sj_quarantine_gone why)
{
    uint64_t number = atomic_load(&oldest);
    while (number < atomic_load(&next)) {
        if (atomic_compare_exchange_strong(&oldest, &number, number + 1)) {
            sj_kept_block *kept = record_at(number);
            if (take_state(kept, KEPT_WHOLE)) {
                let_go(kept, why);
                put_state(kept, KEPT_NONE);
                return true;
            }
            number++;
        }
    }
    return false;
}

static void save_memory(const sj_zombie_region *region)
{
    const uint64_t limit = (uint64_t)region->settings.quarantine_kib << 10;
    while (atomic_load(&held_bytes) > limit && let_oldest_go(SJ_GONE_FULL)) {
    }
}

/* An empty record, owned; NULL: somebody else is at it. */
static sj_kept_block *take_record(void)
{
    const uint64_t number = atomic_fetch_add(&next, 1);
    uint64_t first = atomic_load(&oldest);
    sj_kept_block *kept = record_at(number);
    while (number >= record_count && first <= number - record_count &&
           !atomic_compare_exchange_strong(&oldest, &first, number - record_count + 1)) {
    }
    if (take_state(kept, KEPT_WHOLE)) {
        let_go(kept, SJ_GONE_FULL);
        return kept;
    }
    return take_state(kept, KEPT_NONE) ? kept : NULL;
}

/* False, nothing is changed: a virtual call of the object would harm the program. */
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

static __attribute__((noinline)) bool keep(uint64_t block, uint64_t usable, uint64_t site,
                                           const sj_zombie_region *region)
{
    const uint64_t start = sj_arch_ticks();
    sj_kept_block *kept = take_record();
    if (kept == NULL) {
        return false;
    }
    const bool is_measured = number_of(kept) % MEASURED == 0;
    if (!atomic_load(&is_on)) {
        put_state(kept, KEPT_NONE);
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
    sj_stack_take(&kept->release, kept + 1, stack_bytes);
    if (!fill(kept, region->settings.vtables != 0)) {
        kept->address = 0;
        put_state(kept, KEPT_NONE);
        return false;
    }
    atomic_fetch_add(&held_bytes, usable + stride);
    put_state(kept, KEPT_WHOLE);
    sj_objects_count(quarantined, 1);
    save_memory(region);
    if (is_measured) {
        sj_objects_count(quarantine_ticks, (sj_arch_ticks() - start) * MEASURED);
    }
    return true;
}

static uint64_t usable_size(uint64_t block)
{
    return ((size_function)sj_zombie_originals[SJ_HEAD_USABLE_SIZE])(block);
}

static bool is_block(uint64_t block)
{
    return block != 0 && block % ALIGNMENT == 0;
}

static sj_kept_block *find_marked(uint64_t block, uint64_t usable)
{
    if (usable < USABLE_LEAST || usable > USABLE_MOST) {
        return NULL;
    }
    const uint64_t *words = (const uint64_t *)(uintptr_t)block;
    const uint64_t mark = words[filled_bytes(usable) / WORD - 1];
    if (mark >> NUMBER_BITS != MARK >> NUMBER_BITS ||
        (mark & ((1 << NUMBER_BITS) - 1)) >= record_count) {
        return NULL;
    }
    sj_kept_block *kept = record_at(mark & ((1 << NUMBER_BITS) - 1));
    return kept->address == block ? kept : NULL;
}

static __attribute__((noinline)) void report_again(sj_kept_block *kept, uint64_t site)
{
    sj_zombie_trace here = {0};
    sj_trace_here(&here);
    sj_report_follow(sj_report_kept(kept, SJ_ZOMBIE_DOUBLE_FREE, kept->address, &here, site));
}

/* The overhead budget leaves out all but one in so many frees of a thread. */
static bool is_left_out(const sj_zombie_region *region)
{
    static __thread uint32_t frees __attribute__((tls_model("initial-exec")));
    const uint32_t shift =
        atomic_load_explicit(&region->quarantine_shift, memory_order_relaxed) & SHIFT_MASK;
    return shift != 0 && (++frees & ((UINT32_C(1) << shift) - 1)) != 0;
}

/* True: nothing is left to be done for the block. */
static bool take_freed(uint64_t block, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (!is_block(block)) {
        return false;
    }
    const uint64_t usable = usable_size(block);
    sj_kept_block *kept = find_marked(block, usable);
    if (kept != NULL) {
        report_again(kept, site);
        return true;
    }
    if (region == NULL || region->settings.quarantine_kib == 0 ||
        atomic_load(&sj_custody_now->shared.is_whole) == 0) {
        (void)let_oldest_go(SJ_GONE_LEFT);
        return false;
    }
    const uint64_t limit = (uint64_t)region->settings.quarantine_kib << 10;
    if (usable < USABLE_LEAST || usable > USABLE_MOST || usable + stride > limit ||
        is_left_out(region) || !keep(block, usable, site, region)) {
        sj_objects_count(not_quarantined, 1);
        return false;
    }
    return true;
}

/* The allocator takes a block for one that lives, whose program frees it again by resizing it: it
 * is given back to the allocator's care. */
static void give_up(uint64_t block, uint64_t site)
{
    sj_kept_block *kept = is_block(block) ? find_marked(block, usable_size(block)) : NULL;
    if (kept != NULL) {
        report_again(kept, site);
    }
    if (kept != NULL && take_state(kept, KEPT_WHOLE)) {
        take_tables_out(kept);
        kept->address = 0;
        atomic_fetch_sub(&held_bytes, kept->usable + stride);
        ((uint64_t *)(uintptr_t)block)[filled_bytes(kept->usable) / WORD - 1] = WORD_PATTERN;
        sj_objects_count(quarantine_left, 1);
        put_state(kept, KEPT_NONE);
    }
}

/* A block that has to grow moves, so that the old one is quarantined: what keeps a pointer to it is
 * found, also where the allocator could have grown it in place. Larger ones are the allocator's
 * matter, because a program may grow one byte by byte. NULL: so is this one. */
static void *move(uint64_t block, uint64_t bytes, uint64_t site)
{
    const uint64_t usable = is_block(block) ? usable_size(block) : 0;
    if (usable < USABLE_LEAST || usable > FILL_MOST || bytes <= usable || !atomic_load(&is_on)) {
        return NULL;
    }
    void *moved = ((new_function)sj_zombie_originals[SJ_HEAD_MALLOC])(bytes);
    if (moved == NULL) {
        return NULL;
    }
    memcpy(moved, (const void *)(uintptr_t)block, usable);
    if (!take_freed(block, site)) {
        ((free_function)sj_zombie_originals[SJ_HEAD_FREE])(block, 0, 0);
    }
    return moved;
}

static void *resize_kept(uint64_t block, uint64_t bytes, uint64_t unused)
{
    const uint64_t site = SJ_ENTRY_SITE();
    (void)unused;
    give_up(block, site);
    void *moved = move(block, bytes, site);
    return moved != NULL ? moved
                         : ((resize_function)sj_zombie_originals[SJ_HEAD_REALLOC])(block, bytes, 0);
}

#define KEEPS(name, head)                                                                          \
    static void name(uint64_t block, uint64_t second, uint64_t third)                              \
    {                                                                                              \
        if (!take_freed(block, SJ_SITE())) {                                                       \
            ((free_function)sj_zombie_originals[head])(block, second, third);                      \
        }                                                                                          \
    }

/* Of jemalloc: flags say how the new block is to be aligned. */
static void *resize_kept_x(uint64_t block, uint64_t bytes, uint64_t flags)
{
    give_up(block, SJ_SITE());
    return ((resize_function)sj_zombie_originals[SJ_HEAD_RALLOCX])(block, bytes, flags);
}

KEEPS(keep_free, SJ_HEAD_FREE)
KEEPS(keep_cfree, SJ_HEAD_CFREE)
KEEPS(keep_free_sized, SJ_HEAD_FREE_SIZED)
KEEPS(keep_free_aligned_sized, SJ_HEAD_FREE_ALIGNED_SIZED)
KEEPS(keep_dallocx, SJ_HEAD_DALLOCX)
KEEPS(keep_sdallocx, SJ_HEAD_SDALLOCX)
KEEPS(keep_delete, SJ_HEAD_DELETE)
KEEPS(keep_delete_nothrow, SJ_HEAD_DELETE_NOTHROW)
KEEPS(keep_delete_sized, SJ_HEAD_DELETE_SIZED)
KEEPS(keep_delete_aligned, SJ_HEAD_DELETE_ALIGNED)
KEEPS(keep_delete_aligned_nothrow, SJ_HEAD_DELETE_ALIGNED_NOTHROW)
KEEPS(keep_delete_sized_aligned, SJ_HEAD_DELETE_SIZED_ALIGNED)
KEEPS(keep_delete_array, SJ_HEAD_DELETE_ARRAY)
KEEPS(keep_delete_array_nothrow, SJ_HEAD_DELETE_ARRAY_NOTHROW)
KEEPS(keep_delete_array_sized, SJ_HEAD_DELETE_ARRAY_SIZED)
KEEPS(keep_delete_array_aligned, SJ_HEAD_DELETE_ARRAY_ALIGNED)
KEEPS(keep_delete_array_aligned_nothrow, SJ_HEAD_DELETE_ARRAY_ALIGNED_NOTHROW)
KEEPS(keep_delete_array_sized_aligned, SJ_HEAD_DELETE_ARRAY_SIZED_ALIGNED)

/* Operators that a program defines may have a heap of their own: only where the allocator gives
 * their blocks out, too, does its free take them. */
static bool is_of_allocator(const sj_zombie_region *region, sj_zombie_head head)
{
    const bool is_operator = head >= SJ_HEAD_DELETE && head < SJ_HEAD_SIGACTION;
    return region->parts[head] == SJ_HEAP_ALLOCATOR && region->heads[SJ_HEAD_FREE] != 0 &&
           region->heads[SJ_HEAD_USABLE_SIZE] != 0 &&
           (!is_operator ||
            (region->heads[SJ_HEAD_NEW] != 0 && region->parts[SJ_HEAD_NEW] == SJ_HEAP_ALLOCATOR));
}

uint64_t sj_quarantine_entry(const sj_zombie_region *region, sj_zombie_head head)
{
#define ENTRY(head, function) [SJ_HEAD_##head] = (uint64_t)(uintptr_t)function
    static const uint64_t entries[SJ_HEADS] = {
        ENTRY(FREE, keep_free),
        ENTRY(REALLOC, resize_kept),
        ENTRY(CFREE, keep_cfree),
        ENTRY(FREE_SIZED, keep_free_sized),
        ENTRY(FREE_ALIGNED_SIZED, keep_free_aligned_sized),
        ENTRY(DALLOCX, keep_dallocx),
        ENTRY(SDALLOCX, keep_sdallocx),
        ENTRY(RALLOCX, resize_kept_x),
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
    return region->heads[head] != 0 && is_of_allocator(region, head) ? entries[head] : 0;
}

static bool is_resizing(uint32_t head)
{
    return head == SJ_HEAD_REALLOC || head == SJ_HEAD_RALLOCX;
}

/* What resizes blocks has to know them before the first is kept, and until the last is gone. */
static void lead(const sj_zombie_region *region, bool is_resize)
{
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        if (is_resizing(head) == is_resize) {
            atomic_store(&sj_custody_now->keeps_by[head],
                         region != NULL ? sj_quarantine_entry(region, (sj_zombie_head)head) : 0);
        }
    }
}

/* Places lie in front of the records. */
static uint64_t mapped_bytes(void)
{
    return ((uint64_t)place_mask + 1) * sizeof(*places) + record_count * stride;
}

static bool open_records(const sj_zombie_settings *settings)
{
    uint64_t place_count = 1;
    if (records != NULL) {
        return true;
    }
    const uint32_t wanted = settings->stack_bytes < STACK_MOST ? settings->stack_bytes : STACK_MOST;
    stack_bytes = wanted & ~(uint32_t)(ALIGNMENT - 1);
    stride = sizeof(sj_kept_block) + stack_bytes;
    record_count = settings->quarantine_blocks;
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

void sj_quarantine_begin(const sj_zombie_region *region)
{
    const sj_zombie_settings *settings = &region->settings;
    const bool is_wanted = settings->quarantine_kib != 0 && settings->quarantine_blocks != 0 &&
                           settings->quarantine_blocks < 1 << NUMBER_BITS;
    if (!atomic_load(&is_on) && is_wanted && open_records(settings)) {
        sj_virtual_open();
        lead(region, true);
        atomic_store(&is_on, true);
        lead(region, false);
    }
}

bool sj_quarantine_is_on(void)
{
    return atomic_load(&is_on);
}

/* Somebody who works on a record is waited for, though not for ever. */
static void empty_record(sj_kept_block *kept, uint64_t deadline_ns)
{
    while (atomic_load(&kept->state) != KEPT_NONE) {
        if (take_state(kept, KEPT_WHOLE)) {
            let_go(kept, SJ_GONE_LEFT);
            put_state(kept, KEPT_NONE);
        } else if (sj_sys_clock_ns(CLOCK_MONOTONIC) > deadline_ns) {
            return;
        } else {
            (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        }
    }
}

void sj_quarantine_end(void)
{
    const uint64_t deadline_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
    if (!atomic_load(&is_on)) {
        return;
    }
    lead(NULL, false);
    atomic_store(&is_on, false);
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        empty_record(record_at(i), deadline_ns);
    }
    lead(NULL, true);
}

void sj_quarantine_check(void)
{
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        sj_kept_block *kept = record_at(i);
        if (take_state(kept, KEPT_WHOLE)) {
            const uint64_t changed = find_change(kept);
            if (changed != 0) {
                (void)sj_report_kept(kept, SJ_ZOMBIE_WRITE_AFTER_FREE, changed, NULL, kept->site);
            }
            put_state(kept, KEPT_WHOLE);
        }
    }
}

void sj_quarantine_shrink(void)
{
    const uint64_t half = atomic_load(&held_bytes) / 2;
    while (records != NULL && atomic_load(&held_bytes) > half && let_oldest_go(SJ_GONE_PRESSURE)) {
    }
}

/* What other threads were doing will not be finished: such a block is lost. */
void sj_quarantine_after_fork(void)
{
    for (uint32_t i = 0; i < record_count && i < atomic_load(&next); i++) {
        uint32_t owned = KEPT_OWNED;
        (void)atomic_compare_exchange_strong(&record_at(i)->state, &owned, KEPT_NONE);
    }
}

void sj_quarantine_forget(void)
{
    if (records == NULL || atomic_load(&is_on)) {
        return; /* it was never ended: its blocks stay what they are */
    }
    (void)sj_sys_unmap((void *)places, mapped_bytes());
    records = NULL;
    atomic_store(&next, 0);
    atomic_store(&oldest, 0);
    atomic_store(&held_bytes, 0);
}
