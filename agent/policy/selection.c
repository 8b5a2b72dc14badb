#include "agent/policy/selection.h"

#include "agent/objfile/system_library.h"

#include <string.h>

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

sj_status sj_selection_add(sj_pattern *patterns, size_t *count, const char *text, sj_error *error)
{
    if (*count == SJ_SELECTION_GLOBS) {
        return sj_fail(error, SJ_ELIMIT, "more than %d patterns of one kind", SJ_SELECTION_GLOBS);
    }
    SJ_TRY(sj_pattern_make(text, &patterns[*count], error));
    (*count)++;
    return SJ_OK;
}

static void free_patterns(sj_pattern *patterns)
{
    for (size_t i = 0; i < SJ_SELECTION_GLOBS; i++) {
        sj_pattern_free(&patterns[i]);
    }
}

void sj_selection_free(sj_selection *selection)
{
    free_patterns(selection->modules);
    free_patterns(selection->modules_excluded);
    free_patterns(selection->functions);
    free_patterns(selection->excluded);
    free_patterns(selection->sources);
    free_patterns(selection->sources_excluded);
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        sj_class_filter_free(&selection->runtimes[i].classes);
    }
    sj_value_rules_free(selection->values);
    selection->values = NULL;
}

bool sj_selection_names_file(const sj_pattern *pattern, const char *path)
{
    return sj_pattern_matches(pattern, path) || sj_pattern_matches(pattern, file_name(path));
}

static bool names_file(const sj_pattern *patterns, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        if (sj_selection_names_file(&patterns[i], path)) {
            return true;
        }
    }
    return false;
}

static bool names_function(const sj_pattern *patterns, size_t count, const char *symbol)
{
    for (size_t i = 0; i < count; i++) {
        if (sj_pattern_matches_symbol(&patterns[i], symbol)) {
            return true;
        }
    }
    return false;
}

bool sj_selection_is_never_recorded(const char *path)
{
    static const char *const names[] = {"ld-linux",   "ld.so",      "libc.so",    "libc-",
                                        "libpthread", "linux-vdso", "libsojourn-"};
    const char *name = file_name(path);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (starts_with(name, names[i])) {
            return true;
        }
    }
    return path[0] == '\0';
}

/* True for the library of a runtime that finds methods, while the runtime's methods are recorded
 * where they are dispatched. */
static bool is_dispatcher(const sj_selection *selection, const char *name)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (selection->runtimes[i].dispatch && sj_runtime_has_file(sj_runtimes[i], name)) {
            return true;
        }
    }
    return false;
}

