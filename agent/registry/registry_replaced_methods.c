/* Methods whose code a program replaces. The function with that code gets the method's name. */
#include "agent/registry/method_group.h"
#include "agent/registry/registry_internal.h"
#include "proto/base/array.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 4096, RENAMED_MAX = 1 << 20 };

#define PATH "objc:put-in"

/* The session's function at an address of code. */
typedef struct code_function {
    uint32_t function; /* 0: no hooked function */
    uint32_t module;
    uint64_t offset;
    char own[NAME_BYTES];
} code_function;

static const sj_registry_mapping *find_mapping(const sj_registry *registry, uint64_t process,
                                               uint64_t code)
{
    const sj_mapping_list *mappings = sj_registry_mappings_of(registry, process);
    const sj_registry_mapping *best = NULL;
    for (size_t i = 0; i < mappings->count; i++) {
        const sj_registry_mapping *mapping = &mappings->items[i];
        const sj_registry_module *module = &registry->modules[mapping->module - 1];
        if (mapping->process == process && module->plan_path[0] != '\0' && !module->only_imports &&
            mapping->bias <= code && (best == NULL || mapping->bias > best->bias)) {
            best = mapping;
        }
    }
    return best;
}

static void search_plan(const sj_plan_header *plan, uint32_t first_function, code_function *found)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    for (uint32_t i = 0; i < plan->function_count; i++) {
        if (functions[i].offset == found->offset && sj_plan_is_hooked(&functions[i])) {
            found->function = first_function + i;
            snprintf(found->own, sizeof(found->own), "%s", sj_plan_string(plan, functions[i].name));
            return;
        }
    }
}

/* Returns the plan of a module, mapped and checked once; NULL: it cannot be read. */
static const sj_plan_header *map_plan(sj_registry_module *module)
{
    struct stat file_status;
    void *bytes = MAP_FAILED;
    if (module->mapped_plan != NULL) {
        return module->mapped_plan;
    }
    const int file = open(module->plan_path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && fstat(file, &file_status) == 0 && file_status.st_size > 0) {
        bytes = mmap(NULL, (size_t)file_status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) {
        close(file);
    }
    if (bytes == MAP_FAILED) {
        return NULL;
    }
    if (sj_plan_check(bytes, (size_t)file_status.st_size) != SJ_OK) {
        munmap(bytes, (size_t)file_status.st_size);
        return NULL;
    }
    module->mapped_plan = bytes;
    module->mapped_bytes = (size_t)file_status.st_size;
    return bytes;
}

static void find_function(const sj_registry *registry, uint64_t process, uint64_t code,
                          code_function *found)
{
    const sj_registry_mapping *mapping = find_mapping(registry, process, code);
    *found = (code_function){0};
    if (mapping == NULL) {
        return;
    }
    sj_registry_module *module = &registry->modules[mapping->module - 1];
    const sj_plan_header *plan = map_plan(module);
    found->module = mapping->module;
    found->offset = code - mapping->bias;
    if (plan != NULL) {
        search_plan(plan, module->first_function, found);
    }
}

static sj_status add_renamed(sj_registry *registry, uint64_t process, uint32_t function,
                             uint32_t named, uint64_t now_ticks)
{
    const size_t count = atomic_load(&registry->renamed_count);
    if (count >= RENAMED_MAX) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&registry->renamed, &registry->renamed_capacity, count, 1,
                            sizeof(*registry->renamed)));
    registry->renamed[count] = (sj_renamed_function){
        .process = process, .ticks = now_ticks, .function = function, .named = named};
    atomic_store(&registry->renamed_count, count + 1);
    return SJ_OK;
}

/* Returns the function under whose name a function's calls in a process are counted now. */
static uint32_t present_name(const sj_registry *registry, uint64_t process, uint32_t function)
{
    for (size_t i = atomic_load(&registry->renamed_count); i-- > 0;) {
        const sj_renamed_function *renamed = &registry->renamed[i];
        if (renamed->process == process && renamed->function == function) {
            return renamed->named;
        }
    }
    return function;
}

/* Returns the function that stands for another function's code under `name`. Adds it if it does not
 * exist. */
