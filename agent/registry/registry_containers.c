/* Containers of methods that are loaded at run time. Each container is a module of the session. A
 * function's offset is its token. */
#include "agent/policy/value_capacity.h"
#include "agent/registry/method_group.h"
#include "agent/registry/registry_internal.h"
#include "agent/runtimes/runtime.h"
#include "agent/session/module_frames.h"
#include "proto/base/array.h"
#include "proto/block/call_text.h"

#include <stdlib.h>
#include <string.h>

/* The content of a container while it is read. */
typedef struct container_draft {
    const sj_selection *selection;
    const sj_runtime *runtime;
    sj_link_language language;
    bool is_main;
    bool is_known; /* the container is read again; its unmet rules are counted already */
    /* class of the previous method: methods of a class come together */
    char class[SJ_METHOD_PART_BYTES];
    bool wants_class; /* decided once for the methods of that class */
    sj_plan_function *functions;
    size_t count;
    size_t capacity;
    char *strings;
    size_t strings_bytes;
    size_t strings_capacity;
    sj_link_method_values *values;
    size_t value_count;
    size_t value_capacity;
} container_draft;

/* Lists the places of a method's values, as many as fit. The place of a call's CPU time is
 * SJ_PLACE_CPU_ENTRY. Counts the rules of `counted` whose values do not fit. */
static void list_managed(sj_value_rules *rules, const sj_rule_set *matched,
                         const sj_rule_set *counted, uint8_t descriptors[SJ_LINK_METHOD_VALUES])
{
    uint8_t places[SJ_PLACES_PER_FUNCTION];
    size_t used = 0;
    memset(descriptors, 0, SJ_LINK_METHOD_VALUES);
    sj_value_capacity_list_managed(rules, matched, SJ_LINK_METHOD_VALUES, places);
    for (size_t i = 0; i < SJ_PLACES_PER_FUNCTION; i++) {
        if (places[i] != 0 && !sj_place_is_limit(places[i])) {
            descriptors[used++] = places[i];
        }
    }
    sj_value_rules_count_crowded(rules, counted, places);
}

/* Lists the values of a method to record, as many as fit into an answer. */
static sj_status list_values(container_draft *draft, uint32_t token, const char *name)
{
    sj_value_rules *rules = draft->selection != NULL ? draft->selection->values : NULL;
    const sj_rule_set named = sj_value_rules_match(rules, name);
    const sj_rule_set possible = sj_value_rules_of_managed(rules, &named);
    const sj_rule_set matched =
        sj_value_rules_within(rules, &possible, sj_call_text_parameters(name));
    if (!draft->is_known) {
        sj_value_rules_count_managed(rules, &named);
    }
    if (sj_rule_set_is_empty(&matched)) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&draft->values, &draft->value_capacity, draft->value_count, 1,
                            sizeof(*draft->values)));
    sj_link_method_values *values = &draft->values[draft->value_count++];
    values->token = token & INT32_MAX;
    values->in_place = sj_value_rules_decide_calls(rules, &matched) ? 1 : 0;
    const sj_rule_set fresh = sj_value_rules_fresh_of(rules, &matched);
    list_managed(rules, &matched, draft->is_known ? &fresh : &matched, values->descriptors);
    return SJ_OK;
}

/* Notes which values of the methods are stored by their own types. */
static sj_status keep_own_values(const container_draft *draft, uint32_t first_function)
{
    sj_value_rules *rules = draft->selection != NULL ? draft->selection->values : NULL;
    for (size_t i = 0; i < draft->value_count; i++) {
        const uint32_t index = draft->values[i].token - 1;
        const char *name = draft->strings + draft->functions[index].name;
        const sj_rule_set named = sj_value_rules_match(rules, name);
        const sj_rule_set possible = sj_value_rules_of_managed(rules, &named);
        SJ_TRY(sj_value_rules_set_own(rules, first_function + index,
                                      sj_value_rules_own_positions(rules, &possible)));
    }
    return SJ_OK;
}

