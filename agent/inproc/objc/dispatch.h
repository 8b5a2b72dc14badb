/* Records Objective-C messages where the runtime looks up their methods.
 *
 * There are two kinds of dispatchers. objc_msg_lookup and objc_msg_lookup_super of GCC's runtime
 * return the code to call. objc_msgSend of libobjc2 and Apple jumps to the code. The agent rebinds
 * them in every module, also in modules that are loaded later. Each pair of a receiver's class and
 * a method is a function of the session.
 *
 * By default, methods are patched instead. Recording at the dispatch has one advantage: the
 * receiver's class is known exactly. It has two disadvantages. It does not record calls of stored
 * IMPs, for example by NSInvocation. And it replaces return addresses while a call runs
 * (hooks/dispatch.h). */
#ifndef SJ_AGENT_INPROC_OBJC_DISPATCH_H
#define SJ_AGENT_INPROC_OBJC_DISPATCH_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { SJ_OBJC_NAME_BYTES = 2048 + 2, SJ_OBJC_LINEAGE_BYTES = 3 * 1024 };

/* A method that receives its first message. Borrowed. */
typedef struct sj_objc_report {
    const char *name;
    uint32_t name_bytes;    /* Includes the NUL. At most SJ_OBJC_NAME_BYTES. */
    uint32_t lineage_bytes; /* At most SJ_OBJC_LINEAGE_BYTES. */
    /* Names of the receiver's class, its superclass and so on, as many as fit. Each ends with a
     * NUL. */
    const char *lineage;
    uint64_t code; /* Address of the method's code. */
} sj_objc_report;

/* Registers a method as a function of the session. Writes its id to `*function`, or 0 if the policy
 * excludes it. Returns false if the method cannot be recorded now. The caller is a thread of the
 * program and may hold locks of the runtime. */
typedef bool (*sj_objc_register)(const sj_objc_report *method, uint32_t *function);

typedef struct sj_objc_counters {
    uint32_t methods; /* Pairs of a receiver's class and a method. */
    uint32_t stubs;   /* Stubs, which stay mapped. */
    uint32_t slots;   /* Rebound references to the dispatchers. */
    /* Messages that were not recorded, because a table was full, the recorder refused the method,
     * or the message interrupted another look-up. */
    uint32_t refused;
} sj_objc_counters;

/* Uses the stubs that an earlier agent left in this process. `code` is the address of their code.
 * Does nothing if other memory is at this address. Call it before sj_objc_dispatch_start. */
void sj_objc_stubs_adopt(uint64_t code);

/* Rebinds the dispatchers of the process. May be called again after sj_objc_dispatch_stop. Returns
 * SJ_ENOTFOUND if the process has no dispatcher, or SJ_ENOMEM. Not thread-safe. */
SJ_MUST_CHECK sj_status sj_objc_dispatch_start(sj_objc_register registers);

/* Restores the dispatchers in every module. Calls that are running are still recorded when they
 * return. Stubs stay mapped, because the program may have stored their addresses; they only jump to
 * their methods. Not thread-safe. */
void sj_objc_dispatch_stop(void);

/* Rebinds the modules that were loaded since the last call. The caller holds the loader's lock. */
void sj_objc_dispatch_rebind_modules(void);

/* Gives a forked child its own copy of the stubs. Call it on the child's only thread. */
void sj_objc_dispatch_after_fork(void);

void sj_objc_get_counters(sj_objc_counters *counters);

#endif
