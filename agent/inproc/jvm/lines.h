/* Which lines of Java methods ran: the places in their code that probes in front of lines noted. */
#ifndef SJ_AGENT_INPROC_JVM_LINES_H
#define SJ_AGENT_INPROC_JVM_LINES_H

#include <jni.h>

/* sj_jvm_line is the native method java.sojourn.Values.line. */
void JNICALL sj_jvm_line(JNIEnv *env, jclass class, jint place, jint function);

/* sj_jvm_report_lines reports all of them to the recorder, if there are any. May wait. */
void sj_jvm_report_lines(void);

#endif
