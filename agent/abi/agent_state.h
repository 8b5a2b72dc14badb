/* The agent's state: what another process (attach, detach, ps, the overhead budget) reads of it in
 * the program's memory, found by the exported name SJ_AGENT_STATE_SYMBOL. It holds all that a
 * tracer needs to detach, so that a later tracer can detach after the first one was killed. Native
 * layout: both ends are on one machine. */
#ifndef SJ_AGENT_ABI_AGENT_STATE_H
#define SJ_AGENT_ABI_AGENT_STATE_H

#include "proto/base/ids.h"

#include <stdatomic.h>
#include <stdint.h>

#define SJ_AGENT_STATE_SYMBOL "sojourn_agent_state"
#define SJ_AGENT_STATE_ATTACH "sojourn_agent_attach"
#define SJ_AGENT_STATE_DETACH "sojourn_agent_detach"
#define SJ_AGENT_STATE_TRANSITION_REQUEST "sojourn_agent_transition"
#define SJ_AGENT_STATE_BIND "sojourn_agent_bind"
#define SJ_AGENT_STATE_UNBIND "sojourn_agent_unbind"
#define SJ_AGENT_STATE_UNREGISTER "sojourn_agent_unregister"
#define SJ_AGENT_STATE_WATCH_HEAP "sojourn_agent_watch_heap"
#define SJ_AGENT_STATE_SHRINK_HEAP "sojourn_agent_shrink_heap"
#define SJ_AGENT_STATE_LEAVE_HEAP "sojourn_agent_leave_heap"
#define SJ_AGENT_STATE_ADOPT_SIGNALS "sojourn_agent_adopt_signals"
#define SJ_AGENT_STATE_LEAVE_SIGNALS "sojourn_agent_leave_signals"
#define SJ_AGENT_STATE_JOIN_JVM "sojourn_agent_join_jvm"
#define SJ_AGENT_STATE_SELECT_JVM "sojourn_agent_select_jvm"
#define SJ_AGENT_STATE_LEAVE_JVM "sojourn_agent_leave_jvm"
#define SJ_AGENT_STATE_SELECT_MONO "sojourn_agent_select_mono"
#define SJ_AGENT_STATE_STUBS "memfd:" SJ_AGENT_STATE_STUBS_FILE /* as the kernel reports it */
#define SJ_AGENT_STATE_STUBS_FILE "sojourn-stubs"       /* memory file of what dispatch leaves */
#define SJ_AGENT_STATE_MAGIC UINT64_C(0x45544154534a53) /* "SJSTATE" */

enum { SJ_AGENT_STATE_VERSION = 12, SJ_AGENT_STATE_PATH_BYTES = 4096 };

/* Functions from here on cannot be muted. */
enum { SJ_AGENT_STATE_MUTED_FUNCTIONS = 1 << 22 };

typedef enum sj_agent_state_phase {
    SJ_AGENT_STATE_IDLE = 0,     /* loaded, no session */
    SJ_AGENT_STATE_LAUNCHED = 1, /* joined at the program's start (sojourn record) */
    SJ_AGENT_STATE_PREPARED = 2, /* attached: stubs are made, nothing needs to be written yet */
    SJ_AGENT_STATE_DETACHED =
        3, /* sojourn_agent_detach has run: the agent uses nothing of the program */
    SJ_AGENT_STATE_FAILED = 4 /* the recorder did not answer; nothing was changed */
} sj_agent_state_phase;

/* Whether a monitor that can stop has changed references of modules or a language's runtime
 * (sojourn_agent_bind), or has restored them (sojourn_agent_unbind). Both take the loader's lock.
 */
typedef enum sj_agent_state_binding {
    SJ_AGENT_STATE_UNBOUND = 0, /* also when nothing was left behind */
    SJ_AGENT_STATE_BOUND = 1,
    SJ_AGENT_STATE_RELEASED = 2 /* calls may still return through the thunk; nothing else needs the
                                   agent */
} sj_agent_state_binding;

