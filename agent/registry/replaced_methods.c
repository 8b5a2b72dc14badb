#include "agent/registry/replaced_methods.h"

#include "proto/base/array.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void free_texts(sj_replaced_method *method)
{
    free(method->name);
    free(method->shown);
    free(method->own);
}

void sj_replaced_methods_deinit(sj_replaced_methods *methods)
{
    for (size_t i = 0; i < methods->count; i++) {
        free_texts(&methods->items[i]);
    }
    free(methods->items);
    *methods = (sj_replaced_methods){0};
}

static sj_replaced_method *find_method(const sj_replaced_methods *methods, uint64_t process,
                                       const char *name)
{
    for (size_t i = 0; i < methods->count; i++) {
        if (methods->items[i].process == process && strcmp(methods->items[i].name, name) == 0) {
            return &methods->items[i];
        }
    }
    return NULL;
}

/* Returns the name of the method for which the code was made, without its category: +[Class
 * selector]. Returns "" if it was made for no method, NULL if out of memory. */
static char *dup_own(const char *own)
{
    if ((own[0] != '-' && own[0] != '+') || own[1] != '[') {
        return strdup("");
    }
    char *copy = strdup(own);
    char *category = copy != NULL ? copy + strcspn(copy, "( ") : NULL;
    const char *end = category != NULL && *category == '(' ? strchr(category, ')') : NULL;
    if (end != NULL) {
        memmove(category, end + 1, strlen(end + 1) + 1);
    }
    return copy;
}

sj_status sj_replaced_methods_set(sj_replaced_methods *methods, const sj_replaced_method *given,
                                  uint32_t *before)
{
    sj_replaced_method *method = find_method(methods, given->process, given->name);
    *before = method != NULL ? method->function : 0;
    if (method == NULL && methods->count == SJ_REPLACED_METHODS) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&methods->items, &methods->capacity, methods->count, 1,
                            sizeof(*methods->items)));
    sj_replaced_method made = {.process = given->process,
                               .function = given->function,
                               .name = strdup(given->name),
                               .shown = strdup(given->shown),
                               .own = dup_own(given->own)};
    if (made.name == NULL || made.shown == NULL || made.own == NULL) {
        free_texts(&made);
        return SJ_ENOMEM;
    }
    method = find_method(methods, given->process, given->name); /* its index may have changed */
    if (method != NULL) {
        free_texts(method);
        *method = made;
    } else {
        methods->items[methods->count++] = made;
    }
    return SJ_OK;
}

const char *sj_replaced_methods_name(const sj_replaced_methods *methods, uint64_t process,
                                     uint32_t function)
{
    const sj_replaced_method *only = NULL;
    for (size_t i = 0; i < methods->count; i++) {
        const sj_replaced_method *method = &methods->items[i];
        if (method->process != process || method->function != function || function == 0) {
            continue;
        }
        if (only != NULL) {
            return NULL;
        }
        only = method;
    }
    if (only == NULL || strcmp(only->own, only->name) == 0) {
        return NULL;
    }
    /* The method for which the code was made still has it, unless its code was replaced, too. */
    const bool is_shared = only->own[0] != '\0' && find_method(methods, process, only->own) == NULL;
    return is_shared ? NULL : only->shown;
}
