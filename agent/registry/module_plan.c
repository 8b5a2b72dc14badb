#include "agent/registry/module_plan.h"

#include "agent/objfile/source_map.h"
#include "agent/registry/library_types.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY_BYTES = 128, IMPORT_BYTES = 4096 };

/* Selects the functions of one module. */
typedef struct function_choice {
    const sj_selection *selection;
    sj_function_rules *rules;
    sj_source_map *sources; /* NULL: not asked for */
    const char *path;
    sj_function_types *types;    /* read when a function needs them; NULL: not yet */
    sj_library_types *libraries; /* read when an import needs them; NULL: not yet */
    pid_t pid;
    sj_found_types *found;
    bool wants_module;
    /* functions from this offset on are slots of imports, which lie after the text */
    uint64_t imports_from;
    bool has_results;            /* rules may ask for results of calls into the module */
    sj_exported_names exported;  /* if has_results: the names of its functions in other modules */
    char library[LIBRARY_BYTES]; /* if has_results: the module's own name; "": none */
    sj_function_keys keys;
} function_choice;

void sj_module_keys_init(sj_function_keys *keys, const char *path)
{
    sj_elf elf;
    if (sj_elf_open(path, &elf, NULL) != SJ_OK) {
        sj_function_keys_init(keys, path, NULL, 0);
        return;
    }
    const sj_slice id = sj_elf_build_id(&elf);
    sj_function_keys_init(keys, path, id.data, id.size);
    sj_elf_close(&elf);
}

const char *sj_module_key(sj_function_keys *keys, const sj_plan_header *plan, uint32_t index)
{
    const sj_plan_function *function = &sj_plan_functions(plan)[index];
    const char *name = sj_plan_string(plan, function->name);
    return function->offset < plan->text_high ? sj_function_key(keys, name, function->offset)
                                              : name; /* an import */
}

/* Returns the key of a function, and only the name of an import. */
static const char *key_of(function_choice *choice, const char *name, uint64_t offset)
{
    return strchr(name, '!') == NULL ? sj_function_key(&choice->keys, name, offset) : name;
}

static bool wants_function(void *context, const char *name, uint64_t offset, uint32_t size_bytes)
{
    function_choice *choice = context;
    const bool is_import = offset >= choice->imports_from;
    if (!choice->wants_module || (is_import && !choice->selection->library_calls)) {
        return false;
    }
    if (choice->sources != NULL) {
        const char *file = sj_source_map_find(choice->sources, offset);
        if (choice->rules != NULL && file != NULL) {
            sj_function_rules_source(choice->rules, file);
        }
        if (!sj_selection_wants_source(choice->selection, file)) {
            return false;
        }
    }
    return sj_selection_wants_function((void *)(uintptr_t)choice->selection,
                                       key_of(choice, name, offset), offset, size_bytes);
}

/* Finds the types of a function in the debug data of the module, or of the library that it is
 * imported from. */
static sj_status find_types(function_choice *choice, const char *name, uint64_t offset,
                            sj_typed_function **typed)
{
    if (strchr(name, '!') == NULL) {
        SJ_TRY(choice->types == NULL ? sj_function_types_new(choice->path, &choice->types) : SJ_OK);
        return sj_function_types_find(choice->types, offset, name, typed);
    }
    SJ_TRY(choice->libraries == NULL
               ? sj_library_types_new(choice->pid, choice->path, &choice->libraries)
               : SJ_OK);
    return sj_library_types_find(choice->libraries, name, typed);
}

/* Notes the types of a function and lists the places of its values. Sets `*complete` to false if
 * some values have no place. */
static sj_status note_types(function_choice *choice, const char *name, uint64_t offset,
                            uint8_t limit, uint8_t places[SJ_PLACES_PER_FUNCTION], bool *complete)
{
    sj_found_types *found = choice->found;
    sj_typed_function *typed = NULL;
    SJ_TRY(
        sj_array_reserve(&found->items, &found->capacity, found->count, 1, sizeof(*found->items)));
    SJ_TRY(find_types(choice, name, offset, &typed));
    *complete = sj_typed_function_list(typed, limit, places);
    found->items[found->count].offset = offset;
    found->items[found->count++].typed = typed;
    return SJ_OK;
}