/* How the agent stands to a JVM in the process. */
typedef enum sj_agent_state_jvm {
    SJ_AGENT_JVM_NONE = 0,    /* no classes have probes */
    SJ_AGENT_JVM_AWAITED = 1, /* set by the tracer: it is to be joined */
    SJ_AGENT_JVM_BUSY = 2,    /* a thread of the agent joins or leaves it */
    SJ_AGENT_JVM_JOINED = 3,
    SJ_AGENT_JVM_SELECTING = 4 /* joined, and a thread of the agent changes its classes */
} sj_agent_state_jvm;

typedef struct sj_agent_state {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t phase; /* sj_agent_state_phase */
    /* Odd while the tables below are being changed: a tracer then lets the threads run on and
     * checks again. */
    _Atomic uint32_t changing;
    uint32_t hooked_count; /* elements of the array of modules */
    uint32_t prepare_only; /* 1: changes are kept for the tracer, which sets 0 when it has written
                              them */
    _Atomic uint32_t binding; /* sj_agent_state_binding */
    uint64_t first_hooked;    /* address of the first sj_hooked_module */
    uint64_t hooked_stride;   /* bytes from one to the next */
    uint64_t loader_hook;     /* address of the sj_hooked_module of the loader's debug hook */
    uint64_t loader_state;    /* address of the loader's struct r_debug; 0: unknown */
    uint64_t
        known_modules; /* sum over the loader's list, by which a tracer sees later changes of it */
    uint64_t handle;   /* what dlclose takes */
    sj_session_id session;
    char runtime_directory[SJ_AGENT_STATE_PATH_BYTES];
    uint64_t message_stubs; /* of dispatch: the program may have kept some, so they stay, also
                               without the agent */
    uint64_t api_trampoline_bytes; /* of the trampolines (core/api_trampolines.h), which stay */
    /* 1: a tracer is detaching, so nothing is hooked any more. Set while all threads are
     * stopped and the tables are not being changed. */
    _Atomic uint32_t is_detaching;
    /* 1: sojourn_agent_bind is to be called once more, by another thread. */
    _Atomic uint32_t bind_again;
    /* Entries of the allocator (abi/heap_custody.h); 0: there are none. */
    uint64_t heap_takers;  /* address of SJ_HEAP_PARTS sj_hooked_module of what gives blocks out */
    uint64_t heap_custody; /* address of the sj_heap_custody */
    uint64_t has_objects;  /* 1: freed objects are kept */
    /* The tables of agent/abi/return_slots.h, from which a tracer puts return addresses back. */
    uint64_t return_regions; /* address of their array; 0: they cannot be put back */
    uint64_t return_thunk;   /* what stands on the stacks instead */
    uint64_t kept_stubs;     /* set by the tracer: code of the stubs that an earlier agent left */
    uint64_t leaf_stubs;     /* of the probes of Java classes; 0: there are none */
    uint32_t leaf_stubs_bytes;
    _Atomic uint32_t jvm; /* sj_agent_state_jvm */
    /* Address of SJ_AGENT_STATE_MUTED_FUNCTIONS bytes, one by function: not 0 while the probes of a
     * Java method record nothing. A tracer writes them. 0: there are none. */
    uint64_t muted_functions;
    /* Threads that have called the program's code from the agent's and return to it, where their
     * stacks cannot be followed. The agent is not unloaded before it is 0. */
    _Atomic uint32_t calling_out;
    /* What signal handlers return to in the place of the C library's restorer, and so stands on
     * stacks (agent/abi/saved_context.h); 0: nothing of ours does. */
    uint64_t signal_return;
    uint64_t stub_ranges; /* address of the sj_stub_ranges (agent/abi/stub_map.h) */
    /* 1: something that the session watches in this process has not begun yet. The agent sets it;
     * of an attached process the tracer clears it. */
    _Atomic uint32_t is_joining;
} sj_agent_state;

/* What one module of the loader's list adds to `known_modules`: its bias and its link_map. */
#define SJ_AGENT_STATE_MODULE_SUM(bias, map)                                                       \
    (((bias) ^ (map) << 7) * UINT64_C(0x9e3779b97f4a7c15) | 1)

/* The agent's own; other processes find it by its name. */
extern sj_agent_state sojourn_agent_state;

#endif
