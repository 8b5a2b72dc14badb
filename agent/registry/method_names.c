#include "agent/registry/method_names.h"

#include "agent/planner/planner.h"
#include "proto/base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_module(sj_named_methods *module)
{
    for (uint32_t i = 0; module->names != NULL && i < module->count; i++) {
        free(module->names[i]);
    }
    free(module->names);
}

void sj_method_names_deinit(sj_method_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free_module(&names->modules[i]);
    }
    free(names->modules);
    *names = (sj_method_names){0};
}

sj_status sj_method_names_add(sj_method_names *names, const sj_plan_header *plan,
                              uint32_t first_function)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    sj_named_methods module = {.first_function = first_function, .count = plan->function_count};
    SJ_TRY(sj_array_reserve(&names->modules, &names->capacity, names->count, 1, sizeof(module)));
    module.names = calloc(plan->function_count + 1, sizeof(*module.names));
    for (uint32_t i = 0; i < module.count && module.names != NULL; i++) {
        if (functions[i].receiver != 0 && functions[i].technique != SJ_TECHNIQUE_NONE) {
            module.names[i] = strdup(sj_plan_string(plan, functions[i].name));
            if (module.names[i] == NULL) {
                free_module(&module);
                return SJ_ENOMEM;
            }
        }
    }
    if (module.names == NULL) {
        return SJ_ENOMEM;
    }
    names->modules[names->count++] = module;
    return SJ_OK;
}

const char *sj_method_names_get(const sj_method_names *names, uint32_t function)
{
    for (size_t i = 0; i < names->count; i++) {
        const sj_named_methods *module = &names->modules[i];
        if (function - module->first_function < module->count) {
            return module->names[function - module->first_function];
        }
    }
    return NULL;
}

size_t sj_method_name_for(const char *method, const char *class, bool is_meta, char *name,
                          size_t capacity)
{
    const char kind = is_meta ? '+' : '-';
    const char *owner = method + 2; /* after -[ */
    const size_t owner_bytes = strcspn(owner, "( ");
    if (kind == method[0] && strlen(class) == owner_bytes &&
        memcmp(owner, class, owner_bytes) == 0) {
        return 0;
    }
    const int bytes = snprintf(name, capacity, "%c[%s:%s", kind, class, owner);
    return bytes > 0 && (size_t)bytes < capacity ? (size_t)bytes + 1 : 0;
}
