/* Hidden classes (MethodHandles.Lookup.defineHiddenClass). The JVM shows their bytes to no agent
 * and cannot transform them. So they get their probes before the JVM has them. */
#ifndef SJ_AGENT_INPROC_JVM_HIDDEN_H
#define SJ_AGENT_INPROC_JVM_HIDDEN_H

#include "agent/inproc/jvm/internal.h"

/* Redirects the definition of hidden classes to us. Hidden classes of lambdas are left alone,
 * because their code is a method of their host. Call it once the JVM's libraries are loaded. Takes
 * the loader's lock. */
void sj_hidden_start(void);

/* Ends that. Hidden classes keep their probes: returns the first function id that none of them
 * uses. A thread may still be defining one. */
uint32_t sj_hidden_stop(void);

#endif
