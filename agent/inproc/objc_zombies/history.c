/* Design notes
 *
 * Events of all watched objects lie in one ring, the oldest overwritten: what is found of one
 * object reaches back to its allocation, or as far as the ring does. The methods of NSObject that
 * change the number of owners are entered through doors, as -dealloc is (hooks.c). */
#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum { ROOM = 1 << 13, METHODS = 4, MEASURED = 64 }; /* one event in so many is */

typedef struct kept_event {
    const void *_Atomic object; /* NULL: it is being written */
    uint64_t number;
    sj_zombie_event event;
} kept_event;

typedef void *(*message)(void *object, const void *selector, void *argument);

typedef struct counted_method {
    const char *selector;
    sj_objc_door door;
    message replacement;
    bool is_of_class;
    const sj_gcc_class *class;
    sj_gcc_method *method; /* NULL: not replaced */
} counted_method;

static void *allocate(void *class, const void *selector, void *zone);
static void *retain(void *object, const void *selector, void *unused);
static void *release(void *object, const void *selector, void *unused);
static void *autorelease(void *object, const void *selector, void *unused);

static counted_method methods[METHODS] = {
    {.selector = "allocWithZone:",
     .door = SJ_DOOR_ALLOCATE,
     .replacement = allocate,
     .is_of_class = true},
    {.selector = "retain", .door = SJ_DOOR_RETAIN, .replacement = retain},
    {.selector = "release", .door = SJ_DOOR_RELEASE, .replacement = release},
    {.selector = "autorelease", .door = SJ_DOOR_AUTORELEASE, .replacement = autorelease}};

static kept_event *events;
static _Atomic uint64_t event_count;
static uint64_t *originals;
static unsigned long (*extra_owners)(const void *object);

static void *go_on(sj_objc_door door, void *object, const void *selector, void *argument)
{
    return ((message)originals[door])(object, selector, argument);
}

static bool is_noted(const void *object)
{
    const sj_zombie_region *region =
        atomic_load_explicit(&sj_zombie_region_now, memory_order_acquire);
    return object != NULL && region != NULL && region->settings.objects.is_on != 0 &&
           region->settings.objects.history != 0 &&
           atomic_load_explicit(&region->is_history_paused, memory_order_relaxed) == 0 &&
           !sj_objc_is_zombie(object) &&
           (sj_class_judge(*(const sj_gcc_class *const *)object, &region->settings) &
            SJ_CLASS_NOTED) != 0;
}

static __attribute__((noinline)) void note(const void *object, sj_zombie_event_kind kind,
                                           uint64_t owners)
{
    const uint64_t number = atomic_fetch_add(&event_count, 1);
    kept_event *kept = &events[number & (ROOM - 1)];
    atomic_store_explicit(&kept->object, NULL, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    const uint64_t start = sj_arch_ticks();
    kept->number = number;
    kept->event.kind = kind;
    kept->event.count = (uint32_t)owners;
    kept->event.trace.ticks = start;
    kept->event.trace.tid = sj_thread_number();
    sj_trace_here(&kept->event.trace);
    sj_stack_take(&kept->event.trace, kept->event.stack, SJ_ZOMBIE_EVENT_STACK_BYTES);
    atomic_store_explicit(&kept->object, object, memory_order_release);
    if (number % MEASURED == 0) {
        sj_objects_count(history_ticks, (sj_arch_ticks() - start) * MEASURED);
    }
}

static void *allocate(void *class, const void *selector, void *zone)
{
    void *made = go_on(SJ_DOOR_ALLOCATE, class, selector, zone);
    if (is_noted(made)) {
        note(made, SJ_ZOMBIE_EVENT_ALLOCATION, 1);
    }
    return made;
}

static void *retain(void *object, const void *selector, void *unused)
{
    void *result = go_on(SJ_DOOR_RETAIN, object, selector, unused);
    if (is_noted(object)) {
        note(object, SJ_ZOMBIE_EVENT_RETAIN, extra_owners(object) + 1);
    }
    return result;
}

/* Before: afterwards it may be gone. */
static void *release(void *object, const void *selector, void *unused)
{
    if (is_noted(object)) {
        note(object, SJ_ZOMBIE_EVENT_RELEASE, extra_owners(object));
    }
    return go_on(SJ_DOOR_RELEASE, object, selector, unused);
}

static void *autorelease(void *object, const void *selector, void *unused)
{
    if (is_noted(object)) {
        note(object, SJ_ZOMBIE_EVENT_AUTORELEASE, extra_owners(object) + 1);
    }
    return go_on(SJ_DOOR_AUTORELEASE, object, selector, unused);
}

bool sj_history_open(uint64_t *kept_originals, uint64_t count_owners)
{
    if (events == NULL) {
        void *mapped = sj_sys_map(NULL, ROOM * sizeof(*events), PROT_READ | PROT_WRITE,
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
        originals[counted->door] = sj_objc_gcc.implementation(method);
        sj_doors_now->leads_to[counted->door] = (uint64_t)(uintptr_t)counted->replacement;
        counted->class = class;
        counted->method = method;
        sj_objc_set_code(class, method, sj_door(counted->door));
    }
}

void sj_history_end(void)
{
    for (uint32_t i = 0; i < METHODS; i++) {
        counted_method *counted = &methods[i];
        if (counted->method != NULL &&
            sj_objc_gcc.implementation(counted->method) == sj_door(counted->door)) {
            sj_objc_set_code(counted->class, counted->method, originals[counted->door]);
        }
        counted->method = NULL;
    }
}

/* The event of that number, if it is of the object and whole. */
static bool copy_event(uint64_t number, const void *object, sj_zombie_event *event)
{
    const kept_event *kept = &events[number & (ROOM - 1)];
    if (atomic_load_explicit(&kept->object, memory_order_acquire) != object ||
        kept->number != number) {
        return false;
    }
    *event = kept->event;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&kept->object, memory_order_relaxed) == object &&
           kept->number == number;
}

/* From the newest to the allocation; then in order. */
void sj_history_write(sj_zombie_object *target, const void *object)
{
    const uint64_t end = atomic_load(&event_count);
    const uint64_t first = end > ROOM ? end - ROOM : 0;
    uint32_t place = SJ_ZOMBIE_EVENTS;
    bool is_whole = false;
    target->event_count = 0;
    target->is_whole = 0;
    for (uint64_t number = end; events != NULL && number > first && !is_whole; number--) {
        sj_zombie_event *event = &target->events[place > 1 ? place - 1 : 0];
        if (copy_event(number - 1, object, event)) {
            is_whole = event->kind == SJ_ZOMBIE_EVENT_ALLOCATION;
            target->is_whole = is_whole && place > 0 ? 1 : 0;
            place = place > 0 ? place - 1 : 0;
        }
    }
    target->event_count = SJ_ZOMBIE_EVENTS - place;
    memmove(target->events, &target->events[place],
            target->event_count * sizeof(target->events[0]));
}