/* Drops the values of methods that do not fit into an answer, and counts their rules as crowded. */
static void limit_values(container_draft *draft)
{
    sj_value_rules *rules = draft->selection != NULL ? draft->selection->values : NULL;
    const size_t most = sj_link_container_values((uint32_t)draft->count);
    for (size_t i = most; i < draft->value_count; i++) {
        const sj_plan_function *function = &draft->functions[draft->values[i].token - 1];
        const sj_rule_set named = sj_value_rules_match(rules, draft->strings + function->name);
        const sj_rule_set lost = sj_value_rules_of_managed(rules, &named);
        sj_value_rules_count_crowded_types(rules, &lost);
    }
    draft->value_count = draft->value_count < most ? draft->value_count : most;
}

/* True if a method is wanted. A name that cannot be split has no class, so only patterns of
 * functions apply. */
static bool wants_method(container_draft *draft, const char *name)
{
    sj_method_parts parts;
    const sj_selection *selection = draft->selection;
    if (selection == NULL) {
        return true;
    }
    if (!sj_selection_wants_source(selection, NULL)) {
        return false;
    }
    if (!draft->runtime->split_method(name, &parts)) {
        return sj_selection_wants_method(selection, name);
    }
    if (strcmp(parts.class, draft->class) != 0) {
        draft->wants_class =
            sj_selection_wants_class_in(selection, draft->language, parts.class, draft->is_main);
        memcpy(draft->class, parts.class, sizeof(parts.class));
    }
    return draft->wants_class &&
           sj_selection_wants_method_in(selection, draft->language, name, parts.selector);
}

static sj_status add_method(void *context, uint32_t token, const char *name, bool has_code)
{
    container_draft *draft = context;
    const size_t bytes = strlen(name) + 1;
    if (token != draft->count + 1 || token > SJ_LINK_CONTAINER_TOKENS) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&draft->functions, &draft->capacity, draft->count, 1,
                            sizeof(*draft->functions)));
    SJ_TRY(sj_array_reserve(&draft->strings, &draft->strings_capacity, draft->strings_bytes, bytes,
                            1));
    const bool is_wanted = has_code && wants_method(draft, name);
    draft->functions[draft->count++] =
        (sj_plan_function){.offset = token,
                           .name = (uint32_t)draft->strings_bytes,
                           .technique = is_wanted ? SJ_TECHNIQUE_RUNTIME : SJ_TECHNIQUE_NONE,
                           .skip = is_wanted  ? SJ_SKIP_NONE
                                   : has_code ? SJ_SKIP_FILTERED
                                              : SJ_SKIP_NO_CODE,
                           .source = SJ_SYMBOL_RUNTIME};
    memcpy(draft->strings + draft->strings_bytes, name, bytes);
    draft->strings_bytes += bytes;
    return is_wanted ? list_values(draft, token, name) : SJ_OK;
}

static void free_draft(container_draft *draft)
{
    free(draft->functions);
    free(draft->strings);
    free(draft->values);
}

static sj_status learn_class(void *context, const char *name, const char *super)
{
    const sj_registry *registry = context;
    return sj_class_table_add(registry->options.classes, name, super);
}

/* True if a container belongs to the system and the selection excludes the system. A copy of the
 * framework beside the program belongs to the system, too. */
static bool is_left_to_system(const sj_selection *selection, const sj_link_container *container,
                              const sj_runtime *runtime, const char *file)
{
    const sj_slice id = {.data = container->id, .size = container->id_bytes};
    return selection != NULL && !sj_selection_has_system(selection) && container->is_main == 0 &&
           runtime->is_system_container != NULL && runtime->is_system_container(file, id);
}

