/* Rules for the numbers and references of every block, whether the block comes in a frame or in a
 * file. Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_STORE_BLOCK_RULES_H
#define SJ_COLLECTOR_SERVER_STORE_BLOCK_RULES_H

#include "proto/base/error.h"
#include "proto/block/block.h"

#include <stdbool.h>

/* True if the numbers of a header can be stored, added up and shifted without an overflow. */
bool sj_block_numbers_are_sound(const sj_block_header *header);

/* True if `function`, a number given by the device, belongs to a module of the session. */
typedef bool sj_block_function_is_known(void *context, uint32_t function);

/* Checks every function that the block names: those of its calls, of its open calls and of its
 * costs. Returns SJ_ENOTFOUND, with a sentence in `error`, if one is unknown. `error` may be NULL.
 * Does not block. */
SJ_MUST_CHECK sj_status sj_block_check_functions(const sj_block *block,
                                                 sj_block_function_is_known *is_known,
                                                 void *context, sj_error *error);

#endif
