#include "agent/registry/module_plan.h"

#include "agent/objfile/source_map.h"

/* What decides on the functions of one module. */
typedef struct function_choice {
    const sj_selection *selection;
    sj_function_rules *rules;
    sj_source_map *sources; /* NULL: not asked for */
    bool wants_module;
    uint64_t imports_from; /* offset: slots of imports lie behind the text */
} function_choice;

static bool wants_function(void *context, const char *name, uint64_t offset, uint32_t size_bytes)
{
    const function_choice *choice = context;
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
    return sj_selection_wants_function((void *)(uintptr_t)choice->selection, name, offset,
                                       size_bytes);
}

static void list_values(void *context, const char *name,
                        uint8_t descriptors[SJ_VALUES_PER_FUNCTION])
{
    const function_choice *choice = context;
    const sj_value_rules *rules = choice->selection->values;
    sj_value_rules_list(rules, sj_value_rules_match(rules, name), descriptors);
}

static sj_status begin_choice(const sj_module_plan_options *options, bool wants_module,
                              function_choice *choice)
{
    *choice = (function_choice){.selection = options->selection,
                                .rules = options->rules,
                                .wants_module = wants_module,
                                .imports_from = UINT64_MAX};
    return wants_module && sj_selection_has_sources(options->selection)
               ? sj_source_map_new(options->path, &choice->sources)
               : SJ_OK;
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
    };
    const sj_status status = sj_plan_make(&planner, plan, error);
    sj_source_map_free(choice.sources);
    return status;
}

sj_status sj_module_plan_select(const sj_module_plan_options *options, bool wants_module,
                                sj_plan *plan, bool *changed)
{
    function_choice choice;
    SJ_TRY(begin_choice(options, wants_module, &choice));
    choice.imports_from = plan->header->text_high;
    const sj_status status = sj_plan_select(plan, wants_function, &choice, changed);
    sj_source_map_free(choice.sources);
    return status;
}
