/* Values that a parameter or a result of some type consists of: their kinds, names and types in the
 * words of C, and enumerators. */
#ifndef SJ_AGENT_OBJFILE_TYPED_VALUES_H
#define SJ_AGENT_OBJFILE_TYPED_VALUES_H

#include "agent/objfile/function_types.h"
#include "agent/objfile/parameter_places.h"

/* sj_typed_values_add adds the values of a parameter, or with `is_result` the result. Where there
 * is no room for all of them, the last ones are left out. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_typed_values_add(sj_typed_function *function, const char *name,
                                            Dwarf_Die *type, const sj_parameter_place *place,
                                            bool is_result);

/* The result of a function. */
typedef struct sj_typed_result {
    const sj_parameter_place *place;
    const sj_type_layout *layout;
    bool is_aapcs;
} sj_typed_result;

/* sj_typed_values_add_result adds the values of a result: itself, or its fields where it is a
 * structure, in registers or where the function has put it. Likewise. */
SJ_MUST_CHECK sj_status sj_typed_values_add_result(sj_typed_function *function, Dwarf_Die *type,
                                                   const sj_typed_result *result);

/* sj_typed_values_add_behind adds what a parameter leads to that is a pointer, a reference or an
 * object whose address is passed: the fields of a structure within its first bytes, the length of a
 * std::vector. Likewise. */
SJ_MUST_CHECK sj_status sj_typed_values_add_behind(sj_typed_function *function, const char *name,
                                                   Dwarf_Die *type,
                                                   const sj_parameter_place *place);

#endif
