/* The descriptor of Mono (runtime.h). */
#ifndef SJ_AGENT_RUNTIMES_MONO_MONO_H
#define SJ_AGENT_RUNTIMES_MONO_MONO_H

#include "agent/runtimes/runtime.h"

extern const sj_runtime sj_runtime_mono;

#endif
