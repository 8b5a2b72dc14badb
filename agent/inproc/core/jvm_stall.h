/* Reports a stalled thread to the recorder. May wait. Not async-signal-safe. */
#ifndef SJ_AGENT_INPROC_CORE_JVM_STALL_H
#define SJ_AGENT_INPROC_CORE_JVM_STALL_H

#include "agent/inproc/jvm/stall.h"

void sj_report_stall(const sj_jvm_stall *stall);

#endif
