/* The agent's state, in the program's memory. Other processes (attach, detach, ps, the overhead
 * budget) find it by the exported name SJ_AGENT_STATE_SYMBOL. It holds everything that a tracer
 * needs to detach, so that a later tracer can detach if the first one was killed. Native layout:
 * both processes run on one machine. */
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
#define SJ_AGENT_STATE_STUBS "memfd:" SJ_AGENT_STATE_STUBS_FILE /* the name in /proc/PID/maps */
/* memory file of the stubs that stay after a detach */
#define SJ_AGENT_STATE_STUBS_FILE "sojourn-stubs"
#define SJ_AGENT_STATE_MAGIC UINT64_C(0x45544154534a53) /* "SJSTATE" */

enum { SJ_AGENT_STATE_VERSION = 13, SJ_AGENT_STATE_PATH_BYTES = 4096 };

/* Functions with this id or a higher one cannot be muted. */
enum { SJ_AGENT_STATE_MUTED_FUNCTIONS = 1 << 22 };

typedef enum sj_agent_state_phase {
    SJ_AGENT_STATE_IDLE = 0, /* loaded, no session */
    /* preloaded at the program's start (sojourn record), and connected to the recorder */
    SJ_AGENT_STATE_LAUNCHED = 1,
    /* attached: the stubs exist, no code of the program is changed yet */
    SJ_AGENT_STATE_PREPARED = 2,
    /* sojourn_agent_detach has run: the agent uses nothing of the program any longer */
    SJ_AGENT_STATE_DETACHED = 3,
    SJ_AGENT_STATE_FAILED = 4 /* the recorder did not reply; nothing was changed */
} sj_agent_state_phase;

/* State of the references of modules, or of a language's runtime, that a monitor changes.
 * sojourn_agent_bind changes them, sojourn_agent_unbind restores them. Both functions take the
 * loader's lock. */
typedef enum sj_agent_state_binding {
    SJ_AGENT_STATE_UNBOUND = 0, /* also if there is nothing to restore */
    SJ_AGENT_STATE_BOUND = 1,
    /* Recorded calls may still return through the agent's thunk (`return_thunk`). Nothing else
     * needs the agent. */
    SJ_AGENT_STATE_RELEASED = 2
} sj_agent_state_binding;

/* State of the agent in a JVM of the process. */
typedef enum sj_agent_state_jvm {
    SJ_AGENT_JVM_NONE = 0,    /* no classes have probes */
    SJ_AGENT_JVM_AWAITED = 1, /* the tracer has asked the agent to join the JVM */
    SJ_AGENT_JVM_BUSY = 2,    /* a thread of the agent is joining or leaving the JVM */
    SJ_AGENT_JVM_JOINED = 3,
    SJ_AGENT_JVM_SELECTING = 4 /* joined, and a thread of the agent is changing classes */
} sj_agent_state_jvm;

typedef struct sj_agent_state {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t phase; /* sj_agent_state_phase */
    /* An uneven number while the agent changes the tables that this structure refers to. A tracer
     * that reads one lets the threads run and checks again. */
    _Atomic uint32_t changing;
    uint32_t hooked_count; /* elements of the array of modules */
    /* 1: the agent prepares its changes but does not write them into the code. The tracer writes
     * them and then sets this to 0. */
    uint32_t prepare_only;
    _Atomic uint32_t binding; /* sj_agent_state_binding */
    uint64_t first_hooked;    /* address of the first sj_hooked_module */
    uint64_t hooked_stride;   /* bytes from one element to the next */
    uint64_t loader_hook;     /* address of the sj_hooked_module of the loader's debug hook */
    uint64_t loader_state;    /* address of the loader's struct r_debug; 0: unknown */
    /* Checksum of the loader's list of modules. A tracer compares it to detect later changes of the
     * list. */
    uint64_t known_modules;
    uint64_t handle; /* handle of the agent's library, for dlclose */
    sj_session_id session;
    char runtime_directory[SJ_AGENT_STATE_PATH_BYTES];
    /* Number of the stubs of method dispatch. The program may have kept pointers to them, so they
     * stay after a detach. */
    uint64_t message_stubs;
    /* bytes of the trampolines (core/api_trampolines.h), which stay after a detach */
    uint64_t api_trampoline_bytes;
    /* 1: a tracer is detaching, so the agent must not hook anything. Set while all threads are
     * stopped and the tables are not being changed. */
    _Atomic uint32_t is_detaching;
    /* 1: another thread must call sojourn_agent_bind once more. */
    _Atomic uint32_t bind_again;
    /* Address of an array of SJ_HEAP_PARTS sj_hooked_module (abi/heap_residue.h): the patched
     * functions that allocate. 0: none. */
    uint64_t heap_allocating;
    uint64_t heap_residue; /* address of the sj_heap_residue */
    uint64_t has_objects;  /* 1: the agent keeps freed objects */
    /* Tables of agent/abi/return_slots.h, from which a tracer restores return addresses. */
    uint64_t return_regions; /* address of the array of tables; 0: they cannot be restored */
    uint64_t return_thunk;   /* address that replaces the return addresses on stacks */
    uint64_t kept_stubs;     /* set by the tracer: code of the stubs that an earlier agent left */
    uint64_t leaf_stubs;     /* leaf stubs for probes of Java classes; 0: none */
    uint32_t leaf_stubs_bytes;
    _Atomic uint32_t jvm; /* sj_agent_state_jvm */
    /* Address of SJ_AGENT_STATE_MUTED_FUNCTIONS bytes, one per function, which a tracer writes.
     * While a byte is not 0, the probes of that Java method record nothing. 0: no table. */
    uint64_t muted_functions;
    /* Number of threads in which the agent has called code of the program that still runs. Their
     * stacks cannot be unwound. The agent is not unloaded before the number is 0. */
    _Atomic uint32_t calling_out;
    /* Address of the agent's restorer, to which signal handlers return. Tracers search stacks for
     * it (agent/abi/saved_context.h). 0: handlers return to the C library's restorer. */
    uint64_t signal_return;
    uint64_t stub_ranges; /* address of the sj_stub_ranges (agent/abi/stub_map.h) */
    /* 1: a monitor of the session has not started in this process. The agent sets it. In an
     * attached process the tracer clears it. */
    _Atomic uint32_t is_joining;
} sj_agent_state;

/* Returns what one module of the loader's list adds to `known_modules`, from its bias and the
 * address of its link_map. */
#define SJ_AGENT_STATE_MODULE_SUM(bias, map)                                                       \
    (((bias) ^ (map) << 7) * UINT64_C(0x9e3779b97f4a7c15) | 1)

/* The agent's own state. Other processes find it by its name. */
extern sj_agent_state sojourn_agent_state;

#endif
