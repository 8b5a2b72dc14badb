/* Design notes
 *
 * The events of all watched objects are in one ring; new events overwrite the oldest. So the
 * history of an object begins with its allocation, or with the oldest event in the ring.
 * Trampolines replace the methods of NSObject that change the number of owners. */
#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

/* One event in ONE_IN_MEASURED is timed, for the overhead budget. */
enum { EVENTS = 1 << 13, METHODS = 4, ONE_IN_MEASURED = 64 };

typedef struct kept_event {
    const void *_Atomic object; /* NULL while a thread is writing the event. */
    uint64_t number;
    sj_zombie_event event;
} kept_event;

typedef void *(*message)(void *object, const void *selector, void *argument);

typedef struct counted_method {
    const char *selector;
    sj_objc_trampoline trampoline;
    message replacement;
    bool is_of_class; /* True if it is a class method. */
    const sj_gcc_class *class;
    sj_gcc_method *method; /* NULL if it is not replaced. */
} counted_method;

static void *wrap_allocate(void *class, const void *selector, void *zone);
static void *wrap_retain(void *object, const void *selector, void *unused);
static void *wrap_release(void *object, const void *selector, void *unused);
static void *wrap_autorelease(void *object, const void *selector, void *unused);

static counted_method methods[METHODS] = {
    {.selector = "allocWithZone:",
     .trampoline = SJ_TRAMPOLINE_ALLOCATE,
     .replacement = wrap_allocate,
     .is_of_class = true},
    {.selector = "retain", .trampoline = SJ_TRAMPOLINE_RETAIN, .replacement = wrap_retain},
    {.selector = "release", .trampoline = SJ_TRAMPOLINE_RELEASE, .replacement = wrap_release},
    {.selector = "autorelease",
     .trampoline = SJ_TRAMPOLINE_AUTORELEASE,
     .replacement = wrap_autorelease}};

static kept_event *events;
static _Atomic uint64_t event_count;
static uint64_t *originals;
static unsigned long (*extra_owners)(const void *object);

static void *call_original(sj_objc_trampoline trampoline, void *object, const void *selector,
                           void *argument)
{
    return ((message)originals[trampoline])(object, selector, argument);
}

static bool is_recorded(const void *object)
{
    const sj_zombie_region *region =
        atomic_load_explicit(&sj_zombie_region_now, memory_order_acquire);
    return object != NULL && region != NULL && region->settings.objects.is_on != 0 &&
           region->settings.objects.history != 0 &&
           atomic_load_explicit(&region->is_history_paused, memory_order_relaxed) == 0 &&
           !sj_objc_is_zombie(object) &&
           (sj_class_judge(*(const sj_gcc_class *const *)object, &region->settings) &
            SJ_CLASS_HAS_HISTORY) != 0;
}