bool sj_selection_is_launcher(const char *path)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        const char *const *name = sj_runtimes[i]->launchers;
        for (; name != NULL && *name != NULL; name++) {
            if (strcmp(file_name(path), *name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* True for files with code that a runtime compiled ahead of time. The runtime reports its
 * methods. */
static bool is_precompiled(const char *name)
{
    static const char so_suffix[] = ".so";
    const size_t bytes = strlen(name);
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        const char *const *ending = sj_runtimes[i]->endings;
        for (; ending != NULL && *ending != NULL; ending++) {
            const size_t all = strlen(*ending) + sizeof(so_suffix) - 1;
            if (bytes > all && strncmp(name + bytes - all, *ending, strlen(*ending)) == 0 &&
                strcmp(name + bytes - (sizeof(so_suffix) - 1), so_suffix) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool sj_selection_wants_module(const sj_selection *selection, const char *path, bool is_main)
{
    if (!is_main && sj_selection_is_never_recorded(path)) {
        return false;
    }
    if (is_dispatcher(selection, file_name(path)) || is_precompiled(path)) {
        return false;
    }
    if (names_file(selection->modules_excluded, selection->modules_excluded_count, path)) {
        return false;
    }
    if (selection->module_count != 0) {
        return names_file(selection->modules, selection->module_count, path);
    }
    const bool is_program = is_main && !sj_selection_is_launcher(path);
    return is_program || selection->all_libraries ||
           !(is_main || sj_is_system_library(path) || sj_runtimes_have_library(path));
}

/* True for libraries that many programs use: not a program's own, whichever package contains them.
 * */
static bool is_common_library(const char *name)
{
    static const char *const names[] = {"libstdc++", "libgcc_s", "libm.so", "libm-", "libdl.so",
                                        "librt.so",  "libgtk",   "libgdk",  "libQt", "libresolv"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (starts_with(name, names[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtime_has_file(sj_runtimes[i], name)) {
            return true;
        }
    }
    return false;
}

bool sj_selection_allows_own_library(const sj_selection *selection, const char *path)
{
    return selection->module_count == 0 && !sj_selection_is_never_recorded(path) &&
           !is_common_library(file_name(path)) && !sj_runtimes_have_library(path) &&
           !is_precompiled(path) &&
           !names_file(selection->modules_excluded, selection->modules_excluded_count, path);
}

bool sj_selection_wants_function(void *context, const char *name, uint64_t offset,
                                 uint32_t size_bytes)
{
    const sj_selection *selection = context;
    size_t runtime = 0;
    (void)offset;
    (void)size_bytes;
    return !(sj_runtime_of_method(name, &runtime) && selection->runtimes[runtime].dispatch) &&
           sj_selection_wants_method(selection, name);
}

bool sj_selection_has_sources(const sj_selection *selection)
{
    return selection->source_count != 0 || selection->sources_excluded_count != 0;
}

bool sj_selection_wants_source(const sj_selection *selection, const char *file)
{
    if (file == NULL) {
        return selection->source_count == 0;
    }
    if (selection->source_count != 0 &&
        !names_file(selection->sources, selection->source_count, file)) {
        return false;
    }
    return !names_file(selection->sources_excluded, selection->sources_excluded_count, file);
}

static bool wants_name(const sj_selection *selection, const char *name)
{
    return (selection->function_count == 0 ||
            names_function(selection->functions, selection->function_count, name)) &&
           !names_function(selection->excluded, selection->excluded_count, name);
}

bool sj_selection_wants_method(const sj_selection *selection, const char *name)
{
    size_t runtime = 0;
    return wants_name(selection, name) &&
           (!sj_runtime_of_method(name, &runtime) ||
            sj_class_filter_wants(&selection->runtimes[runtime].classes, name));
}

bool sj_selection_has_system(const sj_selection *selection)
{
    return selection->all_libraries || selection->module_count != 0;
}

bool sj_selection_wants_class_in(const sj_selection *selection, sj_link_language language,
                                 const char *class, bool is_main)
{
    const sj_class_filter *filter = &selection->runtimes[language].classes;
    const bool is_system = (filter->has_system || !is_main) &&
                           sj_class_filter_is_system(filter, sj_runtimes[language], class);
    return (!is_system || sj_selection_has_system(selection)) &&
           sj_class_filter_wants_methods_of(filter, class);
}

bool sj_selection_wants_method_in(const sj_selection *selection, sj_link_language language,
                                  const char *name, const char *selector)
{
    return wants_name(selection, name) &&
           sj_class_filter_wants_selector(&selection->runtimes[language].classes, selector);
}

bool sj_selection_wants_class(const sj_selection *selection, sj_link_language language,
                              const char *name, bool is_system)
{
    const sj_class_filter *filter = &selection->runtimes[language].classes;
    return (selection->all_libraries ||
            !(is_system || sj_class_filter_is_system(filter, sj_runtimes[language], name))) &&
           sj_class_filter_wants_class(filter, name);
}

bool sj_selection_same_modules(const sj_selection *left, const sj_selection *right)
{
    return left->all_libraries == right->all_libraries &&
           sj_pattern_same(left->modules, left->module_count, right->modules,
                           right->module_count) &&
           sj_pattern_same(left->modules_excluded, left->modules_excluded_count,
                           right->modules_excluded, right->modules_excluded_count);
}

static bool same_runtimes(const sj_selection *left, const sj_selection *right)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (!sj_class_filter_same(&left->runtimes[i].classes, &right->runtimes[i].classes)) {
            return false;
        }
    }
    return true;
}

bool sj_selection_same(const sj_selection *left, const sj_selection *right)
{
    return left->library_calls == right->library_calls && sj_selection_same_modules(left, right) &&
           sj_pattern_same(left->functions, left->function_count, right->functions,
                           right->function_count) &&
           sj_pattern_same(left->excluded, left->excluded_count, right->excluded,
                           right->excluded_count) &&
           sj_pattern_same(left->sources, left->source_count, right->sources,
                           right->source_count) &&
           sj_pattern_same(left->sources_excluded, left->sources_excluded_count,
                           right->sources_excluded, right->sources_excluded_count) &&
           same_runtimes(left, right) && sj_value_rules_same(left->values, right->values);
}

bool sj_selection_has_receivers(const sj_selection *selection)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (selection->runtimes[i].receivers) {
            return true;
        }
    }
    return false;
}

bool sj_selection_needs_classes(const sj_selection *selection)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_class_filter_needs_classes(&selection->runtimes[i].classes)) {
            return true;
        }
    }
    return sj_selection_has_receivers(selection);
}

uint32_t sj_selection_dispatch_bits(const sj_selection *selection)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        bits |= selection->runtimes[i].dispatch ? sj_runtimes[i]->dispatch_bit : 0;
    }
    return bits;
}

