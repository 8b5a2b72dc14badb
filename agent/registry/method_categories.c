#include "agent/registry/method_categories.h"

#include "proto/base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sj_method_categories_deinit(sj_method_categories *categories)
{
    for (size_t i = 0; i < categories->count; i++) {
        free(categories->items[i].name);
    }
    free(categories->items);
    *categories = (sj_method_categories){0};
}

/* Finds the category in a name like -[Class(Category) selector]. Returns its length in bytes; 0:
 * none. */
static size_t find_category(const char *method, const char **category)
{
    if ((method[0] != '-' && method[0] != '+') || method[1] != '[') {
        return 0;
    }
    *category = method + strcspn(method, "( ");
    const char *end = strchr(*category, ')');
    return **category == '(' && end != NULL ? (size_t)(end - *category) + 1 : 0;
}

static int compare_categories(const void *left, const void *right)
{
    const sj_method_category *a = left;
    const sj_method_category *b = right;
    if (a->module != b->module) {
        return a->module < b->module ? -1 : 1;
    }
    return (a->offset > b->offset) - (a->offset < b->offset);
}

sj_status sj_method_categories_add(sj_method_categories *categories, const sj_plan_header *plan,
                                   uint32_t module)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    const size_t first = categories->count;
    for (uint32_t i = 0; i < plan->function_count; i++) {
        const char *text = NULL;
        const size_t bytes = functions[i].source == SJ_SYMBOL_RUNTIME
                                 ? find_category(sj_plan_string(plan, functions[i].name), &text)
                                 : 0;
        if (bytes == 0) {
            continue;
        }
        SJ_TRY(sj_array_reserve(&categories->items, &categories->capacity, categories->count, 1,
                                sizeof(*categories->items)));
        char *name = strndup(text, bytes);
        if (name == NULL) {
            return SJ_ENOMEM;
        }
        categories->items[categories->count++] =
            (sj_method_category){.offset = functions[i].offset, .module = module, .name = name};
    }
    if (categories->count != first) {
        qsort(categories->items + first, categories->count - first, sizeof(*categories->items),
              compare_categories);
    }
    return SJ_OK;
}

const char *sj_method_categories_find(const sj_method_categories *categories, uint32_t module,
                                      uint64_t offset)
{
    const sj_method_category key = {.offset = offset, .module = module};
    const sj_method_category *found = categories->count != 0
                                          ? bsearch(&key, categories->items, categories->count,
                                                    sizeof(*categories->items), compare_categories)
                                          : NULL;
    return found != NULL ? found->name : NULL;
}

size_t sj_method_name_in(const char *method, const char *category, char *name, size_t capacity)
{
    const char *space = strchr(method, ' ');
    if (space == NULL) {
        return 0;
    }
    const int bytes =
        snprintf(name, capacity, "%.*s%s%s", (int)(space - method), method, category, space);
    return bytes > 0 && (size_t)bytes < capacity ? (size_t)bytes + 1 : 0;
}
