/* How a value of a type of DWARF is passed: size, alignment, and the class of each of its eight
 * bytes. Of hostile DWARF every walk ends. */
#ifndef SJ_AGENT_OBJFILE_TYPE_LAYOUT_H
#define SJ_AGENT_OBJFILE_TYPE_LAYOUT_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_LAYOUT_WORDS = 2 }; /* more than 16 bytes are passed in memory */

typedef enum sj_word_class {
    SJ_WORD_NONE = 0, /* padding */
    SJ_WORD_REAL = 1, /* a vector register */
    SJ_WORD_WHOLE = 2 /* a general register */
} sj_word_class;

typedef enum sj_passing {
    SJ_PASSED_UNKNOWN = 0, /* by rules that are not known here: so is what comes behind */
    SJ_PASSED_NOWHERE = 1, /* it takes no place */
    SJ_PASSED_WORDS = 2,   /* as `words` say */
    SJ_PASSED_MEMORY = 3,  /* a copy in memory */
    SJ_PASSED_ADDRESS = 4  /* the address of an object, in the place of the value */
} sj_passing;

typedef struct sj_type_layout {
    sj_passing passing;
    uint64_t bytes;
    uint64_t alignment;
    sj_word_class words[SJ_LAYOUT_WORDS];
    uint32_t real_count; /* of floating-point numbers that it consists of; 0: not only, or mixed */
    uint32_t real_bytes; /* of each */
    bool is_aggregate;   /* structure, union, class or array */
    bool is_extended; /* a long double of 16 bytes: on the stack by System V, in a vector register
                         by AAPCS64 */
} sj_type_layout;

/* sj_type_layout_of describes how values of `type` are passed by a language. Of a type that
 * consists of too much to look at, nothing is known. */
sj_type_layout sj_type_layout_of(Dwarf_Die *type, int language);

/* sj_type_strip goes behind typedef, const, volatile, restrict and _Atomic. False: there is no
 * type, or no end. */
bool sj_type_strip(Dwarf_Die *type, Dwarf_Die *stripped);

/* sj_type_of finds the type that a DIE has; false: none (void). */
bool sj_type_of(Dwarf_Die *die, Dwarf_Die *type);

/* sj_type_member_offset is where a member begins; false: it is static, a bit field, or its place is
 * computed. */
bool sj_type_member_offset(Dwarf_Die *member, uint64_t *offset);

/* sj_type_number reads an unsigned attribute; `otherwise` when there is none. */
uint64_t sj_type_number(Dwarf_Die *die, unsigned name, uint64_t otherwise);

static inline bool sj_type_is_structure(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

#endif
