/* Computes how a value of a DWARF type is passed: size, alignment, and the class of each of its
 * eight-byte words. The number of visited DIEs is limited, because DWARF is untrusted. */
#ifndef SJ_AGENT_OBJFILE_TYPE_LAYOUT_H
#define SJ_AGENT_OBJFILE_TYPE_LAYOUT_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_LAYOUT_WORDS = 2 }; /* larger values are passed in memory */

typedef enum sj_word_class {
    SJ_WORD_NONE = 0, /* padding */
    SJ_WORD_REAL = 1, /* a vector register */
    SJ_WORD_WHOLE = 2 /* a general register */
} sj_word_class;

typedef enum sj_passing {
    /* This code does not know how the type is passed, so the places of later parameters are
     * unknown, too. */
    SJ_PASSED_UNKNOWN = 0,
    SJ_PASSED_NOWHERE = 1, /* the value does not occupy a place */
    SJ_PASSED_WORDS = 2,   /* in registers of the classes in `words` */
    SJ_PASSED_MEMORY = 3,  /* a copy in memory */
    SJ_PASSED_ADDRESS = 4  /* the address of an object, instead of the value */
} sj_passing;

typedef struct sj_type_layout {
    sj_passing passing;
    uint64_t bytes;
    uint64_t alignment;
    sj_word_class words[SJ_LAYOUT_WORDS];
    /* If the value consists of floating-point numbers of one size, their number; else 0. */
    uint32_t real_count;
    uint32_t real_bytes; /* size of each of these numbers */
    bool is_aggregate;   /* structure, union or class */
    /* A long double of 16 bytes. System V passes it on the stack, AAPCS64 in a vector register. */
    bool is_extended;
} sj_type_layout;

/* Returns how a language passes values of `type`. Returns SJ_PASSED_UNKNOWN for a type with too
 * many parts, and for structures of Rust that are neither empty nor slices. */
sj_type_layout sj_type_layout_of(Dwarf_Die *type, int language);

/* Strips typedef, const, volatile, restrict and _Atomic from a type. Returns false for void, and if
 * the type is nested too deeply. */
bool sj_type_strip(Dwarf_Die *type, Dwarf_Die *stripped);

/* Finds the type of a DIE. Returns false if the DIE does not have one (void). */
bool sj_type_of(Dwarf_Die *die, Dwarf_Die *type);

/* Finds the offset of a member in its structure. Returns false if the member is static, is a bit
 * field, or has a computed place. */
bool sj_type_member_offset(Dwarf_Die *member, uint64_t *offset);

/* Returns an unsigned attribute, or `otherwise` if the DIE does not have it. */
uint64_t sj_type_number(Dwarf_Die *die, unsigned name, uint64_t otherwise);

static inline bool sj_type_is_structure(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

#endif
