/* Computes where the calling convention (System V for x86-64, AAPCS64) puts parameters, and where
 * DWARF says they are at the entry of a function. */
#ifndef SJ_AGENT_OBJFILE_PARAMETER_PLACES_H
#define SJ_AGENT_OBJFILE_PARAMETER_PLACES_H

#include "agent/objfile/type_layout.h"
#include "proto/block/value.h"

typedef struct sj_register_use {
    bool is_aapcs;
    bool is_unknown; /* the places of further parameters are not known */
    uint32_t whole;  /* number of general registers in use */
    uint32_t real;   /* number of vector registers in use */
    uint32_t stack;  /* number of words of the stack in use */
} sj_register_use;

/* Where a parameter is. Its words are descriptors of SJ_VALUE_LONG or SJ_VALUE_DOUBLE. */
typedef struct sj_parameter_place {
    bool is_known;
    bool is_address;                /* the first word is the address of the value */
    uint8_t words[SJ_LAYOUT_WORDS]; /* 0: the word is not in a place that can be recorded */
    bool is_on_stack;
    uint32_t stack_word; /* index of the first word on the stack */
    /* Number of vector registers of a homogeneous aggregate, each with one member. The first is in
     * words[0]. 0: not a homogeneous aggregate. */
    uint32_t members;
    uint32_t member_bytes;
    /* The value is at the address that the caller passed for the result. That address is not
     * available at the exit. */
    bool is_given;
    /* Size of a long double: ten bytes on the stack or at the top of the x87 stack, or 16 bytes of
     * binary128. 0: not a long double. */
    uint8_t extended_bytes;
} sj_parameter_place;

/* The place that DWARF gives for a parameter at the entry. */
typedef enum sj_entry_state {
    SJ_ENTRY_REMOVED = 0, /* no place, or the value is computed */
    SJ_ENTRY_LATER =
        1, /* callers pass the parameter, but DWARF does not give its whole place at the entry */
    SJ_ENTRY_MEMORY = 2,   /* a place in memory, as in code that is not optimized */
    SJ_ENTRY_REGISTERS = 3 /* the registers in `place` */
} sj_entry_state;

/* Returns the number of bytes that hold the value of a long double, or 0 for any other type. */
uint8_t sj_extended_bytes(const sj_type_layout *layout, bool is_aapcs);

/* True if the caller passes an address for the result. */
bool sj_result_is_in_memory(const sj_type_layout *layout, bool is_aapcs);

/* Returns the place of the next parameter and updates `use`. */
sj_parameter_place sj_parameter_place_next(sj_register_use *use, const sj_type_layout *layout);

/* Sets use->is_unknown, unless the unused general registers can hold this whole parameter. Used for
 * Rust, which passes the remaining words of such a parameter on the stack. */
void sj_register_use_whole(sj_register_use *use, const sj_type_layout *layout);

/* Returns the place of word number `word` of a parameter, or 0 if it cannot be recorded. */
uint8_t sj_parameter_word(const sj_parameter_place *place, uint64_t word);

/* Returns the place of the bytes of a parameter that begin at `offset`, or 0 if they cannot be
 * recorded. Sets `*from_byte` to their offset in that place. */
uint8_t sj_parameter_piece(const sj_parameter_place *place, uint64_t offset, uint32_t *from_byte);

/* Finds the bytes that begin at `offset` in a result in registers. Sets `*from_byte` to their
 * offset from the first word of sj_result_word. Returns false if no register contains them. */
bool sj_result_piece(const sj_type_layout *layout, bool is_aapcs, uint64_t offset,
                     uint64_t *from_byte);

/* Reads the location that DWARF gives for a parameter at the address `entry`. If it is in
 * registers, sets `*place`; else zeroes it. */
sj_entry_state sj_parameter_entry(Dwarf_Die *parameter, uint64_t entry, bool is_aapcs,
                                  sj_parameter_place *place);

#endif
