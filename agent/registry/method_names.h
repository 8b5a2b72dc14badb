/* Stores the names of methods that record their receivers, by function id. Also writes the names of
 * functions that stand for one such method with receivers of one class. Not thread-safe. */
#ifndef SJ_AGENT_REGISTRY_METHOD_NAMES_H
#define SJ_AGENT_REGISTRY_METHOD_NAMES_H

#include "agent/abi/plan.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_named_methods {
    uint32_t first_function;
    uint32_t count;
    char **names; /* a name is NULL if the method does not record its receiver */
} sj_named_methods;

/* Zeroed means empty. */
typedef struct sj_method_names {
    sj_named_methods *modules;
    size_t count;
    size_t capacity;
} sj_method_names;

void sj_method_names_deinit(sj_method_names *names);

/* Stores the names of a module's methods. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_method_names_add(sj_method_names *names, const sj_plan_header *plan,
                                            uint32_t first_function);

/* Returns the name of a method that records its receiver, or NULL. */
const char *sj_method_names_get(const sj_method_names *names, uint32_t function);

/* Writes the name of a method for receivers of `class`: -[Receiver:Owner selector]. If `is_meta` is
 * true, the receiver is the class itself. Returns the size in bytes with the NUL. Returns 0 if
 * `class` is the owner or the name does not fit. */
size_t sj_method_name_for(const char *method, const char *class, bool is_meta, char *name,
                          size_t capacity);

#endif
