/* The text of a value as a runtime's room makes it: UTF-8, cut at what a value holds. Calls
 * nothing, allocates nothing; async-signal-safe. */
#ifndef SJ_AGENT_INPROC_RECORDER_VALUE_TEXT_H
#define SJ_AGENT_INPROC_RECORDER_VALUE_TEXT_H

#include "proto/block/value.h"

#include <stdint.h>

/* Zeroed: empty. */
typedef struct sj_value_text {
    char bytes[SJ_VALUE_TEXT_BYTES];
    uint32_t used;
    sj_value_note note;
} sj_value_text;

/* sj_value_text_add_bytes appends bytes that belong together, all of them or none,
 * sj_value_text_add plain text as far as it goes, sj_value_text_add_code a character of Unicode;
 * U+0000 is shown as a blank. */
void sj_value_text_add_bytes(sj_value_text *text, const char *bytes, uint32_t count);
void sj_value_text_add(sj_value_text *text, const char *plain);
void sj_value_text_add_code(sj_value_text *text, uint32_t code);

/* sj_value_text_add_units appends UTF-16; half a pair becomes U+FFFD. */
void sj_value_text_add_units(sj_value_text *text, const uint16_t *units, int32_t count);

/* sj_value_text_add_number appends a number in base 10 or 16. */
void sj_value_text_add_number(sj_value_text *text, uint64_t number, uint32_t base);

#endif
