/* Lines of Java methods that ran: probes before each line note their place in the code. */
#ifndef SJ_AGENT_INPROC_JVM_LINES_H
#define SJ_AGENT_INPROC_JVM_LINES_H

#include <jni.h>

/* The native method java.sojourn.Values.line. */
void JNICALL sj_jvm_line(JNIEnv *env, jclass class, jint place, jint function);

/* Reports all lines to the recorder, if there are any. May wait. */
void sj_jvm_report_lines(void);

#endif
