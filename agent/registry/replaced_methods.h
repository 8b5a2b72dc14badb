/* Methods whose code a program has replaced at run time. Stores, for each process, the function
 * whose code each such method has now. Not thread-safe. */
#ifndef SJ_AGENT_REGISTRY_REPLACED_METHODS_H
#define SJ_AGENT_REGISTRY_REPLACED_METHODS_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SJ_REPLACED_METHODS = 16384
    /* maximum number; further methods are not stored, so their calls keep the name of the code's
     * function */
};

typedef struct sj_replaced_method {
    uint64_t process;
    uint32_t function; /* function whose code the method has; 0: unknown */
    char *name;        /* -[Class selector]; owned */
    char *shown;       /* the name with the category that defines the code; owned */
    /* name of the method for which the code was made, from the file's tables, without a category;
     * "": none; owned */
    char *own;
} sj_replaced_method;

/* Zeroed means empty. */
typedef struct sj_replaced_methods {
    sj_replaced_method *items;
    size_t count;
    size_t capacity;
} sj_replaced_methods;

void sj_replaced_methods_deinit(sj_replaced_methods *methods);

/* Stores that the method given->name of given->process now has the code of given->function. Copies
 * the texts of `given`. `*before` is the function whose code the method had before; 0: none.
 * Returns SJ_ENOMEM if out of memory. Returns SJ_ELIMIT if there are too many methods. */
SJ_MUST_CHECK sj_status sj_replaced_methods_set(sj_replaced_methods *methods,
                                                const sj_replaced_method *given, uint32_t *before);

/* Returns `shown` of the method that has a function's code, if the code belongs to exactly one
 * method. Returns NULL if no stored method has the code, or if several methods have it. Also
 * returns NULL if the only one is the method for which the code was made. Borrowed until the next
 * change. */
const char *sj_replaced_methods_name(const sj_replaced_methods *methods, uint64_t process,
                                     uint32_t function);

#endif
