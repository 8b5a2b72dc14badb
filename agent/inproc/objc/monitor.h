/* The two Objective-C monitors. The first records messages where they are dispatched. The second
 * reports method implementations that the program replaces (swizzling). */
#ifndef SJ_AGENT_INPROC_OBJC_MONITOR_H
#define SJ_AGENT_INPROC_OBJC_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

/* True if the recorder has no patch plan for the module that contains this code. */
typedef bool sj_objc_is_excluded(uint64_t code);

/* Starts to record messages. Returns false if the process has no Objective-C runtime, or if out of
 * memory. Not thread-safe. */
bool sj_objc_monitor_start_dispatch(sj_objc_is_excluded *excluded);

/* Starts to report replaced methods. Returns false if the process has no Objective-C runtime, or if
 * out of memory. Not thread-safe. */
bool sj_objc_monitor_start_replaced(sj_objc_is_excluded *excluded);

/* Stops recording messages. Writes the number of stubs that stay mapped to the agent's state. */
void sj_objc_monitor_stop_dispatch(void);

#endif
