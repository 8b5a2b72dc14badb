/* Method names: what the methods that record their receivers are called, by function id, and what
 * their functions by receiver are to be called. Not thread-safe. */
#ifndef SJ_AGENT_REGISTRY_METHOD_NAMES_H
#define SJ_AGENT_REGISTRY_METHOD_NAMES_H

#include "agent/abi/plan.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_named_methods {
    uint32_t first_function;
    uint32_t count;
    char **names; /* NULL: records no receiver */
} sj_named_methods;

/* Zeroed is empty. */
typedef struct sj_method_names {
    sj_named_methods *modules;
    size_t count;
    size_t capacity;
} sj_method_names;

void sj_method_names_deinit(sj_method_names *names);

/* sj_method_names_add keeps the names of a module's methods. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_method_names_add(sj_method_names *names, const sj_plan_header *plan,
                                            uint32_t first_function);

/* sj_method_names_get gives the name of a method that records its receiver, or NULL. */
const char *sj_method_names_get(const sj_method_names *names, uint32_t function);

/* sj_method_name_for writes the name of a method as an object of `class` (or the class itself) has
 * it: -[Receiver:Owner selector]. Returns its bytes with the NUL; 0 when the class is the owner, or
 * it does not fit. */
size_t sj_method_name_for(const char *method, const char *class, bool is_meta, char *name,
                          size_t capacity);

#endif
