/* Splits a parameter or a result into the values that are recorded. Each has a kind, a name, a type
 * as written in C, and enumerators. */
#ifndef SJ_AGENT_OBJFILE_TYPED_VALUES_H
#define SJ_AGENT_OBJFILE_TYPED_VALUES_H

#include "agent/objfile/function_types.h"
#include "agent/objfile/parameter_places.h"

/* Adds the values of a parameter, or of the result if `is_result`. Omits the last values if the
 * function has too many. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_typed_values_add(sj_typed_function *function, const char *name,
                                            Dwarf_Die *type, const sj_parameter_place *place,
                                            bool is_result);

/* The result of a function. */
typedef struct sj_typed_result {
    const sj_parameter_place *place;
    const sj_type_layout *layout;
    bool is_aapcs;
} sj_typed_result;

/* Adds the result as a value, or its fields if it is a structure in registers or memory. Omits the
 * last values if the function has too many. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_typed_values_add_result(sj_typed_function *function, Dwarf_Die *type,
                                                   const sj_typed_result *result);

/* Adds the values that a parameter points to, if it is a pointer, a reference or an object passed
 * by address. These are the fields within the first bytes of a structure, or the length of a
 * std::vector. Omits the last values if the function has too many. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_typed_values_add_behind(sj_typed_function *function, const char *name,
                                                   Dwarf_Die *type,
                                                   const sj_parameter_place *place);

#endif
