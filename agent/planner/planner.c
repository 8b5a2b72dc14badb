#include "agent/planner/planner.h"

#include "agent/abi/plan_crc.h"
#include "agent/planner/builder.h"
#include "agent/planner/machine.h"
#include "agent/planner/pieces.h"
#include "agent/planner/plan_file.h"
#include "proto/base/progress.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* Runs the two steps that take most of the time, and reports their progress. */
static sj_status plan_functions(const sj_planner_options *options, sj_builder *builder)
{
    sj_module *module = builder->module;
    const sj_progress_work work = sj_progress_begin_list(2);
    sj_status status = sj_module_find_targets(module);
    sj_progress_step(work);
    if (options->only_imports) {
        module->range_count = 0;
    }
    if (status == SJ_OK) {
        status = sj_builder_start(builder);
    }
    if (status == SJ_OK) {
        status = sj_builder_hook(builder);
    }
    sj_progress_end(work);
    return status;
}

static sj_status plan_module(const sj_planner_options *options, sj_module *module, sj_plan *plan)
{
    uint8_t hash[20];
    sj_builder builder = {.module = module};
    SJ_TRY(sj_module_find_ranges(module));
    sj_status status = plan_functions(options, &builder);
    if (status == SJ_OK && (options->library_calls || options->only_imports)) {
        status = sj_plan_library_calls(&builder);
    }
    if (status == SJ_OK) {
        status = sj_builder_sum(&builder);
    }
    if (status == SJ_OK) {
        status = sj_plan_serialize(&builder, options->module_path,
                                   sj_identity_of(&module->elf, hash), plan);
    }
    sj_builder_free(&builder);
    return status;
}

uint32_t sj_plan_threads(void)
{
    cpu_set_t processors;
    const int count = sched_getaffinity(0, sizeof(processors), &processors) == 0
                          ? CPU_COUNT(&processors)
                          : 1; /* also if there are more processors than the set can hold */
    return count < SJ_PIECES_MOST_THREADS ? (uint32_t)count : (uint32_t)SJ_PIECES_MOST_THREADS;
}

/* Maps the cached plan of the module. Writes to `path` where the plan is cached, or "" if it cannot
 * be cached. */
static bool load_cached(const sj_planner_options *options, char path[SJ_PLAN_PATH_BYTES],
                        sj_plan *plan)
{
    sj_elf elf;
    path[0] = 0;
    if (options->cache_directory == NULL ||
        sj_elf_open(options->module_path, &elf, NULL) != SJ_OK) {
        return false;
    }
    uint8_t hash[20];
    const sj_slice identity = sj_identity_of(&elf, hash);
    bool is_found = false;
    if (!sj_cache_path(options, &elf, identity, path)) {
        path[0] = 0;
    } else if (sj_plan_map(path, plan) == SJ_OK) {
        is_found = plan->header->build_id_bytes == identity.size &&
                   memcmp(plan->header->build_id, identity.data, identity.size) == 0;
        if (!is_found) {
            sj_plan_free(plan);
        }
    }
    sj_elf_close(&elf);
    return is_found;
}

bool sj_plan_is_cached(const sj_planner_options *options)
{
    sj_elf elf;
    uint8_t hash[20];
    char path[SJ_PLAN_PATH_BYTES];
    if (options->cache_directory == NULL ||
        sj_elf_open(options->module_path, &elf, NULL) != SJ_OK) {
        return false;
    }
    const bool is_named = sj_cache_path(options, &elf, sj_identity_of(&elf, hash), path);
    sj_elf_close(&elf);
    return is_named && access(path, R_OK) == 0;
}

