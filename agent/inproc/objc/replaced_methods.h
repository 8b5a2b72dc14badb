/* Methods whose code the program replaces while it runs (method swizzling). class_addMethod,
 * class_replaceMethod, method_setImplementation and method_exchangeImplementations are rebound in
 * every module. They report which method has which code, so that patched functions are named after
 * the method. The runtime's own functions then make the change. */
#ifndef SJ_AGENT_INPROC_OBJC_REPLACED_METHODS_H
#define SJ_AGENT_INPROC_OBJC_REPLACED_METHODS_H

#include "agent/inproc/objc/dispatch.h"

enum { SJ_OBJC_REPLACED_TOGETHER = 2 };

/* A method and its new code. Borrowed. */
typedef struct sj_objc_replaced_method {
    uint32_t name_bytes; /* With its NUL; at most SJ_OBJC_NAME_BYTES. */
    uint64_t code;
    char name[SJ_OBJC_NAME_BYTES]; /* -[Class selector] */
} sj_objc_replaced_method;

/* Reports `count` changes that are made together, at most SJ_OBJC_REPLACED_TOGETHER, to the
 * recorder. The caller is a thread of the program and may hold locks of the runtime. The program
 * has not run the code by its new name yet. */
typedef void (*sj_objc_report_replaced)(const sj_objc_replaced_method *changes, uint32_t count);

/* Starts to report changes. Code for which `is_of_interest` returns false is not reported. Returns
 * SJ_ENOTFOUND if the process has no Objective-C. One thread at a time. */
SJ_MUST_CHECK sj_status sj_objc_replaced_start(sj_objc_report_replaced report,
                                               bool (*is_of_interest)(uint64_t code));

/* Restores every module's references. One thread at a time. */
void sj_objc_replaced_stop(void);

#endif
