/* Where the calling convention puts parameters, and where DWARF says that they are at the entry of
 * a function. System V for x86-64 and AAPCS64. */
#ifndef SJ_AGENT_OBJFILE_PARAMETER_PLACES_H
#define SJ_AGENT_OBJFILE_PARAMETER_PLACES_H

#include "agent/objfile/type_layout.h"
#include "proto/block/value.h"

typedef struct sj_register_use {
    bool is_aapcs;
    bool is_unknown; /* from here on, nothing is known */
    uint32_t whole;  /* registers that are taken */
    uint32_t real;
    uint32_t stack; /* words */
} sj_register_use;

/* The words of a parameter: descriptors of SJ_VALUE_LONG or SJ_VALUE_DOUBLE. */
typedef struct sj_parameter_place {
    bool is_known;
    bool is_address;                /* the first word is the address of the value */
    uint8_t words[SJ_LAYOUT_WORDS]; /* 0: in none that can be recorded */
    bool is_on_stack;
    uint32_t stack_word; /* the first */
    uint32_t members;    /* vector registers from that of the first word on, each with one number of
                            a homogeneous aggregate; 0: it is none */
    uint32_t member_bytes;
    bool is_given; /* a result's address is that which the caller gave: the exit does not have it */
    uint8_t extended_bytes; /* of a long double: of the x87, on the stack or at the top of its own,
                               or binary128; 0: it is none */
} sj_parameter_place;

/* What DWARF says of a parameter at the entry. */
typedef enum sj_entry_state {
    SJ_ENTRY_REMOVED = 0,  /* nothing, or a value that is computed */
    SJ_ENTRY_LATER = 1,    /* it has a place, but not yet here */
    SJ_ENTRY_MEMORY = 2,   /* a place in memory, as of code that is not optimized */
    SJ_ENTRY_REGISTERS = 3 /* those that `place` says */
} sj_entry_state;

/* sj_extended_bytes is how many bytes of a long double are its value; 0: it is none. */
uint8_t sj_extended_bytes(const sj_type_layout *layout, bool is_aapcs);

/* sj_result_is_in_memory: the caller gives an address for the result. */
bool sj_result_is_in_memory(const sj_type_layout *layout, bool is_aapcs);

/* sj_parameter_place_next places the next parameter. */
sj_parameter_place sj_parameter_place_next(sj_register_use *use, const sj_type_layout *layout);

/* sj_register_use_whole: what comes next is not known unless general registers hold all of it. Rust
 * passes the rest on the stack. */
void sj_register_use_whole(sj_register_use *use, const sj_type_layout *layout);

/* sj_parameter_word is where the word number `word` of a parameter is; 0: in no place. */
uint8_t sj_parameter_word(const sj_parameter_place *place, uint64_t word);

/* sj_parameter_piece is where the bytes from `offset` on of a parameter are, and there from byte
 * `*from_byte` on; 0: in no place. */
uint8_t sj_parameter_piece(const sj_parameter_place *place, uint64_t offset, uint32_t *from_byte);

/* sj_result_piece is where the bytes from `offset` on of a result that registers hold are: how many
 * bytes behind the first of the words of sj_result_word. False: nowhere. */
bool sj_result_piece(const sj_type_layout *layout, bool is_aapcs, uint64_t offset,
                     uint64_t *from_byte);

/* sj_parameter_entry reads the location of a parameter at the address `entry`. */
sj_entry_state sj_parameter_entry(Dwarf_Die *parameter, uint64_t entry, bool is_aapcs,
                                  sj_parameter_place *place);

#endif