static __attribute__((noinline)) void record_event(const void *object, sj_zombie_event_kind kind,
                                                   uint64_t owners)
{
    const uint64_t number = atomic_fetch_add(&event_count, 1);
    kept_event *kept = &events[number & (EVENTS - 1)];
    atomic_store_explicit(&kept->object, NULL, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    const uint64_t start = sj_arch_ticks();
    kept->number = number;
    kept->event.kind = kind;
    kept->event.count = (uint32_t)owners;
    kept->event.trace.ticks = start;
    kept->event.trace.tid = sj_thread_number();
    sj_trace_here(&kept->event.trace);
    sj_stack_copy_own(&kept->event.trace, kept->event.stack, SJ_ZOMBIE_EVENT_STACK_BYTES);
    atomic_store_explicit(&kept->object, object, memory_order_release);
    if (number % ONE_IN_MEASURED == 0) {
        sj_objects_count(history_ticks, (sj_arch_ticks() - start) * ONE_IN_MEASURED);
    }
}

static void *wrap_allocate(void *class, const void *selector, void *zone)
{
    void *object = call_original(SJ_TRAMPOLINE_ALLOCATE, class, selector, zone);
    if (is_recorded(object)) {
        record_event(object, SJ_ZOMBIE_EVENT_ALLOCATION, 1);
    }
    return object;
}

static void *wrap_retain(void *object, const void *selector, void *unused)
{
    void *result = call_original(SJ_TRAMPOLINE_RETAIN, object, selector, unused);
    if (is_recorded(object)) {
        record_event(object, SJ_ZOMBIE_EVENT_RETAIN, extra_owners(object) + 1);
    }
    return result;
}

/* Records the event before the call, because the call may free the object. */
static void *wrap_release(void *object, const void *selector, void *unused)
{
    if (is_recorded(object)) {
        record_event(object, SJ_ZOMBIE_EVENT_RELEASE, extra_owners(object));
    }
    return call_original(SJ_TRAMPOLINE_RELEASE, object, selector, unused);
}

static void *wrap_autorelease(void *object, const void *selector, void *unused)
{
    if (is_recorded(object)) {
        record_event(object, SJ_ZOMBIE_EVENT_AUTORELEASE, extra_owners(object) + 1);
    }
    return call_original(SJ_TRAMPOLINE_AUTORELEASE, object, selector, unused);
}

bool sj_history_open(uint64_t *kept_originals, uint64_t count_owners)
{
    if (events == NULL) {
        void *mapped = sj_sys_map(NULL, EVENTS * sizeof(*events), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        events = sj_sys_failed(mapped) ? NULL : mapped;
        originals = kept_originals;
        memcpy(&extra_owners, &count_owners, sizeof(extra_owners));
    }
    return events != NULL && extra_owners != NULL;
}

void sj_history_begin(const sj_gcc_class *root)
{
    for (uint32_t i = 0; i < METHODS; i++) {
        counted_method *counted = &methods[i];
        const sj_gcc_class *class = counted->is_of_class ? root->isa : root;
        sj_gcc_method *method =
            sj_objc_gcc.instance_method(class, sj_objc_gcc.register_selector(counted->selector));
        if (counted->method != NULL || method == NULL) {
            continue;
        }
        originals[counted->trampoline] = sj_objc_gcc.implementation(method);
        sj_objc_trampolines_now->targets[counted->trampoline] =
            (uint64_t)(uintptr_t)counted->replacement;
        counted->class = class;
        counted->method = method;
        sj_objc_set_code(class, method, sj_objc_trampoline_address(counted->trampoline));
    }
}

void sj_history_end(void)
{
    for (uint32_t i = 0; i < METHODS; i++) {
        counted_method *counted = &methods[i];
        if (counted->method != NULL && sj_objc_gcc.implementation(counted->method) ==
                                           sj_objc_trampoline_address(counted->trampoline)) {
            sj_objc_set_code(counted->class, counted->method, originals[counted->trampoline]);
        }
        counted->method = NULL;
    }
}

/* Copies the event `number`. Returns false if it belongs to another object, or if it was
 * overwritten meanwhile. */
static bool copy_event(uint64_t number, const void *object, sj_zombie_event *event)
{
    const kept_event *kept = &events[number & (EVENTS - 1)];
    if (atomic_load_explicit(&kept->object, memory_order_acquire) != object ||
        kept->number != number) {
        return false;
    }
    *event = kept->event;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&kept->object, memory_order_relaxed) == object &&
           kept->number == number;
}

/* Copies events from the newest back to the allocation into the end of the array, then moves them
 * to its start. If the array is full, older events overwrite its first element. */
void sj_history_write(sj_zombie_object *target, const void *object)
{
    const uint64_t end = atomic_load(&event_count);
    const uint64_t first = end > EVENTS ? end - EVENTS : 0;
    uint32_t first_used = SJ_ZOMBIE_EVENTS;
    bool is_whole = false;
    target->event_count = 0;
    target->is_whole = 0;
    for (uint64_t number = end; events != NULL && number > first && !is_whole; number--) {
        sj_zombie_event *event = &target->events[first_used > 1 ? first_used - 1 : 0];
        if (copy_event(number - 1, object, event)) {
            is_whole = event->kind == SJ_ZOMBIE_EVENT_ALLOCATION;
            target->is_whole = is_whole && first_used > 0 ? 1 : 0;
            first_used = first_used > 0 ? first_used - 1 : 0;
        }
    }
    target->event_count = SJ_ZOMBIE_EVENTS - first_used;
    memmove(target->events, &target->events[first_used],
            target->event_count * sizeof(target->events[0]));
}
