/* Where the code of functions lies that conditions of rules name as callers. */
#ifndef SJ_AGENT_INPROC_RECORDER_CALLERS_H
#define SJ_AGENT_INPROC_RECORDER_CALLERS_H

#include <stdint.h>

/* sj_recorder_note_function says where the code of a function lies that rules name as a caller, in
 * the module at `bias`; sj_recorder_forget_functions drops those of a module that is gone. One
 * thread at a time. */
void sj_recorder_note_function(uint32_t function, uint64_t bias, uint64_t offset, uint32_t bytes);
void sj_recorder_forget_functions(uint64_t bias);

/* sj_recorder_function_at returns the noted function that an address lies in, 0: none.
 * Async-signal-safe. */
uint32_t sj_recorder_function_at(uint64_t address);

#endif
