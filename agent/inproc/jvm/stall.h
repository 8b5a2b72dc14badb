/* Stalls of watched threads. io.sojourn.Sojourn.watch, in the program, detects that a thread does
 * not handle a heartbeat in time, and describes all threads. The agent adds the pauses of the
 * garbage collector and sends the report to the recorder. */
#ifndef SJ_AGENT_INPROC_JVM_STALL_H
#define SJ_AGENT_INPROC_JVM_STALL_H

#include <stdint.h>

/* A thread that did not handle a heartbeat in time. All pointers are borrowed. */
typedef struct sj_jvm_stall {
    const char *name; /* Name of the watch. */
    uint32_t name_bytes;
    uint64_t age_ns;      /* Time since the heartbeat was posted. */
    const char *parts[2]; /* The report, a JSON object in two pieces. */
    uint32_t part_bytes[2];
} sj_jvm_stall;

/* Stops storing pauses of the garbage collector. */
void sj_jvm_stop_pauses(void);

/* Releases a lock that a thread of the parent held. Call it on the only thread of a forked child.
 */
void sj_jvm_pauses_after_fork(void);

#endif
