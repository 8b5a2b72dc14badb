/* Code that a program puts into classes while it runs: class_addMethod, class_replaceMethod,
 * method_setImplementation and method_exchangeImplementations are rebound in every module, and say
 * which method has which code, so that patched functions can be named after the method. Calls go
 * on to the runtime's own; the code that it keeps is the program's. */
#ifndef SJ_AGENT_INPROC_OBJC_PUT_IN_H
#define SJ_AGENT_INPROC_OBJC_PUT_IN_H

#include "agent/inproc/objc/dispatch.h"

enum { SJ_OBJC_PUT_IN_TOGETHER = 2 };

/* A method and the code that it has from now on; borrowed. */
typedef struct sj_objc_put_in {
    uint32_t name_bytes; /* with its NUL, at most SJ_OBJC_NAME_BYTES */
    uint64_t code;
    char name[SJ_OBJC_NAME_BYTES]; /* -[Class selector] */
} sj_objc_put_in;

/* Reports to the recorder `count` changes (at most SJ_OBJC_PUT_IN_TOGETHER) that are made together.
 * Called in a thread of the program, which may hold locks of the runtime, before the program runs
 * code by that name. */
typedef void (*sj_objc_report_put_in)(const sj_objc_put_in *changes, uint32_t count);

/* sj_objc_put_in_start begins; `is_of_interest` says whether code can be recorded: other code is
 * not reported. SJ_ENOTFOUND: the process has no Objective-C. One thread at a time. */
SJ_MUST_CHECK sj_status sj_objc_put_in_start(sj_objc_report_put_in report,
                                             bool (*is_of_interest)(uint64_t code));

/* sj_objc_put_in_stop restores every module's references. One thread at a time. */
void sj_objc_put_in_stop(void);

#endif