static sj_status read_methods(sj_registry *registry, const sj_link_container *container,
                              const char *path, container_draft *draft)
{
    char in_root[PATH_MAX];
    const sj_runtime *runtime = sj_runtime_of_language(container->language);
    const sj_slice id = {.data = container->id, .size = container->id_bytes};
    if (runtime == NULL || runtime->read_container == NULL) {
        return SJ_ENOTFOUND;
    }
    draft->runtime = runtime;
    draft->language = (sj_link_language)container->language;
    draft->is_main = container->is_main != 0;
    /* Offset 0 of the strings is the empty name. */
    SJ_TRY(sj_array_reserve(&draft->strings, &draft->strings_capacity, 0, 1, 1));
    draft->strings_bytes = 1;
    const char *file = sj_registry_find_file(registry, path, in_root);
    if (is_left_to_system(draft->selection, container, runtime, file)) {
        return SJ_EUNSUPPORTED;
    }
    /* A file that cannot be read is reported by read_container below. */
    if (runtime->read_container_classes != NULL && registry->options.classes != NULL &&
        sj_selection_needs_classes(draft->selection) &&
        runtime->read_container_classes(file, id, learn_class, registry) == SJ_ENOMEM) {
        return SJ_ENOMEM;
    }
    SJ_TRY(runtime->read_container(file, id, add_method, draft));
    limit_values(draft);
    return draft->count != 0 ? SJ_OK : SJ_EUNSUPPORTED;
}

/* Reads a new container. If it cannot be read, notes the reason. */
static sj_status read_new(sj_registry *registry, const sj_link_container *container,
                          const char *path, container_draft *draft)
{
    sj_error error = {0};
    const sj_status status = read_methods(registry, container, path, draft);
    if (status == SJ_OK || status == SJ_EUNSUPPORTED || status == SJ_ENOMEM) {
        return status;
    }
    (void)!sj_fail(&error, status, "its methods cannot be read: %s", sj_status_text(status));
    sj_registry_note_plan_failure(registry, path, &error);
    return SJ_ENOTFOUND;
}

static sj_registry_container *find_container(sj_registry *registry,
                                             const sj_link_container *container, const char *path)
{
    for (size_t i = 0; i < registry->container_count; i++) {
        sj_registry_container *known = &registry->containers[i];
        const sj_registry_module *module = &registry->modules[known->module - 1];
        if (known->language == container->language &&
            module->build_id_bytes == container->id_bytes &&
            memcmp(module->build_id, container->id, container->id_bytes) == 0 &&
            strcmp(module->path, path) == 0) {
            return known;
        }
    }
    return NULL;
}

/* Returns a bit per function: 1 if it is wanted. */
static uint8_t *make_bits(const container_draft *draft)
{
    uint8_t *bits = calloc(1, (draft->count + 7) / 8);
    for (size_t i = 0; bits != NULL && i < draft->count; i++) {
        const unsigned bit = draft->functions[i].skip == SJ_SKIP_NONE ? 1U : 0U;
        bits[i / 8] = (uint8_t)(bits[i / 8] | bit << (i % 8));
    }
    return bits;
}

static sj_status make_group(const sj_link_container *container, const container_draft *draft,
                            sj_plan_header **group)
{
    const size_t functions_bytes = draft->count * sizeof(*draft->functions);
    const size_t size = sizeof(**group) + functions_bytes + draft->strings_bytes;
    if (size > UINT32_MAX) {
        return SJ_ELIMIT;
    }
    uint8_t *bytes = calloc(1, size);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_plan_header *header = (sj_plan_header *)(void *)bytes;
    *header = (sj_plan_header){.magic = SJ_PLAN_MAGIC,
                               .version = SJ_PLAN_VERSION,
                               .machine = sj_method_group_machine(),
                               .file_bytes = (uint32_t)size,
                               .build_id_bytes = (uint8_t)container->id_bytes,
                               .function_count = (uint32_t)draft->count,
                               .functions_offset = sizeof(*header),
                               .strings_bytes = (uint32_t)draft->strings_bytes,
                               .strings_offset = (uint32_t)(sizeof(*header) + functions_bytes)};
    memcpy(header->build_id, container->id, container->id_bytes);
    memcpy(bytes + header->functions_offset, draft->functions, functions_bytes);
    memcpy(bytes + header->strings_offset, draft->strings, draft->strings_bytes);
    *group = header;
    return SJ_OK;
}

