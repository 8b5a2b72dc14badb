/* Method categories: which methods of a session's modules a category defines, by their code. A
 * dispatcher knows a method's class, not its category. Not thread-safe. */
#ifndef SJ_AGENT_REGISTRY_METHOD_CATEGORIES_H
#define SJ_AGENT_REGISTRY_METHOD_CATEGORIES_H

#include "agent/abi/plan.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_method_category {
    uint64_t offset; /* of the code, in its module */
    uint32_t module; /* number */
    char *name;      /* with its parentheses; owned */
} sj_method_category;

/* Zeroed is empty. */
typedef struct sj_method_categories {
    sj_method_category *items; /* by rising module */
    size_t count;
    size_t capacity;
} sj_method_categories;

void sj_method_categories_deinit(sj_method_categories *categories);

/* sj_method_categories_add takes those of a module, which is numbered higher than those before.
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_method_categories_add(sj_method_categories *categories,
                                                 const sj_plan_header *plan, uint32_t module);

/* sj_method_categories_find gives the category of the code at an offset of a module, as
 * "(Category)", or NULL. */
const char *sj_method_categories_find(const sj_method_categories *categories, uint32_t module,
                                      uint64_t offset);

/* sj_method_name_in writes the name of a method of a class with its category:
 * -[Class(Category) selector], -[Receiver:Owner(Category) selector]. Returns its bytes with the
 * NUL; 0 when it does not fit, or has none. */
size_t sj_method_name_in(const char *method, const char *category, char *name, size_t capacity);

#endif
