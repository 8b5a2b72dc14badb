/* Memory that can be read without a fault and without a system call. */
#ifndef SJ_AGENT_INPROC_RECORDER_READABLE_H
#define SJ_AGENT_INPROC_RECORDER_READABLE_H

#include <stddef.h>
#include <stdint.h>

/* sj_recorder_note_program notes the read-only segments of the program, which stay as long as it
 * runs. Once, before values are recorded. */
void sj_recorder_note_program(void);

/* sj_recorder_readable returns how many bytes from `address` on can be read as they are: in the
 * program's read-only segments, or of the calling thread's own stack, above its present frame.
 * 0: that is not known. Async-signal-safe. */
size_t sj_recorder_readable(uint64_t address);

/* sj_recorder_stack_room returns how many bytes of the calling thread's own stack lie below its
 * present frame; 0: it runs on another one, or that is not known. Async-signal-safe. */
size_t sj_recorder_stack_room(void);

#endif
