/* Reports methods whose implementations the program replaces (swizzling). class_addMethod,
 * class_replaceMethod, method_setImplementation and method_exchangeImplementations are rebound in
 * every module. The replacements report the name and the code of the method, so that the recorder
 * names patched functions after their methods. Then they call the runtime's own functions. */
#ifndef SJ_AGENT_INPROC_OBJC_REPLACED_METHODS_H
#define SJ_AGENT_INPROC_OBJC_REPLACED_METHODS_H

#include "agent/inproc/objc/dispatch.h"

enum { SJ_OBJC_REPLACED_TOGETHER = 2 };

/* A method and its new code. Borrowed. */
typedef struct sj_objc_replaced_method {
    uint32_t name_bytes; /* Includes the NUL. At most SJ_OBJC_NAME_BYTES. */
    uint64_t code;
    char name[SJ_OBJC_NAME_BYTES]; /* -[Class selector] */
} sj_objc_replaced_method;

/* Reports `count` changes of one call, at most SJ_OBJC_REPLACED_TOGETHER, to the recorder. The
 * caller is a thread of the program and may hold locks of the runtime. The agent calls this
 * function before the program can run the code by its new name. */
typedef void (*sj_objc_report_replaced)(const sj_objc_replaced_method *changes, uint32_t count);

/* Starts to report changes. Does not report code for which `is_of_interest` returns false. Returns
 * SJ_ENOTFOUND if the process has no Objective-C runtime. Not thread-safe. */
SJ_MUST_CHECK sj_status sj_objc_replaced_start(sj_objc_report_replaced report,
                                               bool (*is_of_interest)(uint64_t code));

/* Restores the references in every module. Not thread-safe. */
void sj_objc_replaced_stop(void);

#endif
