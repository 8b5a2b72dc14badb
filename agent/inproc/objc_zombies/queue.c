/* Design notes
 *
 * Kept objects are recorded in slabs of up to 64 records. Each thread has a queue of slabs, of
 * which it fills the last one. If all slabs are used, the thread refills its oldest slab from the
 * start. Each new record then replaces an old record, whose object is freed. So the allocator gets
 * back as many blocks as it gives out, one at a time, and keeps them in its fastest lists. The
 * number of slabs limits the number of kept objects.
 *
 * A thread changes its own queue without a lock: it sets is_busy, then checks is_stopped. To change
 * another thread's queue, a thread sets is_stopped, makes all threads run a memory barrier
 * (membarrier; without it, each owner runs a barrier itself), and waits until is_busy is 0. If a
 * signal handler finds the queue of its own thread busy, it frees its object at once. */
#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/recorder/owner_lock.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    QUEUES = 1024,
    MAX_SLAB_OBJECTS = 64,
    MIN_SLABS = 8,
    DEAD_CHECKS = 16,
    PREFETCH_DISTANCE = 3, /* Distance in records. */
    ALIGNMENT = 16,
    LINE = 64
};

#define NS_PER_MS UINT64_C(1000000)
#define WAIT_NS UINT64_C(5000000000)
#define LITTLE_WAIT_NS UINT64_C(100000000)

typedef struct kept_slab {
    uint32_t next;          /* 1 + the index of the next slab, or 0. */
    _Atomic uint32_t count; /* Number of records that were written since the slab was (re)used. */
    uint64_t bytes;         /* Size of these objects and their records. */
    uint64_t closed_ns;     /* Time when the slab became full; 0 while it is being filled. */
    /* Size of the objects that were in the slab when it was reused. Part of kept_bytes until the
     * slab is closed. */
    uint64_t old_bytes;
    uint32_t index;
    /* Number of objects that were in the slab when it was reused. Records from `count` to
     * `old_count` still have theirs. */
    _Atomic uint32_t old_count;
    uint32_t reserved[6]; /* Aligns the records to cache lines. */
} kept_slab;

typedef struct kept_queue {
    _Atomic uint32_t is_busy;
    _Atomic uint32_t is_stopped;
    _Atomic uint32_t tid; /* Thread that owns the queue, or 0. */
    uint32_t head;        /* 1 + the index of the oldest slab, or 0. */
    uint32_t tail;        /* 1 + the index of the newest slab, or 0. */
    uint32_t slabs;       /* Number of slabs. */
    uint64_t reserved[4];
} kept_queue;

static kept_queue queues[QUEUES];
static _Atomic uint32_t queue_count;
/* Queue of the calling thread; NULL before it keeps its first object. */
static __thread kept_queue *own_queue __attribute__((tls_model("initial-exec")));

static sj_queue_free_function free_object;
static uint8_t *slabs_base;
static uint32_t slab_count;
static uint32_t slab_objects;
static uint32_t stack_bytes;
static uint64_t kept_stride;
static uint64_t slab_stride;
static uint64_t bytes_limit;
static uint64_t age_ns; /* Objects of older slabs are freed; 0 if their age does not matter. */
static _Atomic uint64_t kept_bytes;      /* Size of the objects and records in all closed slabs. */
static sj_owner_lock spare_lock;         /* Guards used_slabs and first_spare. */
static uint32_t used_slabs;              /* Number of slabs that were ever used. */
static uint32_t first_spare;             /* 1 + the index of the first unused slab, or 0. */
static bool needs_fence;                 /* True if the kernel has no membarrier. */
static _Atomic bool may_any_thread_free; /* True if any thread may free an object after a use. */
/* True once no thread can still act as if may_any_thread_free were false. */
static _Atomic bool do_all_know;

_Static_assert(sizeof(kept_slab) == LINE, "records begin with a cache line");

static kept_slab *slab_at(uint32_t index)
{
    return (kept_slab *)(void *)(slabs_base + (uint64_t)index * slab_stride);
}

