/* Builds the text of a value in a runtime: UTF-8, cut to the capacity of a value. Calls no other
 * component and allocates nothing. Async-signal-safe. */
#ifndef SJ_AGENT_INPROC_RECORDER_VALUE_TEXT_H
#define SJ_AGENT_INPROC_RECORDER_VALUE_TEXT_H

#include "proto/block/value.h"

#include <stdint.h>

/* A text under construction; zeroed means empty. */
typedef struct sj_value_text {
    char bytes[SJ_VALUE_TEXT_BYTES];
    uint32_t used;
    sj_value_note note;
} sj_value_text;

/* sj_value_text_add_bytes appends all of the bytes or none. sj_value_text_add appends as much of a
 * plain text as fits. sj_value_text_add_code appends a Unicode character; U+0000 becomes a
 * blank. */
void sj_value_text_add_bytes(sj_value_text *text, const char *bytes, uint32_t count);
void sj_value_text_add(sj_value_text *text, const char *plain);
void sj_value_text_add_code(sj_value_text *text, uint32_t code);

/* Appends UTF-16. Half of a surrogate pair becomes U+FFFD. */
void sj_value_text_add_units(sj_value_text *text, const uint16_t *units, int32_t count);

/* Appends an unsigned number in base 10 or 16, as much of it as fits. */
void sj_value_text_add_number(sj_value_text *text, uint64_t number, uint32_t base);

/* Appends a float (`is_single`) or double, given by its bits, in decimal: with the fewest digits
 * behind the point that distinguish it from other numbers, such as 0.1 or 3.0. Appends the bits in
 * hexadecimal for infinities, NaN, and numbers that are too large or too small. Uses no
 * floating-point instruction. */
void sj_value_text_add_real(sj_value_text *text, uint64_t bits, bool is_single);

#endif