/* Returns the highest limit on texts among the rules. */
static uint8_t longest_texts(const sj_value_rules *rules, const sj_rule_set *matched_rules)
{
    uint8_t limit = 0;
    SJ_EACH_RULE (i, matched_rules) {
        limit = rules->items[i].limit > limit ? rules->items[i].limit : limit;
    }
    return limit;
}

static size_t count_used(const uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    const uint8_t *end = memchr(places, 0, SJ_PLACES_PER_FUNCTION);
    return end != NULL ? (size_t)(end - places) : SJ_PLACES_PER_FUNCTION;
}

/* Lists the types of a function that typed rules name. Counts for these rules whether types were
 * found. */
static sj_status list_types(function_choice *choice, const char *name, uint64_t offset,
                            const sj_rule_set *typed, uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    sj_value_rules *rules = choice->selection->values;
    bool complete = true;
    if (choice->found == NULL || sj_rule_set_is_empty(typed)) {
        return SJ_OK;
    }
    const sj_status status =
        note_types(choice, name, offset, longest_texts(rules, typed), places, &complete);
    if (status != SJ_OK && status != SJ_ENOTFOUND && status != SJ_EUNSUPPORTED) {
        return status;
    }
    /* a .cold function is a part of another one */
    if (status == SJ_OK || strstr(name, ".cold") == NULL) {
        const sj_split_state split =
            choice->types != NULL ? sj_function_types_split(choice->types) : SJ_SPLIT_COMPLETE;
        sj_value_rules_count_types(rules, typed, status == SJ_OK, split);
    }
    if (!complete) {
        sj_value_rules_count_crowded_types(rules, typed);
    }
    return SJ_OK;
}

/* Adds the places of the costs to measure for a function's calls, while there are free places.
 * Returns the number of places used. */
static size_t list_costs(const sj_value_rules *rules, const sj_rule_set *matched_rules,
                         uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    size_t used = count_used(places);
    const struct {
        bool is_asked;
        uint8_t place;
    } costs[] = {{sj_value_rules_measure_cpu(rules, matched_rules), SJ_PLACE_CPU_ENTRY},
                 {sj_value_rules_measure_memory(rules, matched_rules), SJ_PLACE_MEMORY_ENTRY}};
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        if (costs[i].is_asked && used < SJ_PLACES_PER_FUNCTION &&
            !sj_value_places_have(places, costs[i].place)) {
            places[used++] = costs[i].place;
        }
    }
    return used;
}

static sj_rule_set late_rules_of(const sj_value_rules *rules, const sj_rule_set *matched)
{
    sj_rule_set late = {0};
    SJ_EACH_RULE (i, matched) {
        if (rules->items[i].came_late) {
            sj_rule_set_add(&late, i);
        }
    }
    return late;
}

static sj_status list_typed_result(function_choice *choice, const char *name, uint64_t offset,
                                   uint8_t limit, uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    sj_typed_function *typed = NULL;
    const sj_status status = find_types(choice, name, offset, &typed);
    if (status == SJ_OK) {
        (void)sj_typed_function_list_result(typed, limit, places);
        sj_typed_function_free(typed);
    }
    return status == SJ_ENOTFOUND || status == SJ_EUNSUPPORTED ? SJ_OK : status;
}

/* Returns the rules about calls of a function by one of its names. */
static sj_rule_set match_import(const function_choice *choice, const char *name)
{
    char import[IMPORT_BYTES];
    const int length = snprintf(import, sizeof(import), "%s!%s", choice->library, name);
    return length < IMPORT_BYTES ? sj_value_rules_match(choice->selection->values, import)
                                 : (sj_rule_set){0};
}

/* Returns the rules about calls of a function by all names under which other modules know it. */
static sj_rule_set match_imports(const function_choice *choice, const char *name, uint64_t offset)
{
    const sj_exported_names *exported = &choice->exported;
    sj_rule_set matched = match_import(choice, name);
    for (size_t i = sj_exported_names_find(exported, offset);
         i < exported->count && exported->items[i].address == offset; i++) {
        const sj_rule_set matched_rules = match_import(choice, exported->items[i].name);
        sj_rule_set_add_all(&matched, &matched_rules);
    }
    return matched;
}

/* Adds the results that rules about calls into the module ask for, as values of the function's own
 * exit. A call through a module's slot is recorded as ended when the function is entered, so only
 * the function's probe knows the result. `is_late`: only for rules that came late. */
