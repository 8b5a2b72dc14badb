/* Stores the code addresses of the functions that conditions of rules name as callers. */
#ifndef SJ_AGENT_INPROC_RECORDER_CALLERS_H
#define SJ_AGENT_INPROC_RECORDER_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

/* sj_recorder_note_function stores where the code of a function lies. Returns false if the table is
 * full. `owner` identifies the hooks that need the function. A module may have several owners, and
 * these may note the same functions. sj_recorder_forget_functions removes an owner's functions. One
 * thread at a time. */
bool sj_recorder_note_function(uint32_t function, uint64_t address, uint32_t bytes,
                               const void *owner);
void sj_recorder_forget_functions(const void *owner);

/* True if functions are noted for an owner. One thread at a time. */
bool sj_recorder_has_noted(const void *owner);

/* Returns the noted function whose code contains an address; 0: none. Async-signal-safe. */
uint32_t sj_recorder_function_at(uint64_t address);

#endif
