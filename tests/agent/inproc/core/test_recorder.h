/* Test support: a minimal recorder. It replies to the agent, plans the sample's functions by hand
 * and keeps what it received. */
#ifndef SJ_TESTS_AGENT_INPROC_CORE_TEST_RECORDER_H
#define SJ_TESTS_AGENT_INPROC_CORE_TEST_RECORDER_H

#include "agent/abi/link.h"
#include "tests/agent/inproc/core/plan_builder.h"

#include <stdbool.h>

enum { RECORDER_OUTPUT_BYTES = 64 * 1024, RECORDER_ARENAS = 8 };

/* How the recorder fails: it has no socket, closes the connection early, or sends bad bytes. */
typedef enum test_recorder_fault {
    FAULT_NONE,
    FAULT_NO_SOCKET,
    FAULT_REFUSE,
    FAULT_AFTER_WELCOME,
    FAULT_AFTER_APPLIED, /* after the program's own plan was applied */
    FAULT_BAD_PLAN,
    FAULT_GARBAGE
} test_recorder_fault;

typedef struct test_recorder {
    char directory[64];
    test_recorder_fault fault;
    sj_link_welcome welcome;
    int listener;
    char output[RECORDER_OUTPUT_BYTES]; /* the program's output */
    int status;                         /* the program's wait status */
    char arenas[RECORDER_ARENAS][64];
    uint32_t arena_count;
    uint32_t hello_count[4]; /* HELLO packets by occasion */
    uint32_t modules;
    uint32_t hooked;
    uint32_t failed;
    uint32_t unloaded;
    uint32_t done;
    uint32_t plans;
    bool saw_agent; /* true if the agent connected */
    bool saw_build_id;
} test_recorder;

/* Runs `arguments` with `environment` under the recorder until the program has ended and all its
 * output is read. */
void test_recorder_run(test_recorder *self, char *const *arguments, char *const *environment);

/* test_recorder_open makes the runtime directory; test_recorder_close removes it. */
void test_recorder_open(test_recorder *self, test_recorder_fault fault, bool follow_children);
void test_recorder_close(test_recorder *self);

#endif
