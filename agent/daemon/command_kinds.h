/* The commands. Each is a function in commands.c or in a file command_*.c; commands.c lists
 * them.
 *
 * Each command returns SJ_ENOMEM if out of memory, and the errors named here. `error` has the
 * sentence for the user. `*result` belongs to the caller, and is NULL if there was no memory for
 * it. */
#ifndef SJ_AGENT_DAEMON_COMMAND_KINDS_H
#define SJ_AGENT_DAEMON_COMMAND_KINDS_H

#include "agent/daemon/commands.h"

/* The input of a command. `arguments` is an object. */
typedef struct sj_device_command {
    const sj_device_command_context *context;
    const json_t *arguments;
    int timeout_ms;
} sj_device_command;

/* Runs a command. The caller releases the result. If the command fails, `error` says why. */
typedef sj_status (*sj_device_command_run_fn)(const sj_device_command *command, json_t **result,
                                              sj_error *error);

/* Commands of command_report.c, which change nothing. `apps` returns an error of sj_apps_load.
 * `sessions` and `ps` return SJ_EIO if the spool, or /proc, cannot be read. */
SJ_MUST_CHECK sj_status sj_device_command_run_status(const sj_device_command *command,
                                                     json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_apps(const sj_device_command *command,
                                                   json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_doctor(const sj_device_command *command,
                                                     json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_sessions(const sj_device_command *command,
                                                       json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_ps(const sj_device_command *command, json_t **result,
                                                 sj_error *error);

/* Commands of command_record.c, which start and end recordings.
 *
 * All return SJ_EINVAL if an argument is invalid. `launch` and `prepare` return SJ_ENOTFOUND if the
 * device does not have the app. `launch`, `prepare` and `attach` return SJ_EFULL if the spool is
 * full. They return SJ_ETIMEDOUT if the recording does not start in time, or the error of the
 * recording's process. `attach` returns SJ_EEXIST if the process is recorded already. `detach`
 * returns SJ_ENOTFOUND if the process is not recorded, or an error of sj_detach. `shrink` returns
 * an error of sj_heap_shrink. `stop` returns SJ_ENOTFOUND if the session is not being recorded, or
 * SJ_EIO. */
SJ_MUST_CHECK sj_status sj_device_command_run_launch(const sj_device_command *command,
                                                     json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_prepare(const sj_device_command *command,
                                                      json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_attach(const sj_device_command *command,
                                                     json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_detach(const sj_device_command *command,
                                                     json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_shrink(const sj_device_command *command,
                                                     json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_stop(const sj_device_command *command,
                                                   json_t **result, sj_error *error);

/* Commands of command_live.c: marks and dumps for running recordings. Both return SJ_EINVAL if the
 * name is empty or too long, and SJ_ENOTFOUND if nothing is being recorded. They return SJ_EPERM if
 * the recorders refuse, and SJ_EIO if the spool cannot be read. */
SJ_MUST_CHECK sj_status sj_device_command_run_mark(const sj_device_command *command,
                                                   json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_dump(const sj_device_command *command,
                                                   json_t **result, sj_error *error);

/* The command `write` of command_write.c, and `policies` of commands.c. `write` returns SJ_EINVAL
 * if an argument is invalid, and SJ_ENOTFOUND if the folder cannot be opened. It returns SJ_EIO or
 * SJ_EFULL if the file cannot be written. It returns SJ_ECORRUPT if the collector's file has
 * another size, or an error of `fetch`. `policies` returns an error of sj_device_policies_keep. */
SJ_MUST_CHECK sj_status sj_device_command_run_write(const sj_device_command *command,
                                                    json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_policies(const sj_device_command *command,
                                                       json_t **result, sj_error *error);

/* Computes the disk space of all sessions in the spool, in bytes. Returns SJ_EIO if the spool
 * cannot be read. */
SJ_MUST_CHECK sj_status sj_device_command_spool_bytes(const sj_device_command_context *context,
                                                      uint64_t *bytes, sj_error *error);

#endif
