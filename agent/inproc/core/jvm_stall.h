/* sj_report_stall reports to the recorder a thread that does not answer. May wait; a thread of the
 * program's, not in a signal handler. */
#ifndef SJ_AGENT_INPROC_CORE_JVM_STALL_H
#define SJ_AGENT_INPROC_CORE_JVM_STALL_H

#include "agent/inproc/jvm/stall.h"

void sj_report_stall(const sj_jvm_stall *stall);

#endif
