/* Returns the words that the database stores for numbers of the protocol. The texts are static. */
#ifndef SJ_COLLECTOR_SERVER_STORE_ENUM_TEXT_H
#define SJ_COLLECTOR_SERVER_STORE_ENUM_TEXT_H

#include <stdint.h>

const char *sj_text_of_technique(uint8_t technique);
const char *sj_text_of_symbol_source(uint8_t source);
const char *sj_text_of_gap_reason(uint32_t reason);
const char *sj_text_of_value_kind(uint32_t kind);
const char *sj_text_of_value_note(uint32_t note); /* NULL if there is nothing to note */
const char *sj_text_of_disarming(uint32_t reason);

#endif
