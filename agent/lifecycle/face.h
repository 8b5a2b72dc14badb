/* The face of the agent: what a process outside (attach, detach, ps, the overhead budget) reads of
 * it in the app's memory, found by the exported name SJ_FACE_SYMBOL. The agent keeps here, in the
 * app, everything that is needed to take it out again, so that any later tracer can do so when
 * the one that came first was killed. Native layout: both ends are on one machine. */
#ifndef SJ_AGENT_LIFECYCLE_FACE_H
#define SJ_AGENT_LIFECYCLE_FACE_H

#include "proto/ids.h"

#include <stdatomic.h>
#include <stdint.h>

#define SJ_FACE_SYMBOL "sojourn_agent_face"
#define SJ_FACE_ATTACH "sojourn_agent_attach"
#define SJ_FACE_LEAVE "sojourn_agent_leave"
#define SJ_FACE_REVIEW "sojourn_agent_review"
#define SJ_FACE_BIND "sojourn_agent_bind"
#define SJ_FACE_UNBIND "sojourn_agent_unbind"
#define SJ_FACE_UNREGISTER "sojourn_agent_unregister"
#define SJ_FACE_MAGIC UINT64_C(0x45434146524a53) /* "SJRFACE" */

enum { SJ_FACE_VERSION = 2, SJ_FACE_PATH_BYTES = 4096 };

typedef enum sj_face_phase {
    SJ_FACE_IDLE = 0,     /* loaded, no session */
    SJ_FACE_LAUNCHED = 1, /* of the program since its start (sojourn record) */
    SJ_FACE_PREPARED = 2, /* attached: stubs are made, nothing needs to be written yet */
    SJ_FACE_LEFT = 3,     /* sojourn_agent_leave has run: nothing of the app is in use any more */
    SJ_FACE_FAILED = 4    /* the companion did not answer; nothing was changed */
} sj_face_phase;

/* Whether a dispatcher is rebound. sojourn_agent_bind and sojourn_agent_unbind, which gives every
 * module its own back, take the loader's lock. */
typedef enum sj_face_binding {
    SJ_FACE_UNBOUND = 0,
    SJ_FACE_BOUND = 1,
    SJ_FACE_GIVEN_BACK = 2 /* the program may have kept stubs: the agent stays for good */
} sj_face_binding;

typedef struct sj_face {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t phase; /* sj_face_phase */
    /* Odd while the tables below are being changed: a tracer that finds it so lets the threads run
     * on and looks again. */
    _Atomic uint32_t changing;
    uint32_t hooked_count; /* elements of the array of modules */
    uint32_t
        prepare_only; /* 1: changes are kept for the tracer, who sets 0 when it has written them */
    _Atomic uint32_t binding; /* sj_face_binding */
    uint64_t first_hooked;    /* address of the first sj_hooked_module */
    uint64_t hooked_stride;   /* bytes from one to the next */
    uint64_t loader_hook;     /* address of the sj_hooked_module of the loader's debug hook */
    uint64_t loader_state;    /* address of the loader's struct r_debug; 0: unknown */
    uint64_t known_modules;   /* sum that tells whether the loader's list has changed since */
    uint64_t handle;          /* what dlclose takes */
    sj_session_id session;
    char runtime_directory[SJ_FACE_PATH_BYTES];
    uint64_t message_stubs;  /* of the dispatcher: the program may have kept any, so they stay */
    uint64_t api_gate_bytes; /* of the gates (api_gates.h), which stay */
    /* 1: a tracer takes the agent out, so nothing is hooked any more. Set while all threads are
     * stopped and the tables are not being changed. */
    _Atomic uint32_t is_leaving;
} sj_face;

/* What one module of the loader's list adds to `known_modules`: its bias and its link_map. */
#define SJ_FACE_MODULE_SUM(bias, map) (((bias) ^ (map) << 7) * UINT64_C(0x9e3779b97f4a7c15) | 1)

/* The agent's own; outside it is found by its name. */
extern sj_face sojourn_agent_face;

#endif
