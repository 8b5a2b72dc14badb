/* Test support: a companion of the simplest kind. It answers the agent, plans the sample's
 * functions by hand and keeps what it was told. */
#ifndef SJ_TESTS_AGENT_LIFECYCLE_COMPANION_H
#define SJ_TESTS_AGENT_LIFECYCLE_COMPANION_H

#include "agent/lifecycle/link.h"
#include "tests/agent/lifecycle/plan_builder.h"

#include <stdbool.h>

enum { COMPANION_OUTPUT_BYTES = 64 * 1024, COMPANION_ARENAS = 8 };

/* When the companion hangs up. */
typedef enum companion_fault {
    FAULT_NONE,
    FAULT_NO_SOCKET,
    FAULT_REFUSE,
    FAULT_AFTER_WELCOME,
    FAULT_AFTER_APPLIED, /* of the program itself */
    FAULT_BAD_PLAN,
    FAULT_GARBAGE
} companion_fault;

typedef struct companion {
    char directory[64];
    companion_fault fault;
    sj_link_welcome welcome;
    int listener;
    char output[COMPANION_OUTPUT_BYTES]; /* what the program printed */
    int status;                          /* how it ended */
    char arenas[COMPANION_ARENAS][64];
    uint32_t arena_count;
    uint32_t hello_count[4]; /* by occasion */
    uint32_t modules;
    uint32_t hooked;
    uint32_t failed;
    uint32_t unloaded;
    uint32_t done;
    uint32_t plans;
    bool saw_agent; /* the agent announced itself */
    bool saw_build_id;
} companion;

/* companion_run runs `arguments` with `environment` under the companion until it has ended and all
 * its output is read. */
void companion_run(companion *self, char *const *arguments, char *const *environment);

/* companion_open makes the runtime directory; companion_close removes it. */
void companion_open(companion *self, companion_fault fault, bool follow_children);
void companion_close(companion *self);

#endif
