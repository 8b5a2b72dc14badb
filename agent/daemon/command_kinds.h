/* The commands, each a function in one of the files command_*.c; listed in commands.c. */
#ifndef SJ_AGENT_DAEMON_COMMAND_KINDS_H
#define SJ_AGENT_DAEMON_COMMAND_KINDS_H

#include "agent/daemon/commands.h"

/* What a command is given; `arguments` is an object. */
typedef struct sj_device_command {
    const sj_device_command_context *context;
    const json_t *arguments;
    int timeout_ms;
} sj_device_command;

/* A command returns its result, released by the caller, or says in `error` why it could not be
 * carried out. */
typedef sj_status (*sj_device_command_run_fn)(const sj_device_command *command, json_t **result,
                                              sj_error *error);

/* command_report.c: nothing changes */
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

/* command_record.c: recordings begin and end */
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

/* command_live.c: marks and dumps for running recordings */
SJ_MUST_CHECK sj_status sj_device_command_run_mark(const sj_device_command *command,
                                                   json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_dump(const sj_device_command *command,
                                                   json_t **result, sj_error *error);

/* command_write.c, device_policies.h */
SJ_MUST_CHECK sj_status sj_device_command_run_write(const sj_device_command *command,
                                                    json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_device_command_run_policies(const sj_device_command *command,
                                                       json_t **result, sj_error *error);

/* sj_device_command_spool_bytes sums up what lies in the spool. */
uint64_t sj_device_command_spool_bytes(const sj_device_command_context *context);

#endif
