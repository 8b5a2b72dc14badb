/* Finds memory that can be read without a fault and without a system call. */
#ifndef SJ_AGENT_INPROC_RECORDER_READABLE_H
#define SJ_AGENT_INPROC_RECORDER_READABLE_H

#include <stddef.h>
#include <stdint.h>

/* Notes the read-only segments of the program, which stay mapped as long as it runs. Called once,
 * before values are recorded. */
void sj_recorder_note_program(void);

/* Returns how many bytes from `address` on can be read directly. They lie in the program's
 * read-only segments, or on the calling thread's own stack, at addresses from its current frame
 * upwards. 0: unknown. Async-signal-safe. */
size_t sj_recorder_readable(uint64_t address);

/* Returns how many bytes of the calling thread's own stack are still unused: those at addresses
 * lower than its current frame. If the thread runs on an alternate stack inside that stack, counts
 * only the alternate stack. 0: the thread runs on another stack, or its stack is unknown.
 * Async-signal-safe. */
size_t sj_recorder_stack_space(void);

#endif
