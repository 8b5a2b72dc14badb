/* Objective-C dispatch: the messages of a process, recorded where they are looked up.
 *
 * Two dispatchers: objc_msg_lookup and objc_msg_lookup_super of GCC's runtime, which return the
 * code to call, and objc_msgSend of libobjc2 and Apple, which jumps to it. Either is rebound in
 * every module, later ones included; each pair of receiver's class and method is a function of
 * the session. Compared with methods patched in place (the default) the receiver's class is known
 * exactly, but calls of cached IMPs, NSInvocation among them, are not recorded, and return
 * addresses are replaced while a call runs (hooks/dispatch.h). */
#ifndef SJ_AGENT_INPROC_OBJC_DISPATCH_H
#define SJ_AGENT_INPROC_OBJC_DISPATCH_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { SJ_OBJC_NAME_BYTES = 2048 + 2, SJ_OBJC_LINEAGE_BYTES = 3 * 1024 };

/* A method that is met for the first time; borrowed. */
typedef struct sj_objc_report {
    const char *name;
    uint32_t name_bytes;    /* with its NUL, at most SJ_OBJC_NAME_BYTES */
    uint32_t lineage_bytes; /* likewise; at most SJ_OBJC_LINEAGE_BYTES */
    const char *lineage; /* the receivers' class and its ancestors, nearest first, as many as fit:
                            NUL-terminated texts, one after the other */
    uint64_t code;       /* its address */
} sj_objc_report;

/* Registers a method as a function of the session. `*function` is its id, or 0 when the policy
 * excludes it. False: it is not recorded now. Called in a thread of the program, which may hold
 * locks of the runtime. */
typedef bool (*sj_objc_register)(const sj_objc_report *method, uint32_t *function);

typedef struct sj_objc_counters {
    uint32_t methods; /* pairs of receiver's class and method that are known */
    uint32_t stubs;   /* of these, called and recorded: their stubs stay mapped */
    uint32_t slots;   /* references to the dispatcher that were rebound */
    uint32_t refused; /* lookups without room, or that interrupted another: not recorded */
} sj_objc_counters;

/* sj_objc_stubs_adopt takes over the stubs that an earlier agent left in this process, whose code
 * begins at `code`, before sj_objc_start. What is not theirs is left alone. */
void sj_objc_stubs_adopt(uint64_t code);

/* sj_objc_start rebinds the dispatcher of the process; may be called again after sj_objc_stop.
 * SJ_ENOTFOUND there is none, SJ_ENOMEM. One thread at a time. */
SJ_MUST_CHECK sj_status sj_objc_start(sj_objc_register registers);

/* sj_objc_stop restores every module's dispatcher. Calls under way return through the thunk and are
 * recorded; stubs stay mapped, because the program may have kept them, but record nothing and need
 * nothing of the agent. One thread at a time. */
void sj_objc_stop(void);

/* sj_objc_follow rebinds modules that were loaded since. Any thread that holds the loader's lock.
 */
void sj_objc_follow(void);

/* sj_objc_after_fork gives a forked child stubs of its own. Called by its only thread. */
void sj_objc_after_fork(void);

void sj_objc_get_counters(sj_objc_counters *counters);

#endif
