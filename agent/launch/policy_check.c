#include "agent/launch/policy_check.h"

#include "agent/registry/module_plan.h"
#include "agent/runtimes/runtime.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* True if the policy has names to look up. */
static bool has_names(const sj_policy *policy)
{
    const sj_selection *selection = &policy->selection;
    bool found = selection->function_count != 0 || selection->excluded_count != 0 ||
                 sj_selection_has_sources(selection) || policy->sampled_count != 0 ||
                 selection->values != NULL;
    for (size_t i = 0; i < policy->trigger_count; i++) {
        found = found || policy->triggers[i].subject.text != NULL;
    }
    return found;
}

/* Checks the rules' names against the functions of a module; returns the number of selected
 * functions. */
static uint64_t check_module(const sj_selection *selection, sj_function_rules *rules,
                             const char *path, bool is_main, const char *cache_directory)
{
    sj_plan plan = {0};
    const sj_module_plan_options options = {.selection = selection,
                                            .rules = rules,
                                            .cache_directory = cache_directory,
                                            .path = path,
                                            .is_main = is_main,
                                            .threads = sj_plan_threads()};
    sj_function_rules_module(rules, path);
    /* The recording reports what cannot be planned. */
    if (!sj_selection_wants_module(selection, path, is_main) ||
        sj_module_plan_make(&options, &plan, NULL) != SJ_OK) {
        return 0;
    }
    uint64_t selected = 0;
    sj_function_keys keys;
    sj_module_keys_init(&keys, path);
    for (uint32_t i = 0; i < plan.header->function_count; i++) {
        const char *name = sj_module_key(&keys, plan.header, i);
        sj_function_rules_name(rules, i + 1, name);
        selected += sj_selection_wants_method(selection, name);
    }
    sj_plan_free(&plan);
    return selected;
}

/* Runs the program's loader, which lists the libraries instead of starting the program, like
 * ldd(1). Returns the stream to read, or NULL if it cannot be started. */
static FILE *start_listing(const char *program, pid_t *pid)
{
    static const char variable[] = "LD_TRACE_LOADED_OBJECTS=1";
    char *arguments[] = {(char *)(uintptr_t)program, NULL};
    posix_spawn_file_actions_t actions;
    size_t count = 0;
    int ends[2];
    while (environ[count] != NULL) {
        count++;
    }
    char **environment = calloc(count + 2, sizeof(*environment));
    if (environment == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        free(environment);
        return NULL;
    }
    memcpy(environment, environ, count * sizeof(*environment));
    environment[count] = (char *)(uintptr_t)variable;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int problem = posix_spawn(pid, program, &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    close(ends[1]);
    FILE *listing = problem == 0 ? fdopen(ends[0], "r") : NULL;
    if (listing == NULL) {
        close(ends[0]);
    }
    return listing;
}

/* Returns the path in a line such as "libm.so.6 => /lib/libm.so.6 (0x7f...)". */
static char *library_of(char *line)
{
    char *arrow = strstr(line, "=> ");
    char *path = arrow != NULL ? arrow + 3 : line + strspn(line, " \t");
    char *end = strstr(path, " (0x");
    if (path[0] != '/' || end == NULL) {
        return NULL;
    }
    *end = '\0';
    return path;
}

/* True if a library belongs to a runtime whose methods appear at run time. */
static bool is_of_methods(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        const bool comes_later =
            sj_runtimes[i]->filters_classes || sj_runtimes[i]->read_container != NULL;
        if (comes_later && sj_runtime_has_file(sj_runtimes[i], name)) {
            return true;
        }
    }
    return false;
}

/* Checks the rules' names against the libraries that the program is linked with. Sets
 * `*has_methods` if one is a runtime, whose methods are not known yet. Returns the number of
 * selected functions. */
static uint64_t check_libraries(const sj_selection *selection, sj_function_rules *rules,
                                const char *program, const char *cache_directory, bool *has_methods)
{
    uint64_t selected = 0;
    char line[PATH_MAX + 64];
    char real[PATH_MAX];
    pid_t pid = 0;
    FILE *listing = start_listing(program, &pid);
    while (listing != NULL && fgets(line, sizeof(line), listing) != NULL) {
        const char *path = library_of(line);
        if (path != NULL && realpath(path, real) != NULL) {
            *has_methods = *has_methods || is_of_methods(real);
            selected += check_module(selection, rules, real, false, cache_directory);
        }
    }
    if (listing != NULL) {
        fclose(listing);
        (void)waitpid(pid, NULL, 0);
    }
    return selected;
}

typedef struct unmatched_modules {
    bool found;
} unmatched_modules;

static void note_module(void *context, const sj_unmatched *unmatched)
{
    unmatched_modules *modules = context;
    modules->found = modules->found || (strcmp(unmatched->kind, "module") == 0 &&
                                        strcmp(unmatched->steps[1].key, "include") == 0);
}

typedef struct name_visitor {
    void *context;
    void (*visit)(void *context, const sj_unmatched *unmatched);
    uint64_t count; /* number of visited patterns */
} name_visitor;

/* Ignores module patterns, because a module may be loaded later. */
static void visit_unmatched(void *context, const sj_unmatched *unmatched)
{
    name_visitor *visitor = context;
    if (strcmp(unmatched->kind, "module") != 0) {
        visitor->count++;
        visitor->visit(visitor->context, unmatched);
    }
}

sj_status sj_name_check(const sj_policy *policy, const sj_selection *selection,
                        const sj_program *program, const char *cache_directory, void *context,
                        void (*visit)(void *context, const sj_unmatched *unmatched))
{
    sj_function_rules *rules = NULL;
    unmatched_modules modules = {0};
    name_visitor visitor = {.context = context, .visit = visit};
    if (policy->allows_unmatched || !has_names(policy) ||
        sj_selection_dispatch_bits(selection) != 0 || program->emulator[0] != '\0' ||
        sj_selection_is_launcher(program->binary)) {
        return SJ_OK;
    }
    SJ_TRY(sj_function_rules_new(policy, &rules));
    uint64_t selected = check_module(selection, rules, program->binary, true, cache_directory);
    bool has_methods = false;
    selected += check_libraries(selection, rules, program->binary, cache_directory, &has_methods);
    sj_function_rules_each_unmatched(rules, &modules, note_module);
    if (has_methods) { /* at its end the recording reports patterns that are still unmatched */
        sj_function_rules_free(rules);
        return SJ_OK;
    }
    if (!modules.found) {
        sj_function_rules_each_unmatched(rules, &visitor, visit_unmatched);
    }
    sj_function_rules_free(rules);
    const bool has_filters = selection->function_count != 0 || selection->excluded_count != 0;
    return has_filters && selected == 0 && !modules.found && visitor.count == 0 ? SJ_ENOTFOUND
                                                                                : SJ_OK;
}

sj_status sj_map_check(const sj_selection *selection, const char *binary,
                       const char *cache_directory, sj_error *error)
{
    sj_plan plan = {0};
    const sj_module_plan_options options = {.selection = selection,
                                            .cache_directory = cache_directory,
                                            .path = binary,
                                            .is_main = true,
                                            .threads = sj_plan_threads()};
    if (selection->map_file == NULL) {
        return SJ_OK;
    }
    SJ_TRY(sj_module_plan_make(&options, &plan, error));
    sj_plan_free(&plan);
    return SJ_OK;
}