static sj_status list_results(function_choice *choice, const char *name, uint64_t offset,
                              bool is_late, uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    sj_value_rules *rules = choice->selection->values;
    if (!choice->has_results || strchr(name, '!') != NULL) {
        return SJ_OK;
    }
    const sj_rule_set all = match_imports(choice, name, offset);
    const sj_rule_set matched = is_late ? late_rules_of(rules, &all) : all;
    const sj_rule_set fresh = is_late ? sj_value_rules_fresh_of(rules, &matched) : matched;
    const sj_rule_set results = sj_value_rules_results_of(rules, &matched);
    const sj_rule_set typed = sj_value_rules_typed_of(rules, &fresh, name);
    if (choice->found != NULL && choice->library[0] != '\0' && choice->wants_module &&
        sj_selection_wants_method(choice->selection, key_of(choice, name, offset))) {
        sj_value_rules_count_unreached(rules, &fresh);
    }
    if (choice->found != NULL && !sj_rule_set_is_empty(&typed)) {
        SJ_TRY(list_typed_result(choice, name, offset, longest_texts(rules, &typed), places));
    }
    sj_value_rules_list(rules, &results, places, count_used(places), SJ_PLACES_PER_FUNCTION);
    return SJ_OK;
}

static sj_status list_values(void *context, const char *name, uint64_t offset,
                             uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    function_choice *choice = context;
    sj_value_rules *rules = choice->selection->values;
    const sj_rule_set matched = sj_value_rules_match(rules, key_of(choice, name, offset));
    const sj_rule_set typed = sj_value_rules_typed_of(rules, &matched, name);
    memset(places, 0, SJ_PLACES_PER_FUNCTION);
    SJ_TRY(list_types(choice, name, offset, &typed, places));
    const size_t used = list_costs(rules, &matched, places);
    sj_value_rules_list(rules, &matched, places, used, SJ_PLACES_PER_FUNCTION);
    if (choice->found != NULL) { /* else this plan records nothing */
        sj_value_rules_count_crowded(rules, &matched, places);
    }
    return list_results(choice, name, offset, false, places);
}

/* Like list_types, for rules that came late. A position has one meaning in a whole recording. So if
 * values were recorded by number, the names of parameters in debug data are not used. */
static sj_status list_late_types(function_choice *choice, const char *name, uint64_t offset,
                                 const sj_rule_set *matched, const sj_rule_set *typed,
                                 uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    sj_value_rules *rules = choice->selection->values;
    if (sj_value_rules_are_numbered(rules, matched)) {
        sj_value_rules_count_settled(rules, typed);
        return SJ_OK;
    }
    return list_types(choice, name, offset, typed, places);
}

/* Adds the values that late rules ask for to the places that a function has. */
static sj_status list_late_values(void *context, const char *name, uint64_t offset,
                                  uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    function_choice *choice = context;
    sj_value_rules *rules = choice->selection->values;
    const sj_rule_set matched = sj_value_rules_match(rules, key_of(choice, name, offset));
    const sj_rule_set late = late_rules_of(rules, &matched);
    const sj_rule_set fresh = sj_value_rules_fresh_of(rules, &late);
    const sj_rule_set typed = sj_value_rules_typed_of(rules, &fresh, name);
    SJ_TRY(list_late_types(choice, name, offset, &matched, &typed, places));
    size_t used = list_costs(rules, &late, places);
    sj_value_rules_list(rules, &late, places, used, SJ_PLACES_PER_FUNCTION);
    sj_value_rules_count_crowded(rules, &fresh, places);
    return list_results(choice, name, offset, true, places);
}

sj_typed_function *sj_found_types_pop(sj_found_types *types, uint64_t offset)
{
    /* a plan's functions are ordered by offset */
    const size_t low = SJ_BISECT(0, types->count, i, types->items[i].offset < offset);
    if (low == types->count || types->items[low].offset != offset) {
        return NULL;
    }
    sj_typed_function *typed = types->items[low].typed;
    types->items[low].typed = NULL;
    return typed;
}

void sj_found_types_deinit(sj_found_types *types)
{
    for (size_t i = 0; i < types->count; i++) {
        sj_typed_function_free(types->items[i].typed);
    }
    free(types->items);
    *types = (sj_found_types){0};
}

/* Prepares to record results of the module's own functions, if rules about library calls may ask
 * for them. */