static bool names_an_ending(const sj_selection *selection, const char *const *endings)
{
    for (size_t i = 0; i < selection->module_count; i++) {
        for (const char *const *ending = endings; ending != NULL && *ending != NULL; ending++) {
            if (strstr(selection->modules[i].text, *ending) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* True for names like Java's "Class.method(I)V", which have a descriptor. False for Go's
 * "main.(*Server).Serve". */
static bool has_descriptor(const char *name)
{
    const size_t dot = strcspn(name, ".(");
    const char *descriptor = strchr(name + dot, '(');
    return name[dot] == '.' && descriptor != NULL && descriptor[-1] != '.';
}

static const char *runtime_of_pattern(const sj_pattern *pattern)
{
    size_t place = 0;
    if (sj_runtime_of_method(pattern->text, &place)) {
        return sj_runtimes[place]->monitor_bit != 0 ? sj_runtimes[place]->name : NULL;
    }
    return has_descriptor(pattern->text) ? sj_runtimes[SJ_LINK_LANGUAGE_JVM]->name : NULL;
}

static bool asks_for_classes(const sj_runtime *runtime, const sj_runtime_selection *selection)
{
    const sj_class_filter *classes = &selection->classes;
    return selection->dispatch || (runtime->monitor_bit != 0 &&
                                   (selection->lines || selection->in_place ||
                                    classes->class_count != 0 || classes->selector_count != 0 ||
                                    classes->ancestor_count != 0 || classes->loader_count != 0));
}

const char *sj_selection_names_methods(const sj_selection *selection)
{
    const char *name = NULL;
    for (size_t i = 0; i < SJ_RUNTIMES && name == NULL; i++) {
        name =
            asks_for_classes(sj_runtimes[i], &selection->runtimes[i]) ? sj_runtimes[i]->name : NULL;
    }
    for (size_t i = 0; i < selection->function_count && name == NULL; i++) {
        name = runtime_of_pattern(&selection->functions[i]);
    }
    const size_t rules = selection->values != NULL ? selection->values->count : 0;
    for (size_t i = 0; i < rules && name == NULL; i++) {
        name = runtime_of_pattern(&selection->values->items[i].function);
    }
    return name;
}

uint32_t sj_selection_runtime_bits(const sj_selection *selection)
{
    uint32_t bits = sj_selection_dispatch_bits(selection);
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        const sj_runtime *runtime = sj_runtimes[i];
        const bool with_system =
            selection->all_libraries || names_an_ending(selection, runtime->endings);
        bits |= selection->runtimes[i].dispatch ? 0 : runtime->patched_bit;
        bits |= selection->runtimes[i].classes.ancestor_count != 0 ? runtime->lineage_bit : 0;
        bits |= runtime->monitor_bit | (with_system ? runtime->system_bit : 0);
        bits |= selection->runtimes[i].lines ? runtime->lines_bit : 0;
        bits |= selection->runtimes[i].in_place ? runtime->in_place_bit : 0;
    }
    return bits;
}

void sj_selection_set_classes(sj_selection *selection, sj_class_find find, void *context)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        selection->runtimes[i].classes.find = find;
        selection->runtimes[i].classes.context = context;
    }
}
