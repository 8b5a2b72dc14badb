/* The commands of the `sojourn` program. Each command is in a separate file. */
#ifndef SJ_COLLECTOR_SERVER_CLI_COMMANDS_H
#define SJ_COLLECTOR_SERVER_CLI_COMMANDS_H

#include "collector-server/cli/command.h"

extern const sj_command sj_command_record;
extern const sj_command sj_command_attach;
extern const sj_command sj_command_bench;
extern const sj_command sj_command_detach;
extern const sj_command sj_command_ps;
extern const sj_command sj_command_mark;
extern const sj_command sj_command_policy;
extern const sj_command sj_command_trigger;
extern const sj_command sj_command_functions;
extern const sj_command sj_command_flush;
extern const sj_command sj_command_devices;
extern const sj_command sj_command_device;
extern const sj_command sj_command_token;
extern const sj_command sj_command_audit;
extern const sj_command sj_command_doctor;
extern const sj_command sj_command_sessions;
extern const sj_command sj_command_session;
extern const sj_command sj_command_report;
extern const sj_command sj_command_completion;
extern const sj_command sj_command_replay;
extern const sj_command sj_command_tree;
extern const sj_command sj_command_sql;
extern const sj_command sj_command_stalls;
extern const sj_command sj_command_flame;
extern const sj_command sj_command_forward;
extern const sj_command sj_command_symbols;
extern const sj_command sj_command_verify;
extern const sj_command sj_command_backup;
extern const sj_command sj_command_restore;
extern const sj_command sj_command_salvage;
extern const sj_command sj_command_diff;
extern const sj_command sj_command_check;
extern const sj_command sj_command_coverage;
extern const sj_command sj_command_export;
extern const sj_command sj_command_import;
extern const sj_command sj_command_zombies;
extern const sj_command sj_ui_command;
extern const sj_command sj_command_help_page; /* `sojourn help` */
extern const sj_command sj_command_version;

/* Returns the command called `name`, or NULL. */
const sj_command *sj_command_find(const char *name);

/* Returns the command name that the user probably meant. Returns NULL if no name is similar
 * enough. */
const char *sj_command_nearest(const char *name);

#endif
