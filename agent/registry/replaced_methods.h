/* Methods whose code a program has replaced at run time. Stores, by process, whose code each method
 * has now. Not thread-safe. */
#ifndef SJ_AGENT_REGISTRY_REPLACED_METHODS_H
#define SJ_AGENT_REGISTRY_REPLACED_METHODS_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SJ_REPLACED_METHODS = 16384
}; /* later methods are not stored: calls keep the names of the code */

typedef struct sj_replaced_method {
    uint64_t process;
    uint32_t function; /* function whose code the method has; 0: unknown */
    char *name;        /* -[Class selector]; owned */
    char *shown;       /* the name with the category that defines the code; owned */
    char *own; /* name of that code in the file's tables, without its category; "": none; owned */
} sj_replaced_method;

/* Zeroed means empty. */
typedef struct sj_replaced_methods {
    sj_replaced_method *items;
    size_t count;
    size_t capacity;
} sj_replaced_methods;

void sj_replaced_methods_deinit(sj_replaced_methods *methods);

/* Notes that the method given->name of given->process has the code of given->function, which its
 * file calls given->own. Copies the texts. `*before` is the function whose code it had before; 0:
 * none. SJ_ENOMEM. SJ_ELIMIT: there are too many methods. */
SJ_MUST_CHECK sj_status sj_replaced_methods_set(sj_replaced_methods *methods,
                                                const sj_replaced_method *given, uint32_t *before);

/* Returns the shown name of the one method that has a function's code. Returns NULL if only the
 * method has it for which the code was made, if no method has it, or if several have it. Borrowed
 * until the next change. */
const char *sj_replaced_methods_name(const sj_replaced_methods *methods, uint64_t process,
                                     uint32_t function);

#endif
