/* The commands. Each is a function in commands.c or in a file command_*.c; commands.c lists
 * them. */
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

/* Commands of command_report.c, which change nothing. */
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

/* Commands of command_record.c, which start and end recordings. */
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

/* Commands of command_live.c: marks and dumps for running recordings. */
SJ_MUST_CHECK sj_status sj_device_command_run_mark(const sj_device_command *command,
                                                   json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_dump(const sj_device_command *command,
                                                   json_t **result, sj_error *error);

/* The command `write` of command_write.c, and `policies` of commands.c. */
SJ_MUST_CHECK sj_status sj_device_command_run_write(const sj_device_command *command,
                                                    json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_policies(const sj_device_command *command,
                                                       json_t **result, sj_error *error);

/* Computes the disk space of all sessions in the spool, in bytes. Returns SJ_EIO if the spool
 * cannot be read. */
SJ_MUST_CHECK sj_status sj_device_command_spool_bytes(const sj_device_command_context *context,
                                                      uint64_t *bytes, sj_error *error);

#endif