static sj_kept *record_at(kept_slab *slab, uint32_t index)
{
    return (sj_kept *)(void *)((uint8_t *)(slab + 1) + (uint64_t)index * kept_stride);
}

static void register_barrier(void)
{
    needs_fence =
        !sj_recorder_may_call() ||
        SJ_SYS(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0) != 0;
}

bool sj_queue_open(const sj_zombie_objects *settings, sj_queue_free_function by)
{
    free_object = by;
    if (slabs_base != NULL) {
        return true;
    }
    const uint32_t objects = settings->queue_objects;
    stack_bytes = settings->stack_bytes & ~(uint32_t)(ALIGNMENT - 1);
    slab_objects = objects / MIN_SLABS;
    slab_objects = slab_objects < 1                  ? 1
                   : slab_objects > MAX_SLAB_OBJECTS ? MAX_SLAB_OBJECTS
                                                     : slab_objects;
    slab_count = objects / slab_objects;
    const uint64_t kept =
        stack_bytes != 0 ? sizeof(sj_kept) + stack_bytes : offsetof(sj_kept, release.registers);
    kept_stride = (kept + LINE - 1) & ~(uint64_t)(LINE - 1);
    slab_stride = sizeof(kept_slab) + slab_objects * kept_stride;
    bytes_limit = (uint64_t)settings->queue_kib << 10;
    age_ns = settings->queue_age_ms * NS_PER_MS;
    void *mapped = sj_sys_map(NULL, slab_count * slab_stride, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sj_sys_failed(mapped)) {
        return false;
    }
    register_barrier();
    atomic_store(&may_any_thread_free, settings->on_use == SJ_ZOMBIE_FREE);
    atomic_store(&do_all_know, settings->on_use == SJ_ZOMBIE_FREE);
    slabs_base = mapped;
    return true;
}

/* Removes the object of a record and returns it, or NULL if it was freed. Uses the slow atomic
 * exchange only if other threads may free objects. */
static inline void *remove_object(sj_kept *kept)
{
    if (atomic_load_explicit(&may_any_thread_free, memory_order_relaxed)) {
        return atomic_exchange(&kept->object, NULL);
    }
    void *object = atomic_load_explicit(&kept->object, memory_order_relaxed);
    atomic_store_explicit(&kept->object, NULL, memory_order_relaxed);
    return object;
}

/* Frees the object of a record. Returns the number of objects freed, 0 or 1. */
static inline uint32_t free_record(kept_slab *slab, uint32_t record_index)
{
    sj_kept *kept = record_at(slab, record_index);
    void *object = remove_object(kept);
    if (object == NULL) {
        return 0;
    }
    free_object(object, kept->class, (sj_objc_source)kept->source);
    return 1;
}

/* Frees the old objects of a reused slab from record `record_index` on. */
static void free_old(kept_slab *slab, uint32_t record_index)
{
    const uint32_t count = atomic_load_explicit(&slab->old_count, memory_order_relaxed);
    uint32_t freed = 0;
    for (uint32_t i = record_index; i < count; i++) {
        freed += free_record(slab, i);
    }
    atomic_store(&slab->old_count, 0);
    atomic_fetch_sub(&kept_bytes, slab->old_bytes);
    sj_objects_count(kept_full, freed);
    slab->old_bytes = 0;
}

/* Frees all objects of a slab that was removed from its queue. */
static void empty_slab(kept_slab *slab, sj_object_release_reason reason)
{
    const uint32_t count = atomic_load(&slab->count);
    uint32_t freed = 0;
    free_old(slab, count);
    for (uint32_t i = 0; i < count; i++) {
        freed += free_record(slab, i);
    }
    if (slab->closed_ns != 0) {
        atomic_fetch_sub(&kept_bytes, slab->bytes);
    }
    slab->bytes = 0;
    atomic_store(&slab->count, 0);
    switch (reason) {
    case SJ_OBJECT_RELEASE_FULL:
        sj_objects_count(kept_full, freed);
        break;
    case SJ_OBJECT_RELEASE_OLD:
        sj_objects_count(kept_old, freed);
        break;
    case SJ_OBJECT_RELEASE_PRESSURE:
        sj_objects_count(kept_pressure, freed);
        break;
    default:
        sj_objects_count(kept_left, freed);
        break;
    }
}

