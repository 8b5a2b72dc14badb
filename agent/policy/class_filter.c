#include "agent/policy/class_filter.h"

#include "agent/runtimes/runtime.h"

#include <string.h>

enum { ANCESTORS_MAX = 64 };

static void free_patterns(sj_pattern *patterns)
{
    for (size_t i = 0; i < SJ_CLASS_PATTERNS; i++) {
        sj_pattern_free(&patterns[i]);
    }
}

void sj_class_filter_free(sj_class_filter *filter)
{
    free_patterns(filter->classes);
    free_patterns(filter->excluded);
    free_patterns(filter->selectors);
    free_patterns(filter->ancestors);
}

bool sj_class_filter_needs_classes(const sj_class_filter *filter)
{
    return filter->ancestor_count != 0 || filter->without_system;
}

static bool find_class(const sj_class_filter *filter, const char *name, sj_known_class *class)
{
    return filter->find != NULL && filter->find(filter->context, name, class);
}

static bool descends_from_listed(const sj_class_filter *filter, const char *name)
{
    sj_known_class class;
    /* Damaged tables may name a class as its own ancestor. */
    for (int steps = 0; name != NULL && steps < ANCESTORS_MAX; steps++) {
        if (sj_pattern_matches_any(filter->ancestors, filter->ancestor_count, name)) {
            return true;
        }
        name = find_class(filter, name, &class) ? class.super : NULL;
    }
    return false;
}

static bool is_system(const sj_class_filter *filter, const char *name)
{
    sj_known_class class;
    return find_class(filter, name, &class) ? class.is_system : sj_runtimes_is_system_class(name);
}

bool sj_class_filter_wants(const sj_class_filter *filter, const char *name)
{
    sj_method_parts parts;
    size_t runtime = 0;
    if (!sj_runtime_of_method(name, &runtime) ||
        !sj_runtimes[runtime]->split_method(name, &parts)) {
        return true;
    }
    if (filter->class_count != 0 &&
        !sj_pattern_matches_any(filter->classes, filter->class_count, parts.class)) {
        return false;
    }
    if (filter->selector_count != 0 &&
        !sj_pattern_matches_any(filter->selectors, filter->selector_count, parts.selector)) {
        return false;
    }
    return !sj_pattern_matches_any(filter->excluded, filter->excluded_count, parts.class) &&
           (filter->ancestor_count == 0 || descends_from_listed(filter, parts.class)) &&
           !(filter->without_system && is_system(filter, parts.class));
}
