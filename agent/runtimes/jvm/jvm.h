/* The descriptor of the JVM (runtime.h). */
#ifndef SJ_AGENT_RUNTIMES_JVM_JVM_H
#define SJ_AGENT_RUNTIMES_JVM_JVM_H

#include "agent/runtimes/runtime.h"

extern const sj_runtime sj_runtime_jvm;

#endif
