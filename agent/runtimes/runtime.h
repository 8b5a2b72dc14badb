/* Runtimes: what Sojourn knows of languages whose functions have better names than their symbols.
 *
 * Each runtime is one constant descriptor in the table of runtime.c. The planner asks every runtime
 * for the functions that it finds in a module's file; what it names is hooked like any other
 * function, in place, and costs nothing more. Thread-safe: no state. */
#ifndef SJ_AGENT_RUNTIMES_RUNTIME_H
#define SJ_AGENT_RUNTIMES_RUNTIME_H

#include "agent/planner/elf_view.h"

/* A function as the tables of a file describe it. */
typedef struct sj_runtime_function {
    uint64_t address; /* module offset */
    const char *name; /* borrowed for the call */
    uint8_t receiver; /* which argument is the object that the method is of, from 1; 0: unknown */
} sj_runtime_function;

typedef sj_status (*sj_runtime_sink)(void *context, const sj_runtime_function *function);

/* A class as the tables of a file describe it. Texts are borrowed for the call. */
typedef struct sj_runtime_class {
    uint64_t address; /* module offset: what an instance's isa points to */
    uint64_t meta;    /* the same of the class itself */
    const char *name;
    const char *super; /* NULL: a root class */
} sj_runtime_class;

typedef sj_status (*sj_runtime_class_sink)(void *context, const sj_runtime_class *class);

typedef struct sj_runtime {
    const char *name;
    /* Hands every function that the runtime's own tables in the file describe to `sink`. SJ_OK also
     * when there are none or the tables are damaged: what cannot be read is left out. SJ_ENOMEM, or
     * what the sink returned. */
    sj_status (*find_functions)(const sj_elf *elf, sj_runtime_sink sink, void *context);
    /* Hands every class to `sink`, as find_functions does functions. */
    sj_status (*find_classes)(const sj_elf *elf, sj_runtime_class_sink sink, void *context);
} sj_runtime;

/* sj_runtimes_find_functions asks every runtime. As find_functions. */
SJ_MUST_CHECK sj_status sj_runtimes_find_functions(const sj_elf *elf, sj_runtime_sink sink,
                                                   void *context);

/* sj_runtimes_find_classes asks every runtime. As find_classes. */
SJ_MUST_CHECK sj_status sj_runtimes_find_classes(const sj_elf *elf, sj_runtime_class_sink sink,
                                                 void *context);

extern const sj_runtime sj_runtime_objc;

#endif
