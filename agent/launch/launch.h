/* Launching the program so that it meets the world exactly as without Sojourn: same arguments,
 * environment (the agent removes what was added before main), working directory, descriptors,
 * signal mask and dispositions, process group and terminal.
 *
 * The child is forked before the recorder starts threads, opens files or touches signals, and waits
 * until it may go; so nothing of the recorder leaks into it. */
#ifndef SJ_AGENT_LAUNCH_LAUNCH_H
#define SJ_AGENT_LAUNCH_LAUNCH_H

#include "proto/base/error.h"

#include <sys/types.h>

typedef struct sj_launch_options {
    const char *path;              /* file to execute */
    const char *emulator;          /* what executes it; NULL: the kernel */
    const char *sysroot;           /* where the emulator finds libraries; NULL or "": it knows */
    char *const *arguments;        /* NULL-terminated; [0] as the user typed it */
    const char *agent_path;        /* libsojourn-agent.so */
    const char *runtime_directory; /* passed to the agent */
} sj_launch_options;

typedef struct sj_launch {
    pid_t pid;
    int go;     /* a byte here lets the child execute; closing it ends the child */
    int failed; /* errno of a failed exec comes from here; end of file: it worked */
} sj_launch;

/* sj_launch_prepare forks the waiting child. To be called before any thread is started. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_launch_prepare(const sj_launch_options *options, sj_launch *launch,
                                          sj_error *error);

/* sj_launch_go lets the child execute and waits until it has. `*exec_errno` is set when it failed
 * (SJ_EIO); the child is then gone and reaped. */
SJ_MUST_CHECK sj_status sj_launch_go(sj_launch *launch, int *exec_errno);

/* sj_launch_abandon ends and reaps a child that still waits; nothing when it runs or is gone. */
void sj_launch_abandon(sj_launch *launch);

#endif
