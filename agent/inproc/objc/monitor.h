/* The monitors of Objective-C. The first records messages where they are dispatched. The second
 * reports code that the program puts into methods, with the method's name. */
#ifndef SJ_AGENT_INPROC_OBJC_MONITOR_H
#define SJ_AGENT_INPROC_OBJC_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

/* True if the recorder has no plan for the module that contains this code. */
typedef bool sj_objc_is_excluded(uint64_t code);

/* Each starts a monitor. Returns false if the process has no runtime, or if out of memory; then
 * messages are not recorded. One thread at a time. */
bool sj_objc_monitor_start_dispatch(sj_objc_is_excluded *excluded);
bool sj_objc_monitor_start_replaced(sj_objc_is_excluded *excluded);

/* Stops recording messages and writes to the agent's state how many stubs stay mapped. */
void sj_objc_monitor_stop_dispatch(void);

#endif
