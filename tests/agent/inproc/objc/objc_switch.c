/* A switch for the dispatch technique, for programs that hook and unhook themselves
 * (tests/samples/objc/objc_torture.m). The records go to an arena that no recorder drains. */
#include "agent/inproc/objc/dispatch.h"
#include "agent/inproc/recorder/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void objc_switch(int on);
EXPORTED void objc_switch_report(void);

static uint32_t next_function = 1;
static uint32_t turns;

static bool register_method(const sj_objc_report *method, uint32_t *function)
{
    (void)method;
    *function = getenv("OBJC_SWITCH_NONE") == NULL ? next_function++ : 0;
    return true;
}

static void start_recorder(void)
{
    static const sj_link_welcome welcome = {
        .max_threads = 64, .chunks_per_thread = 4, .full_policy = SJ_FULL_DROP_NEW};
    char name[32];
    const char *directory = getenv("OBJC_SWITCH_FOLDER");
    snprintf(name, sizeof(name), "%d.arena", (int)getpid());
    if (directory == NULL || sj_recorder_start(directory, name, &welcome) != SJ_OK) {
        fprintf(stderr, "no arena\n");
        _exit(2);
    }
    sj_recorder_set_state(SJ_ARENA_RECORDING);
}

EXPORTED void objc_switch(int on)
{
    if (turns++ == 0) {
        start_recorder();
    }
    if (on == 0) {
        sj_objc_dispatch_stop();
    } else if (sj_objc_dispatch_start(register_method) != SJ_OK) {
        fprintf(stderr, "no runtime\n");
        _exit(2);
    }
}

EXPORTED void objc_switch_report(void)
{
    sj_objc_counters counters;
    sj_objc_get_counters(&counters);
    printf("turns %u methods %u stubs %u slots %u refused %u\n", turns, counters.methods,
           counters.stubs, counters.slots, counters.refused);
}
