/* Where the code of functions lies that conditions of rules name as callers. */
#ifndef SJ_AGENT_INPROC_RECORDER_CALLERS_H
#define SJ_AGENT_INPROC_RECORDER_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

/* sj_recorder_note_function says where the code of a function lies that rules name as a caller;
 * sj_recorder_forget_functions drops those that were noted for an owner. A module may have several,
 * which may note the same functions. False: there is no room. One thread at a time. */
bool sj_recorder_note_function(uint32_t function, uint64_t address, uint32_t bytes,
                               const void *owner);
void sj_recorder_forget_functions(const void *owner);

/* sj_recorder_has_noted: functions are noted for an owner. One thread at a time. */
bool sj_recorder_has_noted(const void *owner);

/* sj_recorder_function_at returns the noted function that an address lies in, 0: none.
 * Async-signal-safe. */
uint32_t sj_recorder_function_at(uint64_t address);

#endif
