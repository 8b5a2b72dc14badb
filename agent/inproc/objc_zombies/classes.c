/* Decides which classes are watched. Each freed object needs a decision, so decisions are cached.
 */
#include "agent/inproc/objc_zombies/internal.h"

enum { CLASSES = 1 << 12, PROBES = 8, VERDICT_BITS = 4, ANCESTORS_MAX = 64 };

/* A cached decision. An element always belongs to the same class. `verdict` is 1 + the generation
 * of the patterns; its VERDICT_BITS lowest bits are the result of sj_class_judge. */
typedef struct class_verdict {
    _Atomic(const sj_gcc_class *) class;
    _Atomic uint32_t verdict;
} class_verdict;

const void *sj_class_destroy_selector;
static class_verdict verdicts[CLASSES];

/* True if a class is in a system library. For a class that was created at run time, its nearest
 * superclass in a module decides. */
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

/* True if the name of a class matches a pattern. For a class that was created at run time, its
 * superclass is checked, too: key-value observing replaces an object's class by such a class. */
static bool has_name(const char *patterns, const sj_gcc_class *class)
{
    bool is_known = false;
    (void)sj_objects_is_system((uint64_t)(uintptr_t) class, &is_known);
    return sj_objects_has_name(patterns, class->name) ||
           (!is_known && class->super != NULL && sj_objects_has_name(patterns, class->super->name));
}

/* True if the settings select a class. */
static bool is_selected(const sj_gcc_class *class, const sj_zombie_objects *settings)
{
    if (has_name(settings->exclude, class)) {
        return false;
    }
    if (settings->classes[0] != '\0') {
        return has_name(settings->classes, class);
    }
    return settings->with_system != 0 || !is_system_class(class);
}

/* Returns the cache element of a class, or NULL if the elements for its hash are used by others. */
static class_verdict *claim_element(const sj_gcc_class *class)
{
    const uint64_t hash = ((uint64_t)(uintptr_t) class >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    const uint32_t first = (uint32_t)(hash >> 40);
    for (uint32_t i = 0; i < PROBES; i++) {
        class_verdict *element = &verdicts[(first + i) & (CLASSES - 1)];
        const sj_gcc_class *owner = atomic_load_explicit(&element->class, memory_order_acquire);
        if (owner == class) {
            return element;
        }
        const sj_gcc_class *none = NULL;
        if (owner == NULL && atomic_compare_exchange_strong(&element->class, &none, class)) {
            return element;
        }
        if (none == class) {
            return element;
        }
    }
    return NULL;
}

static bool has_history(const sj_gcc_class *class, const sj_zombie_objects *settings)
{
    return settings->history != 0 &&
           (settings->history_of[0] == '\0' || has_name(settings->history_of, class));
}

/* Decides without the cache. Whether the class has a destructor is asked once per class, because
 * asking for each object would be too slow. */
static uint32_t judge(const sj_gcc_class *class, const sj_zombie_settings *settings)
{
    const uint32_t guarded = has_name(settings->guard.classes, class) ? SJ_CLASS_GUARDED : 0;
    if (!is_selected(class, &settings->objects)) {
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
    class_verdict *element = claim_element(class);
    if (element != NULL) {
        const uint32_t verdict = atomic_load_explicit(&element->verdict, memory_order_relaxed);
        if (verdict >> VERDICT_BITS == generation + 1) {
            return verdict & ((1 << VERDICT_BITS) - 1);
        }
    }
    if ((generation & 1) != 0) {
        return 0; /* The recorder is writing the patterns. */
    }
    const uint32_t judged = judge(class, settings);
    if (element != NULL && atomic_load(patterns) == generation) {
        atomic_store(&element->verdict, (generation + 1) << VERDICT_BITS | judged);
    }
    return judged;
}

bool sj_class_is_watched(const sj_gcc_class *class, const sj_zombie_settings *settings)
{
    return (sj_class_judge(class, settings) & SJ_CLASS_WATCHED) != 0;
}
