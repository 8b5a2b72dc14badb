/* Watches a process for its end: by a pidfd, or by its pid if the kernel has no pidfds. */
#ifndef SJ_AGENT_DRAIN_TRACKED_PROCESS_H
#define SJ_AGENT_DRAIN_TRACKED_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The file that a process runs; 0, 0: unknown. */
typedef struct sj_program_file {
    dev_t device;
    ino_t inode;
} sj_program_file;

typedef struct sj_tracked_process {
    pid_t pid;
    int pidfd;               /* -1: not supported by the kernel */
    sj_program_file program; /* the program when the watch began */
    /* the process was forked and had not executed a program when the watch began */
    bool is_only_forked;
    bool has_own_numbers; /* its tids are those of another PID namespace */
} sj_tracked_process;

/* Starts to watch `pid`. Always succeeds. Does not block. */
void sj_tracked_process_open(pid_t pid, sj_tracked_process *process);
void sj_tracked_process_close(sj_tracked_process *process);

/* True if the process has ended. A zombie has ended. */
bool sj_tracked_process_has_ended(const sj_tracked_process *process);

/* True if the process has a living thread `tid`. */
bool sj_tracked_process_has_thread(const sj_tracked_process *process, uint32_t tid);

/* Returns the tid of a thread that the process itself knows as `tid_inside`. Returns `tid_inside`
 * if the thread has ended. */
uint32_t sj_tracked_process_find_thread(const sj_tracked_process *process, uint32_t tid_inside);

/* Finds out how an ended process ended, in the format of wait(2). The process need not be a child
 * of the caller. Returns false if its parent has waited for it and the kernel is older than
 * 6.15. */
bool sj_tracked_process_find_status(const sj_tracked_process *process, int *wait_status);

/* True if the process runs another program file than when the watch began. False if it has executed
 * the same file again. */
bool sj_tracked_process_is_replaced(const sj_tracked_process *process);

/* True if the process was forked and, as the kernel says, has executed a program since. False if it
 * has not, was not forked, or its parent has waited for it. Does not block. */
bool sj_tracked_process_has_executed(const sj_tracked_process *process);

#endif
