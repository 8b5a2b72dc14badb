/* Parses the parts of a policy about runtimes: each runtime has an object with its keys. */
#include "agent/policy/policy_reader.h"

/* Returns the runtime whose part is being parsed into `selected`. */
static const sj_runtime *runtime_of(const sj_policy_reader *reader,
                                    const sj_runtime_selection *selected)
{
    return sj_runtimes[selected - reader->policy->selection.runtimes];
}

static sj_status read_engine(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_runtime_selection *selected = target;
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, runtime_of(reader, selected)->engines, 2, &index));
    selected->in_place = index == 1;
    return SJ_OK;
}

static sj_status read_system(sj_policy_reader *reader, void *target, json_t *value)
{
    bool with_system = true;
    SJ_TRY(sj_policy_boolean(reader, value, &with_system));
    ((sj_runtime_selection *)target)->classes.without_system = !with_system;
    return SJ_OK;
}

static sj_status read_system_patterns(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_class_filter *filter = &((sj_runtime_selection *)target)->classes;
    filter->has_system = true;
    return sj_policy_patterns(reader, value, filter->system, SJ_CLASS_PATTERNS,
                              &filter->system_count);
}

static const char *const techniques[] = {"methods", "dispatch"};

#define CLASSES                                                                                    \
    {"classes", SJ_PATTERNS(sj_runtime_selection, classes.classes, classes.class_count)},          \
        {"exclude", SJ_PATTERNS(sj_runtime_selection, classes.excluded, classes.excluded_count)},  \
    {                                                                                              \
        "subclasses_of",                                                                           \
            SJ_PATTERNS(sj_runtime_selection, classes.ancestors, classes.ancestor_count)           \
    }
#define SELECTORS                                                                                  \
    {                                                                                              \
        "selectors", SJ_PATTERNS(sj_runtime_selection, classes.selectors, classes.selector_count)  \
    }
#define COMPILED                                                                                   \
    {"system", SJ_KEY_CUSTOM, .parse = read_system_patterns},                                      \
        {"lines", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_runtime_selection, lines)},                         \
    {                                                                                              \
        "engine", SJ_KEY_CUSTOM, .parse = read_engine                                              \
    }

static const sj_policy_key patched_keys[] = {
    {"technique", SJ_KEY_WORD, SJ_MEMBER(sj_runtime_selection, dispatch), SJ_WORDS(techniques)},
    {"receivers", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_runtime_selection, receivers)},
    CLASSES,
    SELECTORS,
    {"system", SJ_KEY_CUSTOM, .parse = read_system}};
static const sj_policy_key compiled_keys[] = {CLASSES, SELECTORS, COMPILED};
static const sj_policy_key class_keys[] = {
    CLASSES,
    {"loaders", SJ_PATTERNS(sj_runtime_selection, classes.loaders, classes.loader_count)},
    COMPILED};

sj_status sj_policy_read_runtime(sj_policy_reader *reader, void *target, json_t *value)
{
    const sj_runtime *runtime = runtime_of(reader, target);
    if (runtime->filters_classes) {
        return sj_policy_object(reader, value, target, SJ_KEY_LIST(class_keys));
    }
    return runtime->in_place_bit != 0
               ? sj_policy_object(reader, value, target, SJ_KEY_LIST(compiled_keys))
               : sj_policy_object(reader, value, target, SJ_KEY_LIST(patched_keys));
}