static sj_status begin_results(function_choice *choice)
{
    choice->has_results =
        choice->selection->library_calls && sj_value_rules_name_imports(choice->selection->values);
    if (!choice->has_results) {
        return SJ_OK;
    }
    sj_library_name(choice->path, choice->library, sizeof(choice->library));
    return sj_exported_names_read(choice->path, &choice->exported);
}

static void end_choice(function_choice *choice)
{
    sj_exported_names_deinit(&choice->exported);
    sj_function_types_free(choice->types);
    sj_library_types_free(choice->libraries);
    sj_source_map_free(choice->sources);
}

static sj_status begin_choice(const sj_module_plan_options *options, bool wants_module,
                              function_choice *choice)
{
    *choice = (function_choice){.selection = options->selection,
                                .rules = options->rules,
                                .path = options->path,
                                .found = options->types,
                                .pid = options->pid,
                                .wants_module = wants_module,
                                .imports_from = UINT64_MAX};
    sj_module_keys_init(&choice->keys, options->path);
    sj_status status = begin_results(choice);
    if (status == SJ_OK && wants_module && sj_selection_has_sources(options->selection)) {
        status = sj_source_map_new(options->path, &choice->sources);
    }
    if (status != SJ_OK) {
        end_choice(choice);
    }
    return status;
}

sj_status sj_module_plan_make(const sj_module_plan_options *options, sj_plan *plan, sj_error *error)
{
    const sj_selection *selection = options->selection;
    function_choice choice;
    if (begin_choice(options, true, &choice) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_planner_options planner = {
        .module_path = options->path,
        .map_file = options->is_main ? selection->map_file : NULL,
        .cache_directory = options->cache_directory,
        .wanted = wants_function,
        .with_receivers = sj_selection_has_receivers(selection),
        .values = selection->values != NULL ? list_values : NULL,
        .context = &choice,
        .library_calls = selection->library_calls,
        .only_imports = options->only_imports,
        .threads = options->threads,
    };
    const sj_status status = sj_plan_make(&planner, plan, error);
    end_choice(&choice);
    return status;
}

sj_status sj_module_plan_select(const sj_module_plan_options *options, bool wants_module,
                                sj_plan *plan, bool *changed)
{
    function_choice choice;
    SJ_TRY(begin_choice(options, wants_module, &choice));
    choice.imports_from = plan->header->text_high;
    const sj_status status = sj_plan_select(plan, wants_function, &choice, changed);
    end_choice(&choice);
    return status;
}

/* Marks functions that newly added rules name as callers. The agent learns their addresses from a
 * plan, whether or not they are hooked. */
static void mark_callers(const sj_value_rules *rules, const sj_plan_header *plan,
                         sj_function_keys *keys, uint8_t *marks, uint32_t *count)
{
    for (uint32_t i = 0; i < plan->function_count; i++) {
        const sj_rule_set named = sj_value_rules_called_from(rules, sj_module_key(keys, plan, i));
        bool is_fresh = false;
        SJ_EACH_RULE (j, &named) {
            is_fresh = is_fresh || (rules->items[j].is_fresh && rules->items[j].changes);
        }
        *count += is_fresh && marks[i] == 0;
        marks[i] |= is_fresh ? SJ_RENEWAL_CALLER : SJ_RENEWAL_NONE;
    }
}

static bool have_come_late(const sj_value_rules *rules)
{
    return rules != NULL && rules->count != 0 && rules->items[rules->count - 1].came_late;
}

sj_status sj_module_plan_add_values(const sj_module_plan_options *options, bool wants_module,
                                    sj_plan *plan, uint8_t *marks, uint32_t *count)
{
    function_choice choice = {.selection = options->selection,
                              .path = options->path,
                              .found = options->types,
                              .pid = options->pid,
                              .wants_module = wants_module};
    *count = 0;
    if (!have_come_late(options->selection->values)) {
        return SJ_OK;
    }
    sj_module_keys_init(&choice.keys, options->path);
    sj_status status = begin_results(&choice);
    if (status == SJ_OK) {
        status = sj_plan_add_values(plan, list_late_values, &choice, marks, count);
    }
    end_choice(&choice);
    SJ_TRY(status);
    mark_callers(options->selection->values, plan->header, &choice.keys, marks, count);
    return SJ_OK;
}