/* Makes the plan writable: replaces a mapped plan by a copy. */
static sj_status make_writable(sj_plan *plan)
{
    if (!plan->mapped) {
        return SJ_OK;
    }
    void *copy = malloc(plan->size_bytes);
    if (copy == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(copy, plan->header, plan->size_bytes);
    const sj_plan owned = {
        .header = copy, .size_bytes = plan->size_bytes, .from_cache = plan->from_cache};
    sj_plan_free(plan);
    *plan = owned;
    return SJ_OK;
}

/* False for cold parts of functions and for functions of the compiler and linker. A policy cannot
 * select them. */
static bool is_selectable(const sj_plan_function *function)
{
    return function->own_skip != SJ_SKIP_COLD_PART && function->own_skip != SJ_SKIP_RUNTIME_SUPPORT;
}

/* Returns the skip reason of function `index` with this selection. */
static uint8_t skip_for(const sj_plan *plan, uint32_t index, sj_function_wanted wanted,
                        void *context)
{
    const sj_plan_function *function = &sj_plan_functions(plan->header)[index];
    const char *name = sj_plan_string(plan->header, function->name);
    const bool is_wanted = wanted(context, name, function->offset, function->size);
    return is_wanted || !is_selectable(function) ? function->own_skip : (uint8_t)SJ_SKIP_FILTERED;
}

sj_status sj_plan_select(sj_plan *plan, sj_function_wanted wanted, void *context, bool *changed)
{
    bool is_changed = false;
    for (uint32_t i = 0; i < plan->header->function_count; i++) {
        const uint8_t skip = skip_for(plan, i, wanted, context);
        if (skip == sj_plan_functions(plan->header)[i].skip) {
            continue;
        }
        if (!is_changed) { /* copies a cached plan only if a mark changes */
            SJ_TRY(make_writable(plan));
            is_changed = true;
        }
        ((sj_plan_function *)(uintptr_t)sj_plan_functions(plan->header))[i].skip = skip;
    }
    if (is_changed) {
        sj_plan_header *header = (sj_plan_header *)(uintptr_t)plan->header;
        header->crc32c = sj_plan_crc(header, plan->size_bytes);
    }
    if (changed != NULL) {
        *changed = is_changed;
    }
    return SJ_OK;
}

/* Removes the receivers, which every plan contains. */
static sj_status clear_receivers(sj_plan *plan)
{
    const sj_plan_function *functions = sj_plan_functions(plan->header);
    uint32_t first = 0;
    while (first < plan->header->function_count && functions[first].receiver == 0) {
        first++;
    }
    if (first == plan->header->function_count) {
        return SJ_OK;
    }
    SJ_TRY(make_writable(plan));
    sj_plan_header *header = (sj_plan_header *)(uintptr_t)plan->header;
    for (uint32_t i = first; i < header->function_count; i++) {
        ((sj_plan_function *)(uintptr_t)sj_plan_functions(header))[i].receiver = 0;
    }
    header->crc32c = sj_plan_crc(header, plan->size_bytes);
    return SJ_OK;
}

/* Sets the values of a function that are recorded. Arguments of a method are counted after its
 * selector, so they need a known receiver. A method with values does not record its receiver. */
static sj_status set_values(const sj_planner_options *options, const sj_plan_header *header,
                            sj_plan_function *function)
{
    const bool is_method = function->source == SJ_SYMBOL_RUNTIME;
    uint8_t listed[SJ_PLACES_PER_FUNCTION];
    size_t used = 0;
    SJ_TRY(options->values(options->context, sj_plan_string(header, function->name),
                           function->offset, listed));
    for (size_t i = 0; i < SJ_PLACES_PER_FUNCTION; i++) {
        const bool is_result = sj_value_position(listed[i]) == SJ_VALUE_RESULT ||
                               /* a limit applies to all texts, also to a text that is the result */
                               sj_place_is_limit(listed[i]);
        if (listed[i] != 0 && (is_result || !is_method || function->receiver != 0)) {
            function->values[used++] = listed[i];
        }
    }
    if (used != 0) {
        function->value_shift = is_method ? (uint8_t)(function->receiver + 1) : 0;
        function->receiver = 0;
    }
    return SJ_OK;
}

static sj_status set_all_values(const sj_planner_options *options, sj_plan *plan)
{
    SJ_TRY(make_writable(plan));
    sj_plan_header *header = (sj_plan_header *)(uintptr_t)plan->header;
    sj_plan_function *functions = (sj_plan_function *)(uintptr_t)sj_plan_functions(header);
    for (uint32_t i = 0; i < header->function_count; i++) {
        SJ_TRY(set_values(options, header, &functions[i]));
    }
    header->crc32c = sj_plan_crc(header, plan->size_bytes);
    return SJ_OK;
}

static sj_status add_values(sj_plan_header *header, sj_function_values add, void *context,
                            uint8_t *marks, uint32_t *count)
{
    sj_plan_function *functions = (sj_plan_function *)(uintptr_t)sj_plan_functions(header);
    for (uint32_t i = 0; i < header->function_count; i++) {
        sj_plan_function *function = &functions[i];
        const bool is_method = function->source == SJ_SYMBOL_RUNTIME && function->value_shift == 0;
        uint8_t places[SJ_PLACES_PER_FUNCTION];
        if (is_method) {
            continue;
        }
        memcpy(places, function->values, sizeof(places));
        SJ_TRY(add(context, sj_plan_string(header, function->name), function->offset, places));
        if (memcmp(places, function->values, sizeof(places)) != 0) {
            memcpy(function->values, places, sizeof(places));
            function->receiver = 0;
            marks[i] |= 1;
            (*count)++;
        }
    }
    return SJ_OK;
}

sj_status sj_plan_add_values(sj_plan *plan, sj_function_values add, void *context, uint8_t *marks,
                             uint32_t *count)
{
    *count = 0;
    SJ_TRY(make_writable(plan));
    sj_plan_header *header = (sj_plan_header *)(uintptr_t)plan->header;
    const sj_status status = add_values(header, add, context, marks, count);
    header->crc32c = sj_plan_crc(header, plan->size_bytes);
    return status;
}

static sj_status select_wanted(const sj_planner_options *options, sj_plan *plan, sj_error *error)
{
    sj_status status = options->values != NULL ? set_all_values(options, plan) : SJ_OK;
    if (status == SJ_OK && !options->with_receivers) {
        status = clear_receivers(plan);
    }
    if (status == SJ_OK && options->wanted != NULL) {
        status = sj_plan_select(plan, options->wanted, options->context, NULL);
    }
    if (status != SJ_OK) {
        sj_plan_free(plan);
        return sj_fail(error, status, "cannot select functions of %s: %s", options->module_path,
                       sj_status_text(status));
    }
    return SJ_OK;
}

sj_status sj_plan_make(const sj_planner_options *options, sj_plan *plan, sj_error *error)
{
    *plan = (sj_plan){0};
    if (options == NULL || options->module_path == NULL) {
        return sj_fail(error, SJ_EINVAL, "no module to plan");
    }
    char cached[SJ_PLAN_PATH_BYTES];
    if (load_cached(options, cached, plan)) {
        plan->from_cache = true;
        return select_wanted(options, plan, error);
    }
    sj_module module = {.threads = options->threads};
    sj_status status = sj_module_load(options, sj_machine_of, &module, error);
    if (status == SJ_OK) {
        status = plan_module(options, &module, plan);
        if (status != SJ_OK) {
            (void)sj_fail(error, status, "cannot plan %s: %s", options->module_path,
                          sj_status_text(status));
        }
    }
    sj_module_close(&module);
    /* Ignores errors of writing the cache: the next process plans again. */
    if (status == SJ_OK && cached[0] != 0 && sj_plan_write(plan, cached, NULL) != SJ_OK) {
        plan->from_cache = false;
    }
    return status == SJ_OK ? select_wanted(options, plan, error) : status;
}
