/* Design notes
 *
 * Kept objects lie in slabs of some dozen; each thread fills slabs of its own, in a queue. When the
 * room is needed, the first slab is filled again from its beginning, and each object that is kept
 * lets the one go that lay in its place: the allocator gets as many blocks as it gives out, one by
 * one, and keeps them in its fastest lists. The slabs' number bounds that of all objects. A thread
 * works on its queue without a lock: it says that it is busy, then looks whether it is to stop. Who
 * wants another thread's queue says stop, has the kernel run a barrier in all threads (membarrier;
 * without it, owners run a barrier themselves), and waits until that thread is not busy. A signal
 * handler that finds its thread busy frees its objects at once. */
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
    SLAB_OBJECTS_MOST = 64,
    SLABS_LEAST = 8,
    DEAD_LOOKS = 16,
    SOON = 3, /* objects from now */
    ALIGNMENT = 16,
    LINE = 64
};

#define NS_PER_MS UINT64_C(1000000)
#define WAIT_NS UINT64_C(5000000000)
#define LITTLE_WAIT_NS UINT64_C(100000000)

typedef struct kept_slab {
    uint32_t next;          /* 1 + index; 0: the last */
    _Atomic uint32_t count; /* of objects that were put in */
    uint64_t bytes;         /* of their instances, and of what is kept of them */
    uint64_t closed_ns;
    uint64_t old_bytes; /* of what lay in it when it was begun anew, which counts until it closes */
    uint32_t index;
    _Atomic uint32_t old_count; /* of what lay in it then: from `count` on it still does */
    uint32_t reserved[6];       /* records begin with a cache line */
} kept_slab;

typedef struct kept_queue {
    _Atomic uint32_t is_busy;
    _Atomic uint32_t is_stopped;
    _Atomic uint32_t tid; /* of its thread; 0: it has none */
    uint32_t head;        /* 1 + index of a slab; 0: none */
    uint32_t tail;
    uint32_t slabs;
    uint64_t reserved[4];
} kept_queue;

static kept_queue queues[QUEUES];
static _Atomic uint32_t queue_count;
static __thread kept_queue *own __attribute__((tls_model("initial-exec")));

static sj_queue_let_go let_go;
static uint8_t *slabs_base;
static uint32_t slab_count;
static uint32_t slab_objects;
static uint32_t stack_bytes;
static uint64_t kept_stride;
static uint64_t slab_stride;
static uint64_t bytes_limit;
static uint64_t age_ns;
static _Atomic uint64_t kept_bytes;
static sj_owner_lock spare_lock; /* guards these: */
static uint32_t fresh_slabs;
static uint32_t spare;
static bool needs_fence;
static _Atomic bool are_used_freed; /* a use may let an object go, in any thread */
static _Atomic bool are_all_met;    /* and all threads know */

_Static_assert(sizeof(kept_slab) == LINE, "records begin with a cache line");

static kept_slab *slab_at(uint32_t index)
{
    return (kept_slab *)(void *)(slabs_base + (uint64_t)index * slab_stride);
}

static sj_kept *kept_at(kept_slab *slab, uint32_t index)
{
    return (sj_kept *)(void *)((uint8_t *)(slab + 1) + (uint64_t)index * kept_stride);
}

static void register_barrier(void)
{
    needs_fence =
        !sj_recorder_may_call() ||
        SJ_SYS(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0) != 0;
}

bool sj_queue_open(const sj_zombie_objects *settings, sj_queue_let_go by)
{
    let_go = by;
    if (slabs_base != NULL) {
        return true;
    }
    const uint32_t objects = settings->queue_objects;
    stack_bytes = settings->stack_bytes & ~(uint32_t)(ALIGNMENT - 1);
    slab_objects = objects / SLABS_LEAST;
    slab_objects = slab_objects < 1                   ? 1
                   : slab_objects > SLAB_OBJECTS_MOST ? SLAB_OBJECTS_MOST
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
    atomic_store(&are_used_freed, settings->on_use == SJ_ZOMBIE_FREE);
    atomic_store(&are_all_met, settings->on_use == SJ_ZOMBIE_FREE);
    slabs_base = mapped;
    return true;
}