static sj_status name_function(sj_registry *registry, uint64_t process, uint32_t function,
                               const char *name, uint64_t now_ticks, uint32_t *named)
{
    uint8_t wanted = 1;
    sj_plan_header *group = NULL;
    const sj_slice text = {.data = (const uint8_t *)name, .size = strlen(name) + 1};
    const sj_registry_mapping mapping = {.process = process, .loaded_ticks = now_ticks};
    for (size_t i = 0; i < registry->named_count; i++) {
        const sj_named_function *known = &registry->named[i];
        if (known->function == function && strcmp(known->name, name) == 0) {
            *named = known->named;
            return *named < registry->next_function
                       ? sj_registry_share_function(registry, process, *named, now_ticks)
                       : SJ_OK;
        }
    }
    SJ_TRY(sj_array_reserve(&registry->named, &registry->named_capacity, registry->named_count, 1,
                            sizeof(*registry->named)));
    char *kept = strdup(name);
    if (kept == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = sj_method_group_make(NULL, PATH, text, 1, &wanted, &group);
    if (status == SJ_OK) {
        status = sj_registry_add_group(registry, &mapping, group, PATH, named);
    }
    if (status == SJ_OK && sj_method_names_get(&registry->method_names, function) != NULL) {
        ((sj_plan_function *)(uintptr_t)sj_plan_functions(group))->receiver = 1;
        status = sj_method_names_add(&registry->method_names, group, *named);
    }
    free(group);
    if (status != SJ_OK) {
        free(kept);
        return status;
    }
    registry->named[registry->named_count++] =
        (sj_named_function){.function = function, .named = *named, .name = kept};
    if (registry->options.rules != NULL) {
        sj_function_rules_name(registry->options.rules, *named, name);
    }
    return SJ_OK;
}

/* Renames a function according to the methods that have its code now. */
static sj_status rename_function(sj_registry *registry, uint64_t process, uint32_t function,
                                 uint64_t now_ticks)
{
    const char *name = sj_replaced_methods_name(&registry->replaced_methods, process, function);
    uint32_t named = function;
    if (name != NULL) {
        SJ_TRY(name_function(registry, process, function, name, now_ticks, &named));
    }
    return named != present_name(registry, process, function)
               ? add_renamed(registry, process, function, named, now_ticks)
               : SJ_OK;
}

/* A change of a method's code, and the functions whose names it may affect: the new one and the
 * previous one. */
typedef struct change_draft {
    const char *name;
    uint32_t function;
    uint32_t before;
} change_draft;

static sj_status set_method(sj_registry *registry, uint64_t process, const sj_replaced_code *change,
                            change_draft *draft)
{
    char shown[NAME_BYTES];
    code_function code;
    find_function(registry, process, change->code, &code);
    const char *category = code.function != 0 ? sj_method_categories_find(&registry->categories,
                                                                          code.module, code.offset)
                                              : NULL;
    *draft = (change_draft){.name = change->name, .function = code.function};
    if (sj_method_name_in(change->name, category != NULL ? category : "", shown, sizeof(shown)) ==
        0) {
        return SJ_ECORRUPT;
    }
    const sj_replaced_method method = {.process = process,
                                       .function = code.function,
                                       .name = (char *)(uintptr_t)change->name,
                                       .shown = shown,
                                       .own = code.own};
    return sj_replaced_methods_set(&registry->replaced_methods, &method, &draft->before);
}

static sj_status rename_functions(sj_registry *registry, uint64_t process,
                                  const change_draft *draft, uint64_t now_ticks)
{
    if (draft->function != 0) {
        SJ_TRY(rename_function(registry, process, draft->function, now_ticks));
    }
    if (draft->before != 0) {
        SJ_TRY(rename_function(registry, process, draft->before, now_ticks));
    }
    for (size_t i = 0; i < registry->replaced_methods.count;
         i++) { /* code that was made for this method */
        const sj_replaced_method *method = &registry->replaced_methods.items[i];
        if (method->process == process && method->function != 0 &&
            strcmp(method->own, draft->name) == 0) {
            SJ_TRY(rename_function(registry, process, method->function, now_ticks));
        }
    }
    return SJ_OK;
}

sj_status sj_registry_replace_methods(sj_registry *registry, uint64_t process,
                                      const sj_replaced_code *changes, size_t count,
                                      uint64_t now_ticks)
{
    change_draft drafts[SJ_LINK_REPLACED_METHODS_MAX];
    sj_status status = count <= SJ_LINK_REPLACED_METHODS_MAX ? SJ_OK : SJ_EINVAL;
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < count && status == SJ_OK; i++) {
        status = set_method(registry, process, &changes[i], &drafts[i]);
    }
    for (size_t i = 0; i < count && status == SJ_OK; i++) {
        status = rename_functions(registry, process, &drafts[i], now_ticks);
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

sj_status sj_registry_inherit_replaced(sj_registry *registry, uint64_t parent, uint64_t child,
                                       uint64_t now_ticks)
{
    const size_t methods = registry->replaced_methods.count;
    for (size_t i = 0; i < methods && registry->replaced_methods.items[i].process <= parent; i++) {
        sj_replaced_method method = registry->replaced_methods.items[i];
        uint32_t before = 0;
        if (method.process == parent) {
            method.process = child;
            SJ_TRY(sj_replaced_methods_set(&registry->replaced_methods, &method, &before));
        }
    }
    const size_t count = atomic_load(&registry->renamed_count);
    for (size_t i = 0; i < count; i++) {
        const sj_renamed_function renamed = registry->renamed[i];
        if (renamed.process == parent) {
            SJ_TRY(add_renamed(registry, child, renamed.function, renamed.named, now_ticks));
        }
    }
    return SJ_OK;
}

size_t sj_registry_renamed_count(const sj_registry *registry)
{
    return atomic_load(&registry->renamed_count);
}

size_t sj_registry_list_renamed(sj_registry *registry, size_t first, sj_renamed_function *list,
                                size_t capacity)
{
    pthread_mutex_lock(&registry->mutex);
    const size_t count = atomic_load(&registry->renamed_count);
    const size_t left = first < count ? count - first : 0;
    const size_t copied = left < capacity ? left : capacity;
    if (copied != 0) {
        memcpy(list, registry->renamed + first, copied * sizeof(*list));
    }
    pthread_mutex_unlock(&registry->mutex);
    return copied;
}