static kept_slab *remove_first_slab(kept_queue *queue)
{
    kept_slab *slab = slab_at(queue->head - 1);
    queue->head = slab->next;
    queue->tail = queue->head == 0 ? 0 : queue->tail;
    queue->slabs--;
    slab->next = 0;
    return slab;
}

static void return_slab(kept_slab *slab)
{
    if (sj_owner_lock_acquire(&spare_lock)) {
        slab->next = first_spare;
        first_spare = slab->index + 1;
        sj_owner_lock_free(&spare_lock);
    }
}

static kept_slab *claim_slab(void)
{
    kept_slab *slab = NULL;
    if (!sj_owner_lock_acquire(&spare_lock)) {
        return NULL;
    }
    if (first_spare != 0) {
        slab = slab_at(first_spare - 1);
        first_spare = slab->next;
        slab->next = 0;
    } else if (used_slabs < slab_count) {
        slab = slab_at(used_slabs);
        slab->index = used_slabs++;
    }
    sj_owner_lock_free(&spare_lock);
    return slab;
}

/* Stops the owner of a queue from changing it. Returns false if the queue is still busy after
 * `wait_ns`, or if another thread has stopped it. If the caller has its own queue entered,
 * `wait_ns` is 0: the other thread may be waiting for it. */
static bool stop_queue(kept_queue *queue, uint64_t wait_ns)
{
    const uint64_t deadline_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) + wait_ns;
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&queue->is_stopped, &none, 1)) {
        return false; /* Another thread has stopped the queue. */
    }
    if (!needs_fence) {
        (void)SJ_SYS(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0);
    }
    while (atomic_load(&queue->is_busy) != 0) {
        if (wait_ns == 0 || sj_sys_clock_ns(CLOCK_MONOTONIC) > deadline_ns) {
            atomic_store(&queue->is_stopped, 0);
            return false;
        }
        (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return true;
}

/* Starts to change the calling thread's queue. Returns false if the queue is busy or stopped. */
static inline bool enter_queue(kept_queue *queue)
{
    if (atomic_load_explicit(&queue->is_busy, memory_order_relaxed) != 0) {
        return false; /* The caller is a signal handler that interrupted the owner. */
    }
    atomic_store_explicit(&queue->is_busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (needs_fence) {
        atomic_thread_fence(memory_order_seq_cst);
    }
    if (atomic_load_explicit(&queue->is_stopped, memory_order_acquire) != 0) {
        atomic_store_explicit(&queue->is_busy, 0, memory_order_release);
        return false;
    }
    return true;
}

/* Adds to a counter that only one thread writes, so without an atomic addition, which is slow. */
static inline void count_one(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

/* Counts a kept object and `freed` objects whose records it replaced. The first queues have their
 * own counters; all others share the last one. */
static inline void count_kept(const kept_queue *queue, uint32_t freed)
{
    sj_zombie_region *region = atomic_load_explicit(&sj_zombie_region_now, memory_order_relaxed);
    const uint64_t record_index = (uint64_t)(queue - queues);
    if (region == NULL) {
        return;
    }
    if (record_index < SJ_ZOMBIE_CELLS - 1) {
        count_one(&region->kept[record_index].count, 1);
        count_one(&region->kept[record_index].full, freed);
    } else {
        atomic_fetch_add(&region->kept[SJ_ZOMBIE_CELLS - 1].count, 1);
        atomic_fetch_add(&region->kept[SJ_ZOMBIE_CELLS - 1].full, freed);
    }
}

static inline void exit_queue(kept_queue *queue)
{
    atomic_store_explicit(&queue->is_busy, 0, memory_order_release);
}

/* True if the thread that owns a queue has ended. */
static bool is_dead(const kept_queue *queue)
{
    const uint32_t tid = atomic_load(&queue->tid);
    return tid != 0 && sj_recorder_may_call() &&
           SJ_SYS(SYS_tgkill, sj_sys_pid(), tid, 0, 0, 0, 0) == -ESRCH;
}

/* Claims the queue of a thread that has ended, with its objects. Checks at most DEAD_CHECKS queues.
 * Returns NULL if none is found. */
static kept_queue *adopt_queue(uint32_t count)
{
    static _Atomic uint32_t next;
    for (uint32_t i = 0; i < DEAD_CHECKS && i < count; i++) {
        kept_queue *queue = &queues[atomic_fetch_add(&next, 1) % count];
        uint32_t tid = atomic_load(&queue->tid);
        if (is_dead(queue) && atomic_load(&queue->is_busy) == 0 &&
            atomic_compare_exchange_strong(&queue->tid, &tid, sj_sys_tid())) {
            return queue;
        }
    }
    return NULL;
}

/* Claims a queue for the calling thread. Returns NULL if all are in use. */
static kept_queue *claim_queue(void)
{
    uint32_t count = atomic_load(&queue_count);
    kept_queue *queue = adopt_queue(count);
    while (queue == NULL && count < QUEUES) {
        if (atomic_compare_exchange_weak(&queue_count, &count, count + 1)) {
            queue = &queues[count];
            atomic_store(&queue->tid, sj_sys_tid());
        }
    }
    own_queue = queue;
    return queue;
}

/* Removes the oldest slab of any other thread's queue. Returns NULL if none has a slab. */
static kept_slab *claim_from_others(const kept_queue *self)
{
    static _Atomic uint32_t next;
    const uint32_t count = atomic_load(&queue_count);
    for (uint32_t i = 0; i < count; i++) {
        kept_queue *queue = &queues[atomic_fetch_add(&next, 1) % count];
        kept_slab *slab = NULL;
        if (queue != self && queue->head != 0 && stop_queue(queue, 0)) {
            slab = queue->head != 0 ? remove_first_slab(queue) : NULL;
            atomic_store(&queue->is_stopped, 0);
        }
        if (slab != NULL) {
            return slab;
        }
    }
    return NULL;
}

static void empty_first_slab(kept_queue *queue, sj_object_release_reason reason)
{
    kept_slab *slab = remove_first_slab(queue);
    empty_slab(slab, reason);
    return_slab(slab);
}

/* Frees the objects of slabs that are older than age_ns. */
static void empty_aged(kept_queue *queue, uint64_t now_ns)
{
    while (age_ns != 0 && queue->head != 0 && slab_at(queue->head - 1)->closed_ns != 0 &&
           now_ns - slab_at(queue->head - 1)->closed_ns > age_ns) {
        empty_first_slab(queue, SJ_OBJECT_RELEASE_OLD);
    }
}

/* Marks the newest slab as full. */
static void close_tail(kept_queue *queue, uint64_t now_ns)
{
    kept_slab *slab = queue->tail != 0 ? slab_at(queue->tail - 1) : NULL;
    if (slab != NULL && slab->closed_ns == 0) {
        free_old(slab, atomic_load_explicit(&slab->count, memory_order_relaxed));
        slab->closed_ns = now_ns;
        atomic_fetch_add(&kept_bytes, slab->bytes);
    }
}

/* Prepares a closed slab to be filled again. Each new record frees the object of an old one. */
static void reuse_slab(kept_slab *slab)
{
    slab->old_bytes = slab->bytes;
    slab->bytes = 0;
    atomic_store(&slab->old_count, atomic_load_explicit(&slab->count, memory_order_relaxed));
    atomic_store(&slab->count, 0);
}

/* Adds an unused or reused slab to the end of the calling thread's queue. Returns NULL if no slab
 * is available. */
static kept_slab *open_slab(kept_queue *queue)
{
    const uint64_t now_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    close_tail(queue, now_ns);
    empty_aged(queue, now_ns);
    while (atomic_load(&kept_bytes) > bytes_limit && queue->head != 0) {
        empty_first_slab(queue, SJ_OBJECT_RELEASE_FULL);
    }
    kept_slab *slab = atomic_load(&kept_bytes) > bytes_limit ? NULL : claim_slab();
    if (slab == NULL) {
        slab = queue->head != 0 ? remove_first_slab(queue) : claim_from_others(queue);
        if (slab == NULL) {
            return NULL;
        }
        if (slab->closed_ns != 0) {
            reuse_slab(slab);
        } else { /* The slab comes from another thread, which was filling it. */
            empty_slab(slab, SJ_OBJECT_RELEASE_FULL);
        }
    }
    slab->closed_ns = 0;
    if (queue->tail != 0) {
        slab_at(queue->tail - 1)->next = slab->index + 1;
    } else {
        queue->head = slab->index + 1;
    }
    queue->tail = slab->index + 1;
    queue->slabs++;
    return slab;
}

static bool is_slab_full(const kept_slab *slab)
{
    return atomic_load_explicit(&slab->count, memory_order_relaxed) == slab_objects ||
           slab->bytes > bytes_limit / MIN_SLABS || slab->closed_ns != 0;
}

/* Stores the position of the record in the word before the object, where Foundation counted owners.
 * An object of SJ_OBJC_DISPOSE has no such word. */
static void write_hint(void *object, sj_objc_source source, uint64_t hint)
{
    if (source != SJ_OBJC_DISPOSE) {
        ((uint64_t *)object)[-1] = hint;
    }
}

/* Prefetches the word before an old object that will be freed soon. */
static inline void prefetch_old(kept_slab *slab, uint32_t record_index)
{
    if (record_index < atomic_load_explicit(&slab->old_count, memory_order_relaxed)) {
        const void *object =
            atomic_load_explicit(&record_at(slab, record_index)->object, memory_order_relaxed);
        __builtin_prefetch((const uint64_t *)object - 1, 1);
    }
}

/* Writes the next record of a slab and makes the object a zombie. Returns the number of objects
 * freed. */
static __attribute__((always_inline)) inline uint32_t
write_record(kept_slab *slab, void *object, const sj_gcc_class *class, sj_objc_source source)
{
    const uint32_t record_index = atomic_load_explicit(&slab->count, memory_order_relaxed);
    sj_kept *kept = record_at(slab, record_index);
    uint32_t freed = 0;
    if (record_index < atomic_load_explicit(&slab->old_count, memory_order_relaxed)) {
        freed = free_record(slab, record_index);
        prefetch_old(slab, record_index + PREFETCH_DISTANCE);
    }
    kept->class = class;
    kept->source = source;
    kept->bytes = (uint32_t) class->instance_bytes;
    atomic_store_explicit(&kept->is_reported, 0, memory_order_relaxed);
    kept->release.ticks = sj_arch_ticks();
    kept->release.tid = atomic_load_explicit(&own_queue->tid, memory_order_relaxed);
    kept->release.stack_bytes = 0;
    if (stack_bytes != 0) {
        sj_trace_here(&kept->release);
        sj_stack_copy_own(&kept->release, kept + 1, stack_bytes);
    }
    write_hint(object, source, (uint64_t)slab->index << 8 | record_index | UINT64_C(1) << 63);
    slab->bytes += kept->bytes + kept_stride;
    atomic_store_explicit(&kept->object, object, memory_order_relaxed);
    atomic_store_explicit(&slab->count, record_index + 1, memory_order_release);
    *(const sj_gcc_class **)object = &sj_objc_trampolines_now->zombie;
    return freed;
}

bool sj_queue_keep(void *object, const sj_gcc_class *class, sj_objc_source source)
{
    kept_queue *queue = own_queue != NULL ? own_queue : claim_queue();
    if (queue == NULL || !enter_queue(queue)) {
        return false;
    }
    kept_slab *slab = queue->tail != 0 ? slab_at(queue->tail - 1) : NULL;
    if (slab == NULL || is_slab_full(slab)) {
        slab = open_slab(queue);
    }
    if (slab != NULL) {
        count_kept(queue, write_record(slab, object, class, source));
    }
    exit_queue(queue);
    return slab != NULL;
}

static sj_kept *search_all_slabs(const void *object)
{
    const uint32_t slabs = used_slabs < slab_count ? used_slabs : slab_count;
    for (uint32_t i = 0; i < slabs; i++) {
        const uint32_t old_count = atomic_load(&slab_at(i)->old_count);
        const uint32_t filled = atomic_load(&slab_at(i)->count);
        const uint32_t count = filled > old_count ? filled : old_count;
        for (uint32_t j = 0; j < count && j < slab_objects; j++) {
            sj_kept *kept = record_at(slab_at(i), j);
            if (atomic_load(&kept->object) == object) {
                return kept;
            }
        }
    }
    return NULL;
}

sj_kept *sj_queue_find(const void *object)
{
    const uint64_t hint = ((const uint64_t *)object)[-1];
    const uint64_t slab = (hint & ~(UINT64_C(1) << 63)) >> 8;
    if (hint >> 63 != 0 && slab < slab_count && (hint & 0xff) < slab_objects) {
        sj_kept *kept = record_at(slab_at((uint32_t)slab), (uint32_t)hint & 0xff);
        if (atomic_load(&kept->object) == object) {
            return kept;
        }
    }
    /* The program has overwritten the word, or the object has none. */
    return search_all_slabs(object);
}

static void empty_queue(kept_queue *queue, sj_object_release_reason reason, bool only_half)
{
    uint32_t count = only_half ? (queue->slabs + 1) / 2 : queue->slabs;
    close_tail(queue, sj_sys_clock_ns(CLOCK_MONOTONIC));
    for (; count != 0 && queue->head != 0; count--) {
        empty_first_slab(queue, reason);
    }
}

void sj_queue_empty(sj_object_release_reason reason, bool only_half)
{
    const uint32_t count = atomic_load(&queue_count);
    for (uint32_t i = 0; i < count; i++) {
        if (stop_queue(&queues[i], WAIT_NS)) {
            empty_queue(&queues[i], reason, only_half);
            atomic_store(&queues[i].is_stopped, 0);
        }
    }
    if (!only_half && sj_recorder_may_call()) {
        (void)SJ_SYS(SYS_madvise, slabs_base, slab_count * slab_stride, MADV_DONTNEED, 0, 0, 0);
    }
}

/* Sets may_any_thread_free, and waits until no thread is still freeing objects without atomic
 * exchange. Returns false if a thread does not stop, or if the calling thread is in its own queue.
 */
static bool announce_free_by_any(void)
{
    const uint32_t count = atomic_load(&queue_count);
    if (atomic_load(&do_all_know)) {
        return true;
    }
    if (own_queue != NULL && atomic_load(&own_queue->is_busy) != 0) {
        return false;
    }
    atomic_store(&may_any_thread_free, true);
    for (uint32_t i = 0; i < count; i++) {
        if (!stop_queue(&queues[i], LITTLE_WAIT_NS)) {
            return false;
        }
        atomic_store(&queues[i].is_stopped, 0);
    }
    atomic_store(&do_all_know, true);
    return true;
}

void sj_queue_free_used(sj_kept *kept)
{
    if (!announce_free_by_any()) {
        return;
    }
    void *object = atomic_exchange(&kept->object, NULL);
    if (object != NULL) {
        free_object(object, kept->class, (sj_objc_source)kept->source);
        sj_objects_count(kept_used, 1);
    }
}

/* The child has no other threads, so it releases the queues and the lock that these held. */
void sj_queue_after_fork(void)
{
    const uint32_t count = atomic_load(&queue_count);
    for (uint32_t i = 0; i < count; i++) {
        atomic_store(&queues[i].is_busy, 0);
        atomic_store(&queues[i].is_stopped, 0);
    }
    if (own_queue != NULL) {
        atomic_store(&own_queue->tid, sj_sys_tid());
    }
    atomic_store(&spare_lock, 0);
    if (slabs_base != NULL) {
        register_barrier();
    }
}
