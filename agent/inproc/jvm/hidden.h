/* Hidden classes (MethodHandles.Lookup.defineHiddenClass). JVMTI does not show their bytes and
 * cannot transform them. So the agent adds probes to their bytes before the JVM defines them. */
#ifndef SJ_AGENT_INPROC_JVM_HIDDEN_H
#define SJ_AGENT_INPROC_JVM_HIDDEN_H

#include "agent/inproc/jvm/internal.h"

/* Redirects the native method that defines hidden classes to the agent. Hidden classes of lambdas
 * do not change, because the code of a lambda is a method of its host class. Call it after the
 * JVM's libraries are loaded. Takes the loader's lock. */
void sj_hidden_start(void);

/* Undoes the redirection. Hidden classes keep their probes. Returns the end of their function ids:
 * no hidden class uses this id or a greater one. A thread may still be defining a hidden class
 * afterwards. */
uint32_t sj_hidden_stop(void);

#endif