static void count_container(sj_registry *registry, const container_draft *draft,
                            uint32_t first_function, sj_link_language language)
{
    registry->counters.modules++;
    registry->counters.functions += draft->count;
    for (size_t i = 0; i < draft->count; i++) {
        const sj_plan_function *function = &draft->functions[i];
        const bool is_wanted = function->skip == SJ_SKIP_NONE;
        registry->counters.hooked += is_wanted;
        registry->counters.filtered += function->skip == SJ_SKIP_FILTERED;
        registry->counters.skips[function->skip] += !is_wanted;
        if (registry->options.rules != NULL) {
            sj_function_rules_name_method(registry->options.rules, first_function + (uint32_t)i,
                                          draft->strings + function->name,
                                          is_wanted ? language : SJ_LINK_LANGUAGE_OBJC);
        }
    }
}

/* Adds a module for a container that was read. The caller holds the mutex. */
static sj_status add_module(sj_registry *registry, const sj_registry_mapping *mapping,
                            const sj_link_container *container, const char *path,
                            container_draft *draft)
{
    sj_plan_header *group = NULL;
    uint32_t first_function = 0;
    SJ_TRY(sj_array_reserve(&registry->containers, &registry->container_capacity,
                            registry->container_count, 1, sizeof(*registry->containers)));
    uint8_t *wanted = make_bits(draft);
    sj_source_lines *lines = NULL;
    sj_status status = wanted != NULL ? make_group(container, draft, &group) : SJ_ENOMEM;
    if (status == SJ_OK) {
        status = sj_registry_add_group(registry, mapping, group, path, &first_function);
    }
    if (status == SJ_OK) {
        status = keep_own_values(draft, first_function);
    }
    free(group);
    if (status == SJ_OK) {
        status = sj_registry_read_lines(registry, container, path, mapping->loaded_ticks, &lines);
    }
    if (status != SJ_OK) {
        free(wanted);
        return status;
    }
    count_container(registry, draft, first_function, (sj_link_language)container->language);
    registry->containers[registry->container_count++] =
        (sj_registry_container){.language = container->language,
                                .is_main = container->is_main != 0,
                                .module = (uint32_t)registry->module_count,
                                .wanted = wanted,
                                .values = draft->values,
                                .value_count = (uint32_t)draft->value_count,
                                .lines = lines};
    draft->values = NULL;
    return SJ_OK;
}

/* Replaces the marks and values of a container. Sends its functions again if marks changed. */
static sj_status replace_marks(sj_registry *registry, const sj_link_container *container,
                               sj_registry_container *known, container_draft *draft)
{
    const sj_registry_module *module = &registry->modules[known->module - 1];
    sj_plan_header *group = NULL;
    uint8_t *wanted = make_bits(draft);
    sj_status status = wanted != NULL ? make_group(container, draft, &group) : SJ_ENOMEM;
    if (status == SJ_OK && memcmp(wanted, known->wanted, (draft->count + 7) / 8) != 0) {
        status = sj_module_frames_send(registry->options.writer, group, module->path, known->module,
                                       module->first_function);
    }
    free(group);
    if (status == SJ_OK) {
        status = keep_own_values(draft, module->first_function);
    }
    if (status != SJ_OK) {
        free(wanted);
        return status;
    }
    free(known->wanted);
    free(known->values);
    known->wanted = wanted;
    known->values = draft->values;
    known->value_count = (uint32_t)draft->value_count;
    draft->values = NULL;
    return SJ_OK;
}

static void leave_out_all(container_draft *draft)
{
    for (size_t i = 0; i < draft->count; i++) {
        sj_plan_function *function = &draft->functions[i];
        if (function->skip == SJ_SKIP_NONE) {
            function->skip = SJ_SKIP_FILTERED;
            function->technique = SJ_TECHNIQUE_NONE;
        }
    }
}

