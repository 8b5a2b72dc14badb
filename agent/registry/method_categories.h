/* Stores which Objective-C category defines a method, by the address of the method's code. A
 * message dispatcher knows a method's class but not its category. Not thread-safe. */
#ifndef SJ_AGENT_REGISTRY_METHOD_CATEGORIES_H
#define SJ_AGENT_REGISTRY_METHOD_CATEGORIES_H

#include "agent/abi/plan.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_method_category {
    uint64_t offset; /* offset of the code in its module */
    uint32_t module; /* number of the module */
    char *name;      /* with its parentheses; owned */
} sj_method_category;

/* Zeroed means empty. */
typedef struct sj_method_categories {
    sj_method_category *items; /* ordered by module */
    size_t count;
    size_t capacity;
} sj_method_categories;

void sj_method_categories_deinit(sj_method_categories *categories);

/* Adds the categories of a module. Module numbers must ascend. Returns SJ_ENOMEM if out of memory.
 */
SJ_MUST_CHECK sj_status sj_method_categories_add(sj_method_categories *categories,
                                                 const sj_plan_header *plan, uint32_t module);

/* Returns the category of the code at an offset of a module, as "(Category)", or NULL. */
const char *sj_method_categories_find(const sj_method_categories *categories, uint32_t module,
                                      uint64_t offset);

/* Writes the name of a method with its category: -[Class(Category) selector] or
 * -[Receiver:Owner(Category) selector]. `method` is the same name without the category. Returns the
 * size in bytes with the NUL. Returns 0 if the name does not fit or `method` does not have this
 * form. */
size_t sj_method_name_in(const char *method, const char *category, char *name, size_t capacity);

#endif
