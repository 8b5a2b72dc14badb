#include "agent/policy/class_filter.h"

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
    free_patterns(filter->system);
    free_patterns(filter->loaders);
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
    /* A damaged table may name a class as its own ancestor. */
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

bool sj_class_filter_wants_class(const sj_class_filter *filter, const char *name)
{
    return (filter->class_count == 0 ||
            sj_pattern_matches_any(filter->classes, filter->class_count, name)) &&
           !sj_pattern_matches_any(filter->excluded, filter->excluded_count, name);
}

bool sj_class_filter_wants_loader(const sj_class_filter *filter, const char *loader)
{
    return filter->loader_count == 0 ||
           sj_pattern_matches_any(filter->loaders, filter->loader_count, loader);
}

bool sj_class_filter_wants_descendant(const sj_class_filter *filter, const char *name,
                                      sj_slice lineage)
{
    if (filter->ancestor_count == 0 ||
        sj_pattern_matches_any(filter->ancestors, filter->ancestor_count, name)) {
        return true;
    }
    const char *at = (const char *)lineage.data;
    for (size_t left = lineage.size; left != 0;) {
        const size_t bytes = strnlen(at, left);
        if (bytes == left) {
            return false; /* not terminated */
        }
        if (sj_pattern_matches_any(filter->ancestors, filter->ancestor_count, at)) {
            return true;
        }
        at += bytes + 1;
        left -= bytes + 1;
    }
    return false;
}

bool sj_class_filter_is_system(const sj_class_filter *filter, const sj_runtime *runtime,
                               const char *name)
{
    return filter->has_system ? sj_pattern_matches_any(filter->system, filter->system_count, name)
                              : runtime->is_system_class != NULL && runtime->is_system_class(name);
}

bool sj_class_filter_same(const sj_class_filter *left, const sj_class_filter *right)
{
    return left->without_system == right->without_system && left->has_system == right->has_system &&
           sj_pattern_same(left->classes, left->class_count, right->classes, right->class_count) &&
           sj_pattern_same(left->excluded, left->excluded_count, right->excluded,
                           right->excluded_count) &&
           sj_pattern_same(left->selectors, left->selector_count, right->selectors,
                           right->selector_count) &&
           sj_pattern_same(left->ancestors, left->ancestor_count, right->ancestors,
                           right->ancestor_count) &&
           sj_pattern_same(left->system, left->system_count, right->system, right->system_count) &&
           sj_pattern_same(left->loaders, left->loader_count, right->loaders, right->loader_count);
}

bool sj_class_filter_wants_methods_of(const sj_class_filter *filter, const char *class)
{
    return sj_class_filter_wants_class(filter, class) &&
           (filter->ancestor_count == 0 || descends_from_listed(filter, class)) &&
           !(filter->without_system && is_system(filter, class));
}

bool sj_class_filter_wants_selector(const sj_class_filter *filter, const char *selector)
{
    return filter->selector_count == 0 ||
           sj_pattern_matches_any(filter->selectors, filter->selector_count, selector);
}

bool sj_class_filter_wants(const sj_class_filter *filter, const char *name)
{
    sj_method_parts parts;
    size_t runtime = 0;
    if (!sj_runtime_of_method(name, &runtime) ||
        !sj_runtimes[runtime]->split_method(name, &parts)) {
        return true;
    }
    return sj_class_filter_wants_selector(filter, parts.selector) &&
           sj_class_filter_wants_methods_of(filter, parts.class);
}
