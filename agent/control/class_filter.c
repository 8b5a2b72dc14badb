#include "agent/control/class_filter.h"

#include <string.h>

enum { NAME_BYTES = 1024, ANCESTORS_MAX = 64 };

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

bool sj_class_filter_is_method(const char *name)
{
    return (name[0] == '-' || name[0] == '+') && name[1] == '[';
}

bool sj_class_filter_needs_classes(const sj_class_filter *filter)
{
    return filter->ancestor_count != 0 || filter->without_system;
}

/* Copies `bytes` of a name; false when there are none or too many. */
static bool copy_part(char part[NAME_BYTES], const char *from, size_t bytes)
{
    if (bytes == 0 || bytes >= NAME_BYTES) {
        return false;
    }
    memcpy(part, from, bytes);
    part[bytes] = '\0';
    return true;
}

static bool split_name(const char *name, char class[NAME_BYTES], char selector[NAME_BYTES])
{
    const char *space = strchr(name, ' ');
    const size_t bytes = strlen(name);
    if (space == NULL || name[bytes - 1] != ']') {
        return false;
    }
    return copy_part(class, name + 2, strcspn(name + 2, ":( ")) &&
           copy_part(selector, space + 1, (size_t)(name + bytes - 1 - (space + 1)));
}

static bool find(const sj_class_filter *filter, const char *name, sj_known_class *class)
{
    return filter->find != NULL && filter->find(filter->context, name, class);
}

static bool descends(const sj_class_filter *filter, const char *name)
{
    sj_known_class class;
    /* Damaged tables may name a class as its own ancestor. */
    for (int steps = 0; name != NULL && steps < ANCESTORS_MAX; steps++) {
        if (sj_pattern_matches_any(filter->ancestors, filter->ancestor_count, name)) {
            return true;
        }
        name = find(filter, name, &class) ? class.super : NULL;
    }
    return false;
}

bool sj_class_filter_is_system_name(const char *name)
{
    return strncmp(name, "NS", 2) == 0 || strncmp(name, "GS", 2) == 0;
}

static bool is_system(const sj_class_filter *filter, const char *name)
{
    sj_known_class class;
    return find(filter, name, &class) ? class.is_system : sj_class_filter_is_system_name(name);
}

bool sj_class_filter_wants(const sj_class_filter *filter, const char *name)
{
    char class[NAME_BYTES];
    char selector[NAME_BYTES];
    if (!sj_class_filter_is_method(name) || !split_name(name, class, selector)) {
        return true;
    }
    if (filter->class_count != 0 &&
        !sj_pattern_matches_any(filter->classes, filter->class_count, class)) {
        return false;
    }
    if (filter->selector_count != 0 &&
        !sj_pattern_matches_any(filter->selectors, filter->selector_count, selector)) {
        return false;
    }
    return !sj_pattern_matches_any(filter->excluded, filter->excluded_count, class) &&
           (filter->ancestor_count == 0 || descends(filter, class)) &&
           !(filter->without_system && is_system(filter, class));
}
