/* Launches a program with the same surroundings as without Sojourn: arguments, environment, working
 * directory, descriptors, signal mask and dispositions, process group, and terminal. The agent
 * removes its additions to the environment before main.
 *
 * The child is forked before the recorder starts threads, opens files or changes signals, and waits
 * until it may start. So it inherits nothing of the recorder. */
#ifndef SJ_AGENT_LAUNCH_LAUNCH_H
#define SJ_AGENT_LAUNCH_LAUNCH_H

#include "proto/base/error.h"

#include <sys/types.h>

typedef struct sj_launch_options {
    const char *path;     /* file to execute */
    const char *emulator; /* program that executes it; NULL: the kernel */
    /* folder of the emulator's libraries; NULL or "": the emulator's default */
    const char *sysroot;
    char *const *arguments;        /* NULL-terminated; [0] as the user typed it */
    const char *agent_path;        /* libsojourn-agent.so */
    const char *runtime_directory; /* passed to the agent */
} sj_launch_options;

typedef struct sj_launch {
    pid_t pid;
    int go;     /* a byte written here lets the child execute; closing it ends the child */
    int failed; /* a failed exec writes its errno here; end of file: exec succeeded */
} sj_launch;

/* Forks the waiting child. Call it before starting any thread. Returns SJ_EIO on failure. */
SJ_MUST_CHECK sj_status sj_launch_prepare(const sj_launch_options *options, sj_launch *launch,
                                          sj_error *error);

/* Lets the child execute, and waits until it has. If exec failed, sets `*exec_errno` and returns
 * SJ_EIO; the child is then reaped. */
SJ_MUST_CHECK sj_status sj_launch_go(sj_launch *launch, int *exec_errno);

/* Ends and reaps a child that is still waiting. Does nothing if the child runs or has ended. */
void sj_launch_abandon(sj_launch *launch);

#endif