/* The object of a record, for who lets it go; NULL: it is gone. A locked instruction would cost as
 * much as the rest, and is needed only if others let objects go, too. */
static inline void *take_object(sj_kept *kept)
{
    if (atomic_load_explicit(&are_used_freed, memory_order_relaxed)) {
        return atomic_exchange(&kept->object, NULL);
    }
    void *object = atomic_load_explicit(&kept->object, memory_order_relaxed);
    atomic_store_explicit(&kept->object, NULL, memory_order_relaxed);
    return object;
}

static inline uint32_t let_place_go(kept_slab *slab, uint32_t place)
{
    sj_kept *kept = kept_at(slab, place);
    void *object = take_object(kept);
    if (object == NULL) {
        return 0;
    }
    let_go(object, kept->class, (sj_objc_source)kept->source);
    return 1;
}

/* What lay in a slab that was begun anew, from a place on; it no longer counts. */
static void let_old_go(kept_slab *slab, uint32_t place)
{
    const uint32_t count = atomic_load_explicit(&slab->old_count, memory_order_relaxed);
    uint32_t gone = 0;
    for (uint32_t i = place; i < count; i++) {
        gone += let_place_go(slab, i);
    }
    atomic_store(&slab->old_count, 0);
    atomic_fetch_sub(&kept_bytes, slab->old_bytes);
    sj_objects_count(kept_full, gone);
    slab->old_bytes = 0;
}

/* Lets the objects of a slab go; the slab is in no queue. */
static void empty_slab(kept_slab *slab, sj_let_go why)
{
    const uint32_t count = atomic_load(&slab->count);
    uint32_t gone = 0;
    let_old_go(slab, count);
    for (uint32_t i = 0; i < count; i++) {
        gone += let_place_go(slab, i);
    }
    if (slab->closed_ns != 0) {
        atomic_fetch_sub(&kept_bytes, slab->bytes);
    }
    slab->bytes = 0;
    atomic_store(&slab->count, 0);
    switch (why) {
    case SJ_LET_GO_FULL:
        sj_objects_count(kept_full, gone);
        break;
    case SJ_LET_GO_OLD:
        sj_objects_count(kept_old, gone);
        break;
    case SJ_LET_GO_PRESSURE:
        sj_objects_count(kept_pressure, gone);
        break;
    default:
        sj_objects_count(kept_left, gone);
        break;
    }
}

static kept_slab *take_first(kept_queue *queue)
{
    kept_slab *slab = slab_at(queue->head - 1);
    queue->head = slab->next;
    queue->tail = queue->head == 0 ? 0 : queue->tail;
    queue->slabs--;
    slab->next = 0;
    return slab;
}

static void put_spare(kept_slab *slab)
{
    if (sj_owner_lock_take(&spare_lock)) {
        slab->next = spare;
        spare = slab->index + 1;
        sj_owner_lock_free(&spare_lock);
    }
}

static kept_slab *take_spare(void)
{
    kept_slab *slab = NULL;
    if (!sj_owner_lock_take(&spare_lock)) {
        return NULL;
    }
    if (spare != 0) {
        slab = slab_at(spare - 1);
        spare = slab->next;
        slab->next = 0;
    } else if (fresh_slabs < slab_count) {
        slab = slab_at(fresh_slabs);
        slab->index = fresh_slabs++;
    }
    sj_owner_lock_free(&spare_lock);
    return slab;
}

/* Another thread's queue: false if its thread is in it after that time. A thread that is in its own
 * queue does not wait: the other one may be waiting for it. */
