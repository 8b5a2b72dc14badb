#include "agent/policy/java_filter.h"

#include <string.h>

void sj_java_filter_free(sj_java_filter *filter)
{
    for (size_t i = 0; i < SJ_JAVA_PATTERNS; i++) {
        sj_pattern_free(&filter->classes[i]);
        sj_pattern_free(&filter->excluded[i]);
        sj_pattern_free(&filter->system[i]);
    }
}

bool sj_java_filter_is_system(const sj_java_filter *filter, const char *name)
{
    static const char *const packages[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};
    if (filter->has_system) {
        return sj_pattern_matches_any(filter->system, filter->system_count, name);
    }
    for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
        if (strncmp(name, packages[i], strlen(packages[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool sj_java_filter_wants(const sj_java_filter *filter, const char *name)
{
    return (filter->class_count == 0 ||
            sj_pattern_matches_any(filter->classes, filter->class_count, name)) &&
           !sj_pattern_matches_any(filter->excluded, filter->excluded_count, name);
}

static bool same(const sj_pattern *left, size_t left_count, const sj_pattern *right,
                 size_t right_count)
{
    for (size_t i = 0; i < left_count && left_count == right_count; i++) {
        if (strcmp(left[i].text, right[i].text) != 0) {
            return false;
        }
    }
    return left_count == right_count;
}

bool sj_java_filter_same(const sj_java_filter *left, const sj_java_filter *right)
{
    return left->has_system == right->has_system &&
           same(left->classes, left->class_count, right->classes, right->class_count) &&
           same(left->excluded, left->excluded_count, right->excluded, right->excluded_count) &&
           same(left->system, left->system_count, right->system, right->system_count);
}
