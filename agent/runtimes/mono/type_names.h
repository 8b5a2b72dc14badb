/* Writes names of types in an assembly like Mono does. */
#ifndef SJ_AGENT_RUNTIMES_MONO_TYPE_NAMES_H
#define SJ_AGENT_RUNTIMES_MONO_TYPE_NAMES_H

#include "agent/runtimes/mono/assembly.h"

/* A text that is truncated at its capacity. The text is empty if all members except `capacity` are
 * zero. */
typedef struct sj_name_text {
    size_t capacity; /* At most sizeof(bytes). */
    size_t used;
    bool is_cut;
    char bytes[1024];
} sj_name_text;

/* Appends a text. Control characters become '?'. */
void sj_name_add(sj_name_text *text, const char *part);

/* Terminates the text, with "..." if it was truncated, and returns it. Borrowed from `text`. */
const char *sj_name_finish(sj_name_text *text);

typedef struct sj_type_names {
    const sj_assembly *assembly;
    uint32_t *enclosing; /* [row] Row of the enclosing type definition, or 0. */
} sj_type_names;

/* The owners of the generic parameters in a signature. */
typedef struct sj_type_scope {
    uint32_t type;   /* Row of the type definition; 0 if not known. */
    uint32_t method; /* Row of the method definition; 0 if not known. */
} sj_type_scope;

/* Reads which types are nested. The caller calls sj_type_names_close, even after an error. Returns
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_type_names_open(const sj_assembly *assembly, sj_type_names *names);
void sj_type_names_close(sj_type_names *names);

/* Appends the full name of a type definition. */
void sj_type_names_add_definition(const sj_type_names *names, uint32_t type, sj_name_text *text);

/* Appends the name of the class that a type definition extends, if any. */
void sj_type_names_add_super(const sj_type_names *names, uint32_t type, sj_name_text *text);

/* Appends the types of a method's parameters, separated by commas. */
void sj_type_names_add_parameters(const sj_type_names *names, const sj_type_scope *scope,
                                  sj_slice signature, sj_name_text *text);

#endif
