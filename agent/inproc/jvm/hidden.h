/* Hidden classes (MethodHandles.Lookup.defineHiddenClass): the JVM shows their bytes to no agent
 * and changes them for none, so that they get their probes on the way to it. */
#ifndef SJ_AGENT_INPROC_JVM_HIDDEN_H
#define SJ_AGENT_INPROC_JVM_HIDDEN_H

#include "agent/inproc/jvm/internal.h"

/* sj_hidden_start has hidden classes come to us, those of lambdas excepted, whose code their hosts
 * have. When the JVM's libraries are loaded; takes the loader's lock. */
void sj_hidden_start(void);

/* sj_hidden_stop leaves them alone again. Those that were seen keep their probes: it returns the
 * first function that none of them is. A thread may be in the definition of one. */
uint32_t sj_hidden_stop(void);

#endif
