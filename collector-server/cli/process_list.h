/* Lists the processes of this machine, and finds the process that a user names. */
#ifndef SJ_COLLECTOR_SERVER_CLI_PROCESS_LIST_H
#define SJ_COLLECTOR_SERVER_CLI_PROCESS_LIST_H

#include "collector-server/cli/command.h"
#include "proto/base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SJ_USER_NAME_BYTES = 33, SJ_COMMAND_LINE_BYTES = 4096 };

/* Lists the pids of all processes in ascending order. The caller frees `*pids`. Returns the number
 * of processes. If out of memory, some processes are missing. */
size_t sj_process_list(pid_t **pids);

/* Writes the name of a user, or the number if there is no name. May block on the user database. Not
 * thread-safe. */
void sj_process_user(uint32_t user, char name[SJ_USER_NAME_BYTES]);

/* Writes the command line of a process, with a space between its words and "?" for each control
 * character. Cuts it at SJ_COMMAND_LINE_BYTES. Writes "" if the process has none, or has ended. */
void sj_process_command(pid_t pid, char command[SJ_COMMAND_LINE_BYTES]);

/* Finds a process by its pid or by a name. The name may be its name in `ps`, the file name of its
 * program, or the file name in its command line's first word. Does not check whether a process with
 * the pid exists. A search by name skips the calling process. Fails with SJ_ENOTFOUND if no process
 * has the name. Fails with SJ_EINVAL if several processes have the name; the error lists them. Also
 * fails with SJ_EINVAL if the pid is not greater than 0 or is too large. */
SJ_MUST_CHECK sj_status sj_process_find(const char *text, pid_t *pid, sj_error *error);

/* Prints an error of sj_process_find. Returns SJ_EXIT_USAGE for SJ_EINVAL, else the exit code of
 * sj_exit_code. */
int sj_process_refuse(const sj_command *command, const sj_error *error);

#endif
