/* Methods that a program gave other code while it runs: which function's code each has now, by
 * process, and what such a function is to be called. Not thread-safe. */
#ifndef SJ_AGENT_REGISTRY_PUT_IN_METHODS_H
#define SJ_AGENT_REGISTRY_PUT_IN_METHODS_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { SJ_PUT_IN_METHODS = 16384 }; /* those that are met after that keep the names of their code */

typedef struct sj_put_in_method {
    uint64_t process;
    uint32_t function; /* whose code it has; 0: of none that is known */
    char *name;        /* -[Class selector]; owned */
    char *shown;       /* with the category that defines the code; owned */
    char *own; /* what the file's tables call that code, without its category; "": nothing */
} sj_put_in_method;

/* Zeroed is empty. */
typedef struct sj_put_in_methods {
    sj_put_in_method *items;
    size_t count;
    size_t capacity;
} sj_put_in_methods;

void sj_put_in_methods_deinit(sj_put_in_methods *methods);

/* sj_put_in_methods_set notes that the method given->name of given->process has the code of
 * given->function, which its file calls given->own; the texts are copied. `*before` is the function
 * whose code it was noted to have; 0: none. SJ_ENOMEM; SJ_ELIMIT: there are too many. */
SJ_MUST_CHECK sj_status sj_put_in_methods_set(sj_put_in_methods *methods,
                                              const sj_put_in_method *given, uint32_t *before);

/* sj_put_in_methods_name gives the shown name of the one method that has a function's code; NULL
 * when there is none but the one it was made for, or more than one. Borrowed until the next change.
 */
const char *sj_put_in_methods_name(const sj_put_in_methods *methods, uint64_t process,
                                   uint32_t function);

#endif
