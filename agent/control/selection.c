#include "agent/control/selection.h"

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
    sj_class_filter_free(&selection->objc);
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

/* is_untouchable: what the agent itself stands on, whatever the user asks for. */
static bool is_untouchable(const char *path)
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

bool sj_selection_is_system_library(const char *path)
{
    static const char *const roots[] = {"/lib/", "/lib64/", "/lib32/", "/usr/lib/", "/usr/lib64/"};
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        if (starts_with(path, roots[i])) {
            return true;
        }
    }
    return false;
}

bool sj_selection_wants_module(const sj_selection *selection, const char *path, bool is_main)
{
    if (!is_main && is_untouchable(path)) {
        return false;
    }
    /* The dispatch technique asks the runtime for names: those calls are not the program's. */
    if (selection->objc_dispatch && starts_with(file_name(path), "libobjc.")) {
        return false;
    }
    if (names_file(selection->modules_excluded, selection->modules_excluded_count, path)) {
        return false;
    }
    if (selection->module_count != 0) {
        return names_file(selection->modules, selection->module_count, path);
    }
    return is_main || selection->all_libraries || !sj_selection_is_system_library(path);
}

bool sj_selection_wants_function(void *context, const char *name, uint64_t offset,
                                 uint32_t size_bytes)
{
    const sj_selection *selection = context;
    const bool is_method = sj_class_filter_is_method(name);
    (void)offset;
    (void)size_bytes;
    return !(is_method && selection->objc_dispatch) && sj_selection_wants_method(selection, name);
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

bool sj_selection_wants_method(const sj_selection *selection, const char *name)
{
    if (selection->function_count != 0 &&
        !names_function(selection->functions, selection->function_count, name)) {
        return false;
    }
    return !names_function(selection->excluded, selection->excluded_count, name) &&
           sj_class_filter_wants(&selection->objc, name);
}

static bool same_patterns(const sj_pattern *left, size_t left_count, const sj_pattern *right,
                          size_t right_count)
{
    for (size_t i = 0; i < left_count && left_count == right_count; i++) {
        if (strcmp(left[i].text, right[i].text) != 0) {
            return false;
        }
    }
    return left_count == right_count;
}

bool sj_selection_same_modules(const sj_selection *left, const sj_selection *right)
{
    return left->all_libraries == right->all_libraries &&
           same_patterns(left->modules, left->module_count, right->modules, right->module_count) &&
           same_patterns(left->modules_excluded, left->modules_excluded_count,
                         right->modules_excluded, right->modules_excluded_count);
}

static bool same_classes(const sj_class_filter *left, const sj_class_filter *right)
{
    return left->without_system == right->without_system &&
           same_patterns(left->classes, left->class_count, right->classes, right->class_count) &&
           same_patterns(left->excluded, left->excluded_count, right->excluded,
                         right->excluded_count) &&
           same_patterns(left->selectors, left->selector_count, right->selectors,
                         right->selector_count) &&
           same_patterns(left->ancestors, left->ancestor_count, right->ancestors,
                         right->ancestor_count);
}

bool sj_selection_same(const sj_selection *left, const sj_selection *right)
{
    return left->library_calls == right->library_calls && sj_selection_same_modules(left, right) &&
           same_patterns(left->functions, left->function_count, right->functions,
                         right->function_count) &&
           same_patterns(left->excluded, left->excluded_count, right->excluded,
                         right->excluded_count) &&
           same_patterns(left->sources, left->source_count, right->sources, right->source_count) &&
           same_patterns(left->sources_excluded, left->sources_excluded_count,
                         right->sources_excluded, right->sources_excluded_count) &&
           same_classes(&left->objc, &right->objc) &&
           sj_value_rules_same(left->values, right->values);
}
