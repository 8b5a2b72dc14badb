/* Types of functions from DWARF: what each parameter and result is called, of which type it is, and
 * where the calling convention puts it. Read from a module's file or its separate debug file, or
 * the .dwo files that these name, or a package of them beside either (FILE.dwp). What the compiler
 * removed or moved is unknown, never guessed. */
#ifndef SJ_AGENT_OBJFILE_FUNCTION_TYPES_H
#define SJ_AGENT_OBJFILE_FUNCTION_TYPES_H

#include "proto/base/status.h"
#include "proto/block/value.h"

#include <stddef.h>

typedef enum sj_typed_state {
    SJ_TYPED_RECORDED = 0,
    SJ_TYPED_UNKNOWN = 1,     /* where it is at the entry, or at the exit, is not known */
    SJ_TYPED_UNSUPPORTED = 2, /* no kind of value holds its type, or no place reaches it */
    SJ_TYPED_STATES = 3
} sj_typed_state;

typedef struct sj_enumerator {
    int64_t value;
    char *name; /* owned */
} sj_enumerator;

/* A parameter, a field of one that is a structure, or the result. */
typedef struct sj_typed_value {
    uint8_t place;      /* for the probe (proto/block/value.h); 0: it is not recorded */
    uint8_t descriptor; /* under which it is stored; its position counts the values of a function */
    uint16_t from_byte; /* where it begins in the eight bytes of its place, or behind it */
    uint8_t bytes;
    bool is_behind;      /* it lies where the place leads to, which is recorded as a text */
    bool is_own;         /* or in words of the place itself, which are recorded likewise */
    bool is_given;       /* the place leads there by the address that the caller gave for it */
    bool is_extended;    /* it is a long double: of the x87 with ten bytes, else binary128 */
    uint32_t divided_by; /* it is the distance of two addresses there, by this; 0: it is not */
    uint8_t state;       /* sj_typed_state */
    char *name;          /* owned; "" when the source has none; "point.x" of a field */
    char *type;          /* owned; as C writes it */
    sj_enumerator *enumerators; /* owned; what its numbers are called; NULL: it is no enumeration */
    size_t enumerator_count;
} sj_typed_value;

/* What fields of results are called: "return.x", "return->x". */
#define SJ_TYPED_RESULT "return"

typedef struct sj_typed_function {
    size_t count;
    sj_typed_value values[SJ_PLACES_PER_FUNCTION]; /* arguments in source order, the result, what
                                                      they lead to */
} sj_typed_function;

void sj_typed_function_free(sj_typed_function *function); /* NULL is allowed */

/* sj_typed_function_list adds the places of a function's values to those that are listed, each
 * once. `limit`: the place in front of texts that are longer than otherwise; 0: none. Returns false
 * where one found no room, or less is recorded of it for what was listed before. */
bool sj_typed_function_list(const sj_typed_function *function, uint8_t limit,
                            uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* sj_typed_function_list_result does so for what the function returns. */
bool sj_typed_function_list_result(const sj_typed_function *function, uint8_t limit,
                                   uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* sj_typed_function_fit makes those values unsupported whose places find no room in that list. */
void sj_typed_function_fit(sj_typed_function *function);

typedef struct sj_function_types sj_function_types;

/* sj_function_types_new reads which functions the module at `path` has types of; a file without
 * any gives an empty list. Blocking: walks all of the DWARF. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_function_types_new(const char *path, sj_function_types **types);
void sj_function_types_free(sj_function_types *types); /* NULL is allowed */

/* What became of debug data that were split to .dwo files; of several cases the last. */
typedef enum sj_split_state {
    SJ_SPLIT_COMPLETE = 0,  /* all were found, or nothing was split */
    SJ_SPLIT_MISSING = 1,   /* files are not there, nor is a package of them */
    SJ_SPLIT_OTHER = 2,     /* the package has not all of those units: it is of another build */
    SJ_SPLIT_TOO_LARGE = 3, /* the package goes beyond what is read of one */
    SJ_SPLIT_DAMAGED = 4    /* the package, or a unit of it, cannot be read */
} sj_split_state;

/* sj_function_types_split returns whether units that were split off are missing, and why. */
sj_split_state sj_function_types_split(const sj_function_types *types);

/* sj_function_types_find describes the function that begins at `offset` and whose symbol is
 * `symbol`. Owned by the caller. SJ_ENOTFOUND: nothing is known of it; SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_function_types_find(sj_function_types *types, uint64_t offset,
                                               const char *symbol, sj_typed_function **function);

#endif
