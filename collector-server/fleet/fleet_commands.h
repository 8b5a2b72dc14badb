/* The table `commands`: each command, its device and its result. Threads must not share an
 * sj_fleet. Functions also return errors of the database. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_COMMANDS_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_COMMANDS_H

#include "collector-server/fleet/fleet.h"

enum { SJ_FLEET_KIND_BYTES = 32, SJ_FLEET_ARGUMENTS_BYTES = 48 * 1024 };

typedef struct sj_fleet_new_command {
    int64_t device_id;
    const char *kind;
    const char *arguments; /* JSON object */
    const char *requested_by;
    uint32_t timeout_ms;
    bool is_for_collector; /* the collector itself carries it out; its first state is "preparing" */
} sj_fleet_new_command;

/* Queues a command. Returns SJ_ELIMIT if it is too long. */
SJ_MUST_CHECK sj_status sj_fleet_command_add(sj_fleet *fleet,
                                             const sj_fleet_new_command *new_command,
                                             int64_t *command_id, sj_error *error);

typedef struct sj_fleet_command {
    int64_t command_id;
    int64_t device_id;
    uint32_t timeout_ms;
    char kind[SJ_FLEET_KIND_BYTES];
    char arguments[SJ_FLEET_ARGUMENTS_BYTES];
} sj_fleet_command;

typedef struct sj_fleet_poll {
    int64_t instance;      /* random number of the daemon's process; 0: it sent none */
    bool is_restart;       /* the daemon's process has just started, and no other one is known */
    uint64_t last_command; /* number of the latest command that the daemon began; 0: none */
    const char *status;    /* JSON object; any other text is stored as {} */
} sj_fleet_poll;

/* Stores the status that a device reports. Also sets sent commands with numbers up to
 * `last_command` to "failed": the daemon was restarted before it sent their results. Skips commands
 * that another process claimed, because it may still send their results. If `is_restart`, does not
 * skip these. */
SJ_MUST_CHECK sj_status sj_fleet_note_poll(sj_fleet *fleet, int64_t device_id,
                                           const sj_fleet_poll *poll, sj_error *error);

/* Returns the next command after `last_command` for a process of a device's daemon, and marks it as
 * sent. The next command may have been sent before, unless another process has claimed it. A
 * process without a number (`instance` 0) claims the command by this call. Returns SJ_ENOTFOUND if
 * there is no command, or if the device's token was revoked. */
SJ_MUST_CHECK sj_status sj_fleet_next(sj_fleet *fleet, int64_t device_id, int64_t instance,
                                      uint64_t last_command, sj_fleet_command *command,
                                      sj_error *error);

/* Gives a process of a device's daemon the right to carry out a command that was sent to the
 * device. Later calls for the same process succeed, too. Returns SJ_EEXIST if another process has
 * the right. Returns SJ_ENOTFOUND if the command has ended, was not sent, or belongs to another
 * device. */
SJ_MUST_CHECK sj_status sj_fleet_claim(sj_fleet *fleet, int64_t device_id, int64_t instance,
                                       uint64_t command_id, sj_error *error);

/* Stores that two processes now poll with a device's identity. Writes at most once a minute for
 * each device. */
SJ_MUST_CHECK sj_status sj_fleet_note_copy(sj_fleet *fleet, int64_t device_id, sj_error *error);

/* Returns the next command after `after` that the collector carries out itself, or SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_fleet_next_for_collector(sj_fleet *fleet, int64_t after,
                                                    sj_fleet_command *command, sj_error *error);

/* Stores the result of a command that was sent, is being prepared, or has timed out. Does nothing
 * if the command already has a result. */
SJ_MUST_CHECK sj_status sj_fleet_finish(sj_fleet *fleet, int64_t device_id, uint64_t command_id,
                                        bool failed, const char *result, sj_error *error);

/* Stores the size of the file that a command has made. */
SJ_MUST_CHECK sj_status sj_fleet_note_file(sj_fleet *fleet, int64_t command_id, int64_t bytes,
                                           sj_error *error);

/* Returns SJ_OK if a `write` command for this file was sent to the device and has not ended.
 * Returns SJ_EPERM otherwise. */
SJ_MUST_CHECK sj_status sj_fleet_may_fetch(sj_fleet *fleet, int64_t device_id, uint64_t file,
                                           sj_error *error);

/* Sets commands whose timeout has passed to "timed_out". */
SJ_MUST_CHECK sj_status sj_fleet_expire(sj_fleet *fleet, sj_error *error);

#endif
