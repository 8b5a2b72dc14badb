/* Names of types in an assembly, as Mono writes them. */
#ifndef SJ_AGENT_RUNTIMES_MONO_TYPE_NAMES_H
#define SJ_AGENT_RUNTIMES_MONO_TYPE_NAMES_H

#include "agent/runtimes/mono/assembly.h"

/* A text that grows to its capacity and is cut there. Zeroed but for the capacity: empty. */
typedef struct sj_name_text {
    size_t capacity; /* of which `bytes` are used; at most sizeof(bytes) */
    size_t used;
    bool is_cut;
    char bytes[1024];
} sj_name_text;

/* sj_name_add appends a text; control characters become '?'. sj_name_finish terminates it, with
 * "..." when it was cut, and borrows it. */
void sj_name_add(sj_name_text *text, const char *part);
const char *sj_name_finish(sj_name_text *text);

typedef struct sj_type_names {
    const sj_assembly *assembly;
    uint32_t *enclosing; /* by type definition: the one that it is nested in, 0: none */
} sj_type_names;

/* Whose generic parameters a signature names. */
typedef struct sj_type_scope {
    uint32_t type;   /* row of the type definition; 0: unknown */
    uint32_t method; /* row of the method definition; 0: unknown */
} sj_type_scope;

/* sj_type_names_open prepares names; close it also when it failed. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_type_names_open(const sj_assembly *assembly, sj_type_names *names);
void sj_type_names_close(sj_type_names *names);

/* sj_type_names_add_definition appends the full name of a type definition. */
void sj_type_names_add_definition(const sj_type_names *names, uint32_t type, sj_name_text *text);

/* sj_type_names_add_super appends the name of the class that a type definition extends; nothing
 * when there is none. */
void sj_type_names_add_super(const sj_type_names *names, uint32_t type, sj_name_text *text);

/* sj_type_names_add_parameters appends the types of a method's parameters, separated by commas. */
void sj_type_names_add_parameters(const sj_type_names *names, const sj_type_scope *scope,
                                  sj_slice signature, sj_name_text *text);

#endif
