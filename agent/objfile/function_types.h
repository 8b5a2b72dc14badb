/* Reads types of functions from DWARF: the name, the type and the place of each parameter and of
 * the result. The DWARF is in the module's file or in its separate debug file, and in the .dwo
 * files that these name. If .dwo files are missing, their units are read from the package beside
 * either file (FILE.dwp). If the compiler may have changed or removed a value's place, the place is
 * unknown. */
#ifndef SJ_AGENT_OBJFILE_FUNCTION_TYPES_H
#define SJ_AGENT_OBJFILE_FUNCTION_TYPES_H

#include "proto/base/status.h"
#include "proto/block/value.h"

#include <stddef.h>

typedef enum sj_typed_state {
    SJ_TYPED_RECORDED = 0,
    SJ_TYPED_UNKNOWN = 1, /* the value's place at the entry, or at the exit, is not known */
    SJ_TYPED_UNSUPPORTED =
        2, /* no kind of value can hold its type, or no descriptor can express its place */
    SJ_TYPED_STATES = 3
} sj_typed_state;

typedef struct sj_enumerator {
    int64_t value;
    char *name; /* owned */
} sj_enumerator;

/* A parameter, a field of a structure that is a parameter, or the result. */
typedef struct sj_typed_value {
    uint8_t place; /* what the probe records (proto/block/value.h); 0: nothing */
    /* Descriptor of the value in recordings (proto/block/value.h). Its position counts the values
     * of the function. */
    uint8_t descriptor;
    /* offset of the value in the eight bytes of its place, or in the memory that the place points
     * to */
    uint16_t from_byte;
    uint8_t bytes;
    bool is_behind; /* the value is in memory that the place points to; the probe records that
                       memory as text */
    bool is_own; /* the value is in words of the place itself; the probe records these words as text
                  */
    bool is_given;    /* the memory is at the address that the caller passed for the result */
    bool is_extended; /* the value is a long double: ten bytes on the x87, else binary128 */
    /* The value is the distance between two addresses in memory, divided by this number of bytes.
     * 0: the value itself is in memory. */
    uint32_t divided_by;
    uint8_t state; /* sj_typed_state */
    char *name;    /* owned; "" if the source does not name it; "point.x" for a field */
    char *type;    /* owned; as written in C */
    /* The names of an enumeration's numbers. Owned; NULL for other types. */
    sj_enumerator *enumerators;
    size_t enumerator_count;
} sj_typed_value;

/* The prefix of names of a result's fields: "return.x", "return->x". */
#define SJ_TYPED_RESULT "return"

typedef struct sj_typed_function {
    /* Methods of Mono and Java: a bit for each position whose values are stored with the kind that
     * the agent recorded. 0 for native functions. */
    uint16_t own_positions;
    size_t count;
    /* in this order: arguments as in the source, the result, values that arguments and the result
     * point to */
    sj_typed_value values[SJ_PLACES_PER_FUNCTION];
} sj_typed_function;

void sj_typed_function_free(sj_typed_function *function); /* NULL is allowed */

/* Adds the places of a function's values to the list `places`, each once. `limit` is a descriptor
 * that precedes texts longer than the default (proto/block/value.h), or 0. Returns false if a place
 * does not fit, or if a listed place records less than the function needs. */
bool sj_typed_function_list(const sj_typed_function *function, uint8_t limit,
                            uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* Does the same as sj_typed_function_list, but adds only the places of the result. */
bool sj_typed_function_list_result(const sj_typed_function *function, uint8_t limit,
                                   uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* Marks the values whose places do not fit in the list of sj_typed_function_list as unsupported. */
void sj_typed_function_fit(sj_typed_function *function);

typedef struct sj_function_types sj_function_types;

/* Lists the functions of the module at `path` that DWARF describes. The list is empty if there is
 * no DWARF. Blocks while it reads all of the DWARF. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_function_types_new(const char *path, sj_function_types **types);
void sj_function_types_free(sj_function_types *types); /* NULL is allowed */

/* The result of reading debug data that were split to .dwo files. If several cases apply, the one
 * with the largest number is used. */
typedef enum sj_split_state {
    SJ_SPLIT_COMPLETE = 0,  /* all were found, or no debug data were split */
    SJ_SPLIT_MISSING = 1,   /* .dwo files are missing, and so is a package */
    SJ_SPLIT_OTHER = 2,     /* the package lacks some of the units: it is from another build */
    SJ_SPLIT_TOO_LARGE = 3, /* the package exceeds the limit on extracted bytes */
    SJ_SPLIT_DAMAGED = 4    /* the package, or a unit in it, cannot be read */
} sj_split_state;

/* Returns the state of the module's split debug data. */
sj_split_state sj_function_types_split(const sj_function_types *types);

/* Describes the function that begins at `offset` and whose symbol is `symbol`. The caller frees
 * `*function`. Returns SJ_ENOTFOUND if DWARF does not describe the function, and SJ_ENOMEM if out
 * of memory. */
SJ_MUST_CHECK sj_status sj_function_types_find(sj_function_types *types, uint64_t offset,
                                               const char *symbol, sj_typed_function **function);

#endif
