/* Objective-C by its dispatch, for the agent: asks the companion for functions. */
#ifndef SJ_AGENT_LIFECYCLE_OBJC_H
#define SJ_AGENT_LIFECYCLE_OBJC_H

#include <stdbool.h>

/* sj_objc_attach starts the technique; false when the process has no runtime, or no memory. */
bool sj_objc_attach(void);

#endif
