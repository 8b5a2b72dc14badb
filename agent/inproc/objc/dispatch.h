/* Objective-C dispatch: records messages where the runtime looks up their methods.
 *
 * There are two dispatchers. objc_msg_lookup and objc_msg_lookup_super of GCC's runtime return the
 * code to call. objc_msgSend of libobjc2 and Apple jumps to it. Either is rebound in every module,
 * also in later ones. Each pair of a receiver's class and a method is a function of the session.
 *
 * Methods patched in place are the default. Compared with them, dispatch knows the receiver's class
 * exactly. But it does not record calls of cached IMPs, for example by NSInvocation, and it
 * replaces return addresses while a call runs (hooks/dispatch.h). */
#ifndef SJ_AGENT_INPROC_OBJC_DISPATCH_H
#define SJ_AGENT_INPROC_OBJC_DISPATCH_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { SJ_OBJC_NAME_BYTES = 2048 + 2, SJ_OBJC_LINEAGE_BYTES = 3 * 1024 };

/* A method that receives its first message. Borrowed. */
typedef struct sj_objc_report {
    const char *name;
    uint32_t name_bytes;    /* With its NUL; at most SJ_OBJC_NAME_BYTES. */
    uint32_t lineage_bytes; /* At most SJ_OBJC_LINEAGE_BYTES. */
    /* The receiver's class and its ancestors, nearest first, as many as fit. Each name ends with a
     * NUL. */
    const char *lineage;
    uint64_t code; /* Address of the method's code. */
} sj_objc_report;

/* Registers a method as a function of the session. Writes its id to `*function`, or 0 if the policy
 * excludes it. Returns false if the method cannot be recorded now. The caller is a thread of the
 * program and may hold locks of the runtime. */
typedef bool (*sj_objc_register)(const sj_objc_report *method, uint32_t *function);

typedef struct sj_objc_counters {
    uint32_t methods; /* Known pairs of a receiver's class and a method. */
    uint32_t stubs;   /* How many of these have a stub, which stays mapped. */
    uint32_t slots;   /* Rebound references to the dispatcher. */
    /* Messages that are not recorded, because a table is full or because they interrupted another
     * look-up. */
    uint32_t refused;
} sj_objc_counters;

/* Takes over the stubs that an earlier agent left in this process; `code` is where their code
 * begins. Call it before sj_objc_dispatch_start. Other memory at that address is left alone. */
void sj_objc_stubs_adopt(uint64_t code);

/* Rebinds the dispatcher of the process. May be called again after sj_objc_dispatch_stop. Returns
 * SJ_ENOTFOUND if there is no dispatcher, or SJ_ENOMEM. One thread at a time. */
SJ_MUST_CHECK sj_status sj_objc_dispatch_start(sj_objc_register registers);

/* Restores every module's dispatcher. Calls under way return through the thunk and are recorded.
 * Stubs stay mapped, because the program may have kept them, but record nothing and need nothing of
 * the agent. One thread at a time. */
void sj_objc_dispatch_stop(void);

/* Rebinds the modules that were loaded since the last call. The calling thread holds the loader's
 * lock. */
void sj_objc_dispatch_rebind_modules(void);

/* Gives a forked child stubs of its own. Call it on the child's only thread. */
void sj_objc_dispatch_after_fork(void);

void sj_objc_get_counters(sj_objc_counters *counters);

#endif
