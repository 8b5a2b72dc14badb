/* Decides which classes are watched. It is asked for each freed object, so the verdicts are cached.
 */
#include "agent/inproc/objc_zombies/internal.h"

enum { CLASSES = 1 << 12, PROBES = 8, VERDICT_BITS = 4, ANCESTORS_MAX = 64 };

/* A class never loses its place. The verdict is 1 + the generation of the patterns. The lowest bits
 * are the result of sj_class_judge. */
typedef struct class_verdict {
    _Atomic(const sj_gcc_class *) class;
    _Atomic uint32_t verdict;
} class_verdict;

const void *sj_class_destroy_selector;
static class_verdict verdicts[CLASSES];

/* A class that was created at run time lies in no module: its nearest ancestor in a module decides.
 */
static bool is_system_class(const sj_gcc_class *class)
{
    for (uint32_t i = 0; class != NULL && i < ANCESTORS_MAX; i++, class = class->super) {
        bool is_known = false;
        const bool is_system = sj_objects_is_system((uint64_t)(uintptr_t) class, &is_known);
        if (is_known) {
            return is_system;
        }
    }
    return false;
}

/* A key-value observer gives an object a class with another name, which inherits from the object's
 * class. */
static bool has_name(const char *patterns, const sj_gcc_class *class)
{
    bool is_known = false;
    (void)sj_objects_is_system((uint64_t)(uintptr_t) class, &is_known);
    return sj_objects_has_name(patterns, class->name) ||
           (!is_known && class->super != NULL && sj_objects_has_name(patterns, class->super->name));
}

static bool decide(const sj_gcc_class *class, const sj_zombie_objects *settings)
{
    if (has_name(settings->exclude, class)) {
        return false;
    }
    if (settings->classes[0] != '\0') {
        return has_name(settings->classes, class);
    }
    return settings->with_system != 0 || !is_system_class(class);
}

static class_verdict *claim_place(const sj_gcc_class *class)
{
    const uint64_t hash = ((uint64_t)(uintptr_t) class >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    const uint32_t first = (uint32_t)(hash >> 40);
    for (uint32_t i = 0; i < PROBES; i++) {
        class_verdict *place = &verdicts[(first + i) & (CLASSES - 1)];
        const sj_gcc_class *owner = atomic_load_explicit(&place->class, memory_order_acquire);
        if (owner == class) {
            return place;
        }
        const sj_gcc_class *none = NULL;
        if (owner == NULL && atomic_compare_exchange_strong(&place->class, &none, class)) {
            return place;
        }
        if (none == class) {
            return place;
        }
    }
    return NULL;
}

static bool has_history(const sj_gcc_class *class, const sj_zombie_objects *settings)
{
    return settings->history != 0 &&
           (settings->history_of[0] == '\0' || has_name(settings->history_of, class));
}

/* -finalize is asked for once per class: for each object it would cost more than everything else
 * that the runtime does. */
static uint32_t judge(const sj_gcc_class *class, const sj_zombie_settings *settings)
{
    const uint32_t guarded = has_name(settings->guard.classes, class) ? SJ_CLASS_GUARDED : 0;
    if (!decide(class, &settings->objects)) {
        return guarded;
    }
    const bool is_destroyed = sj_objc_gcc.responds(class, sj_class_destroy_selector) != 0;
    return guarded | SJ_CLASS_WATCHED | (is_destroyed ? SJ_CLASS_HAS_DESTRUCTOR : 0) |
           (has_history(class, &settings->objects) ? SJ_CLASS_HAS_HISTORY : 0);
}

uint32_t sj_class_judge(const sj_gcc_class *class, const sj_zombie_settings *settings)
{
    const _Atomic uint32_t *patterns = &settings->objects.generation;
    const uint32_t generation = atomic_load_explicit(patterns, memory_order_acquire);
    class_verdict *place = claim_place(class);
    if (place != NULL) {
        const uint32_t verdict = atomic_load_explicit(&place->verdict, memory_order_relaxed);
        if (verdict >> VERDICT_BITS == generation + 1) {
            return verdict & ((1 << VERDICT_BITS) - 1);
        }
    }
    if ((generation & 1) != 0) {
        return 0; /* The recorder is writing the patterns. */
    }
    const uint32_t judged = judge(class, settings);
    if (place != NULL && atomic_load(patterns) == generation) {
        atomic_store(&place->verdict, (generation + 1) << VERDICT_BITS | judged);
    }
    return judged;
}

bool sj_class_is_watched(const sj_gcc_class *class, const sj_zombie_settings *settings)
{
    return (sj_class_judge(class, settings) & SJ_CLASS_WATCHED) != 0;
}
