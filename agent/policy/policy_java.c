/* The part of a policy that is about Java. */
#include "agent/policy/policy_reader.h"

static sj_java_filter *filter_of(sj_policy_reader *reader)
{
    return &reader->policy->selection.java;
}

static sj_status read_classes(sj_policy_reader *reader, json_t *value)
{
    sj_java_filter *filter = filter_of(reader);
    return sj_policy_patterns(reader, value, filter->classes, SJ_JAVA_PATTERNS,
                              &filter->class_count);
}

static sj_status read_exclude(sj_policy_reader *reader, json_t *value)
{
    sj_java_filter *filter = filter_of(reader);
    return sj_policy_patterns(reader, value, filter->excluded, SJ_JAVA_PATTERNS,
                              &filter->excluded_count);
}

static sj_status read_system(sj_policy_reader *reader, json_t *value)
{
    sj_java_filter *filter = filter_of(reader);
    filter->has_system = true;
    return sj_policy_patterns(reader, value, filter->system, SJ_JAVA_PATTERNS,
                              &filter->system_count);
}

sj_status sj_policy_read_java(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {
        {"classes", read_classes}, {"exclude", read_exclude}, {"system", read_system}};
    return sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0]));
}
