/* Parses the parts of a policy about runtimes: each runtime has an object with its keys. */
#include "agent/policy/policy_reader.h"

static sj_runtime_selection *runtime_of(sj_policy_reader *reader)
{
    return &reader->policy->selection.runtimes[reader->runtime];
}

static sj_class_filter *filter_of(sj_policy_reader *reader)
{
    return &runtime_of(reader)->classes;
}

static sj_status read_technique(sj_policy_reader *reader, json_t *value)
{
    static const char *const words[] = {"methods", "dispatch"};
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, words, 2, &index));
    runtime_of(reader)->dispatch = index == 1;
    return SJ_OK;
}

static sj_status read_receivers(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_boolean(reader, value, &runtime_of(reader)->receivers);
}

static sj_status read_lines(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_boolean(reader, value, &runtime_of(reader)->lines);
}

static sj_status read_engine(sj_policy_reader *reader, json_t *value)
{
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, sj_runtimes[reader->runtime]->engines, 2, &index));
    runtime_of(reader)->in_place = index == 1;
    return SJ_OK;
}

static sj_status read_classes(sj_policy_reader *reader, json_t *value)
{
    sj_class_filter *filter = filter_of(reader);
    return sj_policy_patterns(reader, value, filter->classes, SJ_CLASS_PATTERNS,
                              &filter->class_count);
}

static sj_status read_exclude(sj_policy_reader *reader, json_t *value)
{
    sj_class_filter *filter = filter_of(reader);
    return sj_policy_patterns(reader, value, filter->excluded, SJ_CLASS_PATTERNS,
                              &filter->excluded_count);
}

static sj_status read_subclasses(sj_policy_reader *reader, json_t *value)
{
    sj_class_filter *filter = filter_of(reader);
    return sj_policy_patterns(reader, value, filter->ancestors, SJ_CLASS_PATTERNS,
                              &filter->ancestor_count);
}

static sj_status read_loaders(sj_policy_reader *reader, json_t *value)
{
    sj_class_filter *filter = filter_of(reader);
    return sj_policy_patterns(reader, value, filter->loaders, SJ_CLASS_PATTERNS,
                              &filter->loader_count);
}

static sj_status read_selectors(sj_policy_reader *reader, json_t *value)
{
    sj_class_filter *filter = filter_of(reader);
    return sj_policy_patterns(reader, value, filter->selectors, SJ_CLASS_PATTERNS,
                              &filter->selector_count);
}

static sj_status read_system(sj_policy_reader *reader, json_t *value)
{
    bool with_system = true;
    SJ_TRY(sj_policy_boolean(reader, value, &with_system));
    filter_of(reader)->without_system = !with_system;
    return SJ_OK;
}

static sj_status read_system_patterns(sj_policy_reader *reader, json_t *value)
{
    sj_class_filter *filter = filter_of(reader);
    filter->has_system = true;
    return sj_policy_patterns(reader, value, filter->system, SJ_CLASS_PATTERNS,
                              &filter->system_count);
}

sj_status sj_policy_read_runtime(sj_policy_reader *reader, size_t runtime, json_t *value)
{
    static const sj_policy_key of_patched[] = {{"technique", read_technique},
                                               {"receivers", read_receivers},
                                               {"classes", read_classes},
                                               {"exclude", read_exclude},
                                               {"subclasses_of", read_subclasses},
                                               {"selectors", read_selectors},
                                               {"system", read_system}};
    static const sj_policy_key of_compiled[] = {{"classes", read_classes},
                                                {"exclude", read_exclude},
                                                {"subclasses_of", read_subclasses},
                                                {"selectors", read_selectors},
                                                {"system", read_system_patterns},
                                                {"lines", read_lines},
                                                {"engine", read_engine}};
    static const sj_policy_key of_classes[] = {{"classes", read_classes},
                                               {"exclude", read_exclude},
                                               {"subclasses_of", read_subclasses},
                                               {"loaders", read_loaders},
                                               {"system", read_system_patterns},
                                               {"lines", read_lines},
                                               {"engine", read_engine}};
    reader->runtime = runtime;
    if (sj_runtimes[runtime]->filters_classes) {
        return sj_policy_object(reader, value, of_classes,
                                sizeof(of_classes) / sizeof(of_classes[0]));
    }
    return sj_runtimes[runtime]->in_place_bit != 0
               ? sj_policy_object(reader, value, of_compiled,
                                  sizeof(of_compiled) / sizeof(of_compiled[0]))
               : sj_policy_object(reader, value, of_patched,
                                  sizeof(of_patched) / sizeof(of_patched[0]));
}