static bool stop_queue(kept_queue *queue, uint64_t wait_ns)
{
    const uint64_t deadline_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) + wait_ns;
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&queue->is_stopped, &none, 1)) {
        return false; /* somebody else is at it */
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

static inline bool begin(kept_queue *queue)
{
    if (atomic_load_explicit(&queue->is_busy, memory_order_relaxed) != 0) {
        return false; /* a signal handler */
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

/* Cells of their own for the first threads: a locked instruction would be half of the cost. */
static inline void count_one(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

/* An object was kept, and in its place as many let go. */
static inline void count_kept(const kept_queue *queue, uint32_t gone)
{
    sj_zombie_region *region = atomic_load_explicit(&sj_zombie_region_now, memory_order_relaxed);
    const uint64_t place = (uint64_t)(queue - queues);
    if (region == NULL) {
        return;
    }
    if (place < SJ_ZOMBIE_CELLS - 1) {
        count_one(&region->kept[place].count, 1);
        count_one(&region->kept[place].full, gone);
    } else {
        atomic_fetch_add(&region->kept[SJ_ZOMBIE_CELLS - 1].count, 1);
        atomic_fetch_add(&region->kept[SJ_ZOMBIE_CELLS - 1].full, gone);
    }
}

static inline void end(kept_queue *queue)
{
    atomic_store_explicit(&queue->is_busy, 0, memory_order_release);
}

static bool is_dead(const kept_queue *queue)
{
    const uint32_t tid = atomic_load(&queue->tid);
    return tid != 0 && sj_recorder_may_call() &&
           SJ_SYS(SYS_tgkill, sj_sys_pid(), tid, 0, 0, 0, 0) == -ESRCH;
}

/* The queue of a thread that has ended goes on with what it has. */
static kept_queue *adopt_queue(uint32_t count)
{
    static _Atomic uint32_t next;
    for (uint32_t i = 0; i < DEAD_LOOKS && i < count; i++) {
        kept_queue *queue = &queues[atomic_fetch_add(&next, 1) % count];
        uint32_t tid = atomic_load(&queue->tid);
        if (is_dead(queue) && atomic_load(&queue->is_busy) == 0 &&
            atomic_compare_exchange_strong(&queue->tid, &tid, sj_sys_tid())) {
            return queue;
        }
    }
    return NULL;
}

static kept_queue *find_queue(void)
{
    uint32_t count = atomic_load(&queue_count);
    kept_queue *queue = adopt_queue(count);
    while (queue == NULL && count < QUEUES) {
        if (atomic_compare_exchange_weak(&queue_count, &count, count + 1)) {
            queue = &queues[count];
            atomic_store(&queue->tid, sj_sys_tid());
        }
    }
    own = queue;
    return queue;
}

/* Takes the oldest slab of another thread that has some; NULL: none has. */
static kept_slab *take_from_others(const kept_queue *self)
{
    static _Atomic uint32_t next;
    const uint32_t count = atomic_load(&queue_count);
    for (uint32_t i = 0; i < count; i++) {
        kept_queue *queue = &queues[atomic_fetch_add(&next, 1) % count];
        kept_slab *slab = NULL;
        if (queue != self && queue->head != 0 && stop_queue(queue, 0)) {
            slab = queue->head != 0 ? take_first(queue) : NULL;
            atomic_store(&queue->is_stopped, 0);
        }
        if (slab != NULL) {
            return slab;
        }
    }
    return NULL;
}

static void empty_first(kept_queue *queue, sj_let_go why)
{
    kept_slab *slab = take_first(queue);
    empty_slab(slab, why);
    put_spare(slab);
}

static void empty_aged(kept_queue *queue, uint64_t now_ns)
{
    while (age_ns != 0 && queue->head != 0 && slab_at(queue->head - 1)->closed_ns != 0 &&
           now_ns - slab_at(queue->head - 1)->closed_ns > age_ns) {
        empty_first(queue, SJ_LET_GO_OLD);
    }
}

static void close_tail(kept_queue *queue, uint64_t now_ns)
{
    kept_slab *slab = queue->tail != 0 ? slab_at(queue->tail - 1) : NULL;
    if (slab != NULL && slab->closed_ns == 0) {
        let_old_go(slab, atomic_load_explicit(&slab->count, memory_order_relaxed));
        slab->closed_ns = now_ns;
        atomic_fetch_add(&kept_bytes, slab->bytes);
    }
}

/* What lies in a closed slab is let go as its places are filled. */
static void begin_anew(kept_slab *slab)
{
    slab->old_bytes = slab->bytes;
    slab->bytes = 0;
    atomic_store(&slab->old_count, atomic_load_explicit(&slab->count, memory_order_relaxed));
    atomic_store(&slab->count, 0);
}

/* A new slab at the end of the calling thread's queue; NULL: there is no room. */
static kept_slab *open_slab(kept_queue *queue)
{
    const uint64_t now_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    close_tail(queue, now_ns);
    empty_aged(queue, now_ns);
    while (atomic_load(&kept_bytes) > bytes_limit && queue->head != 0) {
        empty_first(queue, SJ_LET_GO_FULL);
    }
    kept_slab *slab = atomic_load(&kept_bytes) > bytes_limit ? NULL : take_spare();
    if (slab == NULL) {
        slab = queue->head != 0 ? take_first(queue) : take_from_others(queue);
        if (slab == NULL) {
            return NULL;
        }
        if (slab->closed_ns != 0) {
            begin_anew(slab);
        } else { /* another thread was filling it */
            empty_slab(slab, SJ_LET_GO_FULL);
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

static bool is_full(const kept_slab *slab)
{
    return atomic_load_explicit(&slab->count, memory_order_relaxed) == slab_objects ||
           slab->bytes > bytes_limit / SLABS_LEAST || slab->closed_ns != 0;
}

/* The word in front of an object of Foundation counted its owners. */
static void write_hint(void *object, sj_objc_source source, uint64_t hint)
{
    if (source != SJ_OBJC_DISPOSE) {
        ((uint64_t *)object)[-1] = hint;
    }
}

/* The word in front of an object, and the block's behind that, are long out of the nearest cache.
 */
static inline void prefetch_old(kept_slab *slab, uint32_t place)
{
    if (place < atomic_load_explicit(&slab->old_count, memory_order_relaxed)) {
        const void *object =
            atomic_load_explicit(&kept_at(slab, place)->object, memory_order_relaxed);
        __builtin_prefetch((const uint64_t *)object - 1, 1);
    }
}

/* Returns how many objects were let go. */
static __attribute__((always_inline)) inline uint32_t
fill(kept_slab *slab, void *object, const sj_gcc_class *class, sj_objc_source source)
{
    const uint32_t place = atomic_load_explicit(&slab->count, memory_order_relaxed);
    sj_kept *kept = kept_at(slab, place);
    uint32_t gone = 0;
    if (place < atomic_load_explicit(&slab->old_count, memory_order_relaxed)) {
        gone = let_place_go(slab, place);
        prefetch_old(slab, place + SOON);
    }
    kept->class = class;
    kept->source = source;
    kept->bytes = (uint32_t) class->instance_bytes;
    atomic_store_explicit(&kept->is_reported, 0, memory_order_relaxed);
    kept->release.ticks = sj_arch_ticks();
    kept->release.tid = atomic_load_explicit(&own->tid, memory_order_relaxed);
    kept->release.stack_bytes = 0;
    if (stack_bytes != 0) {
        sj_trace_here(&kept->release);
        sj_stack_take(&kept->release, kept + 1, stack_bytes);
    }
    write_hint(object, source, (uint64_t)slab->index << 8 | place | UINT64_C(1) << 63);
    slab->bytes += kept->bytes + kept_stride;
    atomic_store_explicit(&kept->object, object, memory_order_relaxed);
    atomic_store_explicit(&slab->count, place + 1, memory_order_release);
    *(const sj_gcc_class **)object = &sj_doors_now->zombie;
    return gone;
}

bool sj_queue_keep(void *object, const sj_gcc_class *class, sj_objc_source source)
{
    kept_queue *queue = own != NULL ? own : find_queue();
    if (queue == NULL || !begin(queue)) {
        return false;
    }
    kept_slab *slab = queue->tail != 0 ? slab_at(queue->tail - 1) : NULL;
    if (slab == NULL || is_full(slab)) {
        slab = open_slab(queue);
    }
    if (slab != NULL) {
        count_kept(queue, fill(slab, object, class, source));
    }
    end(queue);
    return slab != NULL;
}

static sj_kept *look_through(const void *object)
{
    const uint32_t slabs = fresh_slabs < slab_count ? fresh_slabs : slab_count;
    for (uint32_t i = 0; i < slabs; i++) {
        const uint32_t old_count = atomic_load(&slab_at(i)->old_count);
        const uint32_t filled = atomic_load(&slab_at(i)->count);
        const uint32_t count = filled > old_count ? filled : old_count;
        for (uint32_t j = 0; j < count && j < slab_objects; j++) {
            sj_kept *kept = kept_at(slab_at(i), j);
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
        sj_kept *kept = kept_at(slab_at((uint32_t)slab), (uint32_t)hint & 0xff);
        if (atomic_load(&kept->object) == object) {
            return kept;
        }
    }
    return look_through(object); /* the program has written there, or it is not Foundation's */
}

static void empty_queue(kept_queue *queue, sj_let_go why, bool half)
{
    uint32_t count = half ? (queue->slabs + 1) / 2 : queue->slabs;
    close_tail(queue, sj_sys_clock_ns(CLOCK_MONOTONIC));
    for (; count != 0 && queue->head != 0; count--) {
        empty_first(queue, why);
    }
}

void sj_queue_empty(sj_let_go why, bool half)
{
    const uint32_t count = atomic_load(&queue_count);
    for (uint32_t i = 0; i < count; i++) {
        if (stop_queue(&queues[i], WAIT_NS)) {
            empty_queue(&queues[i], why, half);
            atomic_store(&queues[i].is_stopped, 0);
        }
    }
    if (!half && sj_recorder_may_call()) {
        (void)SJ_SYS(SYS_madvise, slabs_base, slab_count * slab_stride, MADV_DONTNEED, 0, 0, 0);
    }
}

/* Threads that are letting objects go without regard to others are waited for, once. False: one is
 * not to be had, or the calling thread is in its own queue. */
static bool begin_to_free_used(void)
{
    const uint32_t count = atomic_load(&queue_count);
    if (atomic_load(&are_all_met)) {
        return true;
    }
    if (own != NULL && atomic_load(&own->is_busy) != 0) {
        return false;
    }
    atomic_store(&are_used_freed, true);
    for (uint32_t i = 0; i < count; i++) {
        if (!stop_queue(&queues[i], LITTLE_WAIT_NS)) {
            return false;
        }
        atomic_store(&queues[i].is_stopped, 0);
    }
    atomic_store(&are_all_met, true);
    return true;
}

void sj_queue_let_go_one(sj_kept *kept)
{
    if (!begin_to_free_used()) {
        return;
    }
    void *object = atomic_exchange(&kept->object, NULL);
    if (object != NULL) {
        let_go(object, kept->class, (sj_objc_source)kept->source);
        sj_objects_count(kept_used, 1);
    }
}

/* What other threads were doing will not be finished. */
void sj_queue_after_fork(void)
{
    const uint32_t count = atomic_load(&queue_count);
    for (uint32_t i = 0; i < count; i++) {
        atomic_store(&queues[i].is_busy, 0);
        atomic_store(&queues[i].is_stopped, 0);
    }
    if (own != NULL) {
        atomic_store(&own->tid, sj_sys_tid());
    }
    atomic_store(&spare_lock, 0);
    if (slabs_base != NULL) {
        register_barrier();
    }
}
