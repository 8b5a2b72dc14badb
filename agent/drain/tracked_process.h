/* A process whose end is watched: by a pidfd, or by its number where the kernel has none. */
#ifndef SJ_AGENT_DRAIN_TRACKED_PROCESS_H
#define SJ_AGENT_DRAIN_TRACKED_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The file that a process runs; 0, 0: not known. */
typedef struct sj_program_file {
    dev_t device;
    ino_t inode;
} sj_program_file;

typedef struct sj_tracked_process {
    pid_t pid;
    int pidfd;               /* -1: the kernel has none */
    sj_program_file program; /* when the process began to be watched */
    bool is_only_forked;     /* it had executed nothing then */
} sj_tracked_process;

/* sj_tracked_process_open begins to watch `pid`; it always succeeds. Not blocking. */
void sj_tracked_process_open(pid_t pid, sj_tracked_process *process);
void sj_tracked_process_close(sj_tracked_process *process);

/* sj_tracked_process_has_ended returns whether the process has ended; one that waits to be reaped
 * has. */
bool sj_tracked_process_has_ended(const sj_tracked_process *process);

/* sj_tracked_process_has_thread returns whether it has a living thread `tid`. */
bool sj_tracked_process_has_thread(const sj_tracked_process *process, uint32_t tid);

/* sj_tracked_process_find_status says how an ended process ended, as wait(2) gives it; the process
 * need not be a child. False: that cannot be known any more (its parent has waited for it, and the
 * kernel is older than 6.15). */
bool sj_tracked_process_find_status(const sj_tracked_process *process, int *wait_status);

/* sj_tracked_process_is_replaced returns whether the process runs another program (exec) than when
 * it began to be watched. */
bool sj_tracked_process_is_replaced(const sj_tracked_process *process);

/* sj_tracked_process_has_executed returns true if the process was forked, and the kernel says that
 * it has executed a program since. False: it has not, was not forked, or its parent has waited for
 * it. Not blocking. */
bool sj_tracked_process_has_executed(const sj_tracked_process *process);

#endif