static void set_states(const sj_registry *registry, const sj_registry_container *known,
                       const container_draft *draft, sj_function_rules *rules, uint8_t *states)
{
    const uint32_t first = registry->modules[known->module - 1].first_function;
    for (uint32_t i = 0; i < draft->count; i++) {
        const bool is_wanted = draft->functions[i].skip == SJ_SKIP_NONE;
        states[first + i] = is_wanted ? SJ_FUNCTION_MANAGED : SJ_FUNCTION_MANAGED_UNWANTED;
        if (rules != NULL) {
            sj_function_rules_name_method(
                rules, first + i, draft->strings + draft->functions[i].name,
                is_wanted ? (sj_link_language)known->language : SJ_LINK_LANGUAGE_OBJC);
        }
    }
}

sj_status sj_registry_select_container(sj_registry *registry, size_t place,
                                       const sj_selection *selection, sj_function_rules *rules,
                                       uint8_t *states)
{
    sj_registry_container *known = &registry->containers[place];
    const sj_registry_module *module = &registry->modules[known->module - 1];
    sj_link_container container = {
        .language = known->language, .is_main = known->is_main, .id_bytes = module->build_id_bytes};
    container_draft draft = {.selection = selection, .is_known = true};
    memcpy(container.id, module->build_id, module->build_id_bytes);
    if (rules != NULL) {
        sj_function_rules_module(rules, module->path);
    }
    sj_status status = read_methods(registry, &container, module->path, &draft);
    /* a system container: it is read only to mark its methods as unwanted */
    if (status == SJ_EUNSUPPORTED) {
        free_draft(&draft);
        draft = (container_draft){.selection = NULL};
        status = read_methods(registry, &container, module->path, &draft);
        leave_out_all(&draft);
    }
    if (status == SJ_OK && !sj_selection_wants_module(selection, module->path, known->is_main)) {
        leave_out_all(&draft);
    }
    if (status == SJ_OK && draft.count == module->function_count) {
        status = replace_marks(registry, &container, known, &draft);
        if (status == SJ_OK) {
            set_states(registry, known, &draft, rules, states);
        }
    } else if (status != SJ_ENOMEM) {
        status = SJ_OK;
    }
    free_draft(&draft);
    return status;
}

static sj_status reply_known(const sj_registry *registry, const sj_registry_container *known,
                             sj_container_reply *reply)
{
    const sj_registry_module *module = &registry->modules[known->module - 1];
    const size_t bytes = (module->function_count + 7) / 8;
    reply->first_function = module->first_function;
    reply->count = module->function_count;
    reply->values = known->values;
    reply->value_count = known->value_count;
    reply->has_lines = known->lines != NULL;
    reply->wanted = malloc(bytes);
    if (reply->wanted == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(reply->wanted, known->wanted, bytes);
    return SJ_OK;
}

static sj_status add_locked(sj_registry *registry, const sj_link_container *container,
                            const char *path, const sj_registry_mapping *mapping,
                            sj_container_reply *reply)
{
    const sj_registry_container *known = find_container(registry, container, path);
    if (known == NULL) {
        container_draft draft = {.selection = registry->options.selection};
        sj_status status = read_new(registry, container, path, &draft);
        if (status == SJ_OK) {
            status = add_module(registry, mapping, container, path, &draft);
        }
        free_draft(&draft);
        SJ_TRY(status);
        return reply_known(registry, &registry->containers[registry->container_count - 1], reply);
    }
    sj_registry_mapping mapped_again = *mapping;
    mapped_again.module = known->module;
    SJ_TRY(sj_registry_add_mapping(registry, &mapped_again));
    return reply_known(registry, known, reply);
}

sj_status sj_registry_add_container(sj_registry *registry, uint64_t process,
                                    const sj_link_container *container, const char *path,
                                    uint64_t now_ticks, sj_container_reply *reply)
{
    const sj_registry_mapping mapping = {.process = process, .loaded_ticks = now_ticks};
    sj_status status = SJ_EUNSUPPORTED;
    pthread_mutex_lock(&registry->mutex);
    if (registry->options.rules != NULL) {
        sj_function_rules_module(registry->options.rules, path);
    }
    if (sj_selection_wants_module(registry->options.selection, path, container->is_main != 0)) {
        status = add_locked(registry, container, path, &mapping, reply);
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}
