/* The link: the short conversation between the agent and its companion (the `sojourn record`
 * process or the daemon), over a SOCK_SEQPACKET socket at `<runtime directory>/control`.
 *
 * The agent connects when it is loaded and when the program loads further modules, and closes the
 * socket before it returns to the program: nothing stays open in the app. Every packet is one
 * sj_link_packet plus `payload_bytes` bytes. The companion answers within SJ_LINK_TIMEOUT_MS or the
 * agent goes on without (counted). All integers native-endian: both ends are on one machine.
 *
 *   agent                         companion
 *   HELLO (arena name, pid)   ->
 *                             <-  WELCOME (session, ring sizes, policy)     or REFUSED (reason)
 *   MODULE (path, bias, id)   ->
 *                             <-  PLAN (plan path, first function id)       or SKIP (reason)
 *   ... one MODULE per loaded module ...
 *   APPLIED (module, counts,
 *            failed functions) -> (one per PLAN)
 *   DONE                      ->
 *                             <-  DONE
 */
#ifndef SJ_AGENT_LIFECYCLE_LINK_H
#define SJ_AGENT_LIFECYCLE_LINK_H

#include "proto/ids.h"

#include <stdint.h>

/* Environment of a launched app; the agent removes them (and itself from LD_PRELOAD) before main.
 */
#define SJ_ENV_RUNTIME "SOJOURN_RUNTIME" /* runtime directory of the session */
#define SJ_ENV_PRELOAD                                                                             \
    "SOJOURN_PRELOAD" /* LD_PRELOAD as it was before; unset when it was unset                      \
                       */

enum { SJ_LINK_VERSION = 1, SJ_LINK_TIMEOUT_MS = 30000, SJ_LINK_MAX_BYTES = 64 * 1024 };

typedef enum sj_link_type {
    SJ_LINK_HELLO = 1,
    SJ_LINK_WELCOME = 2,
    SJ_LINK_REFUSED = 3,
    SJ_LINK_MODULE = 4,
    SJ_LINK_PLAN = 5,
    SJ_LINK_SKIP = 6,
    SJ_LINK_APPLIED = 7,
    SJ_LINK_DONE = 8,
    SJ_LINK_UNLOADED = 9, /* a module was unloaded: sj_link_module with its bias */
    SJ_LINK_REVIEW = 10,  /* as MODULE, of one that was told before: what more is wanted of it? */
    SJ_LINK_IMPORTS = 11, /* as MODULE, of one whose plan has no imports: which are wanted? */
    /* From commands of the same user, without HELLO; answered by DONE or REFUSED (reason) */
    SJ_LINK_MARK = 48,         /* sj_link_mark */
    SJ_LINK_TRIGGER = 49,      /* sj_link_mark, `end` 0: a trigger "command" of that name */
    SJ_LINK_POLICY = 50,       /* a policy's document, to be obeyed from now on; DONE tells what it
                                  did, as JSON */
    SJ_LINK_POLICY_ASK = 51,   /* DONE carries the document that is obeyed */
    SJ_LINK_METHODS = 64,      /* agent: a dynamic runtime's methods are to be functions */
    SJ_LINK_METHODS_ADDED = 65 /* companion's answer; SKIP: none of them */
} sj_link_type;

typedef struct sj_link_packet {
    uint16_t version; /* SJ_LINK_VERSION */
    uint16_t type;    /* sj_link_type */
    uint32_t payload_bytes;
} sj_link_packet;

/* Why the agent speaks: what HELLO announces. */
typedef enum sj_link_occasion {
    SJ_OCCASION_START = 0, /* program start */
    SJ_OCCASION_FORK = 1,  /* a forked child goes on as a process of the session */
    SJ_OCCASION_DLOPEN = 2,
    SJ_OCCASION_ATTACH = 3
} sj_link_occasion;

typedef struct sj_link_hello {
    uint32_t pid;
    uint32_t tid;
    uint32_t parent_pid;
    uint32_t occasion;   /* sj_link_occasion */
    char arena_name[64]; /* file in the runtime directory; START, FORK, ATTACH: the agent creates it
                            right after WELCOME; DLOPEN: the one in use */
} sj_link_hello;

/* Bits of sj_link_welcome.runtimes. */
typedef enum sj_link_runtime {
    SJ_LINK_RUNTIME_OBJC_DISPATCH = 1, /* record Objective-C messages where they are dispatched */
    SJ_LINK_RUNTIME_LOOPS = 2,         /* note when threads wait for events */
    SJ_LINK_RUNTIME_LIBRARY_CALLS = 4  /* ask for IMPORTS: as the policy is at this moment */
} sj_link_runtime;

/* Which children join the session. */
typedef enum sj_follow {
    SJ_FOLLOW_NONE = 0,
    SJ_FOLLOW_FORK = 1, /* forked ones, as long as they run the same program */
    SJ_FOLLOW_EXEC = 2  /* programs that the process or its children run */
} sj_follow;

typedef struct sj_link_welcome {
    sj_session_id session;
    uint32_t max_threads;
    uint32_t chunks_per_thread;
    uint32_t full_policy; /* sj_full_policy */
    uint32_t block_ms;
    uint32_t follow_children; /* sj_follow bits */
    uint32_t runtimes;        /* sj_link_runtime bits: what the agent does besides applying plans */
} sj_link_welcome;

typedef struct sj_link_module {
    uint64_t bias;
    uint64_t text_low; /* absolute addresses of the executable segment */
    uint64_t text_high;
    uint32_t is_main; /* 1 for the program itself */
    uint32_t build_id_bytes;
    uint8_t build_id[SJ_BUILD_ID_MAX_BYTES];
    uint32_t path_bytes; /* path follows, not terminated */
    uint32_t reserved;
} sj_link_module;

typedef struct sj_link_plan {
    uint32_t first_function; /* id of function[0]: ids are dense per session, from 1 */
    uint32_t path_bytes;     /* path of the plan file follows, not terminated */
} sj_link_plan;

typedef struct sj_link_methods {
    uint32_t count;
    uint32_t lineage_bytes; /* NUL-terminated names: the receivers' class, its ancestors */
    uint32_t names_bytes;   /* `count` of those; then a byte each: 1 its module is left alone */
    uint32_t reserved;
} sj_link_methods;

typedef struct sj_link_methods_added {
    uint32_t first_function; /* the others follow it */
    uint32_t count;          /* that many bytes follow: 1 wanted, 0 left out by the selection */
} sj_link_methods_added;

typedef struct sj_link_skip {
    uint32_t reason; /* sj_skip */
} sj_link_skip;

typedef struct sj_link_applied {
    uint64_t bias;
    uint32_t first_function;
    uint32_t hooked;
    uint32_t failed; /* that many sj_link_failure follow, at most what fits one packet */
    uint32_t stub_bytes;
    uint64_t elapsed_ns; /* time that the agent spent on the module */
} sj_link_applied;

enum { SJ_LINK_MARK_NAME_BYTES = 255 };

typedef struct sj_link_mark {
    uint32_t end;        /* 0: begin, 1: end */
    uint32_t name_bytes; /* 1 to SJ_LINK_MARK_NAME_BYTES; the name follows, not terminated */
} sj_link_mark;

typedef struct sj_link_failure {
    uint32_t function; /* index in the plan */
    uint32_t skip;     /* sj_skip */
} sj_link_failure;

#endif
