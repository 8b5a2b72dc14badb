/* The commands that a collector can give to devices: names, arguments, timeouts. Invalid commands
 * are refused here, before they reach a device. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_COMMAND_KINDS_H
#define SJ_COLLECTOR_SERVER_FLEET_COMMAND_KINDS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The place where a command runs. */
typedef enum sj_command_place {
    SJ_COMMAND_ON_DEVICE,
    SJ_COMMAND_IN_COLLECTOR, /* in the collector, in the background: `export`, `record` */
    SJ_COMMAND_AT_ONCE,      /* in the collector, at once: `tags`, `quota`, `policy` */
    SJ_COMMAND_INTERNAL /* on the device; only the collector itself, no user, gives it: `policies`,
                         * `write` */
} sj_command_place;

typedef enum sj_field_type {
    SJ_FIELD_TEXT,
    SJ_FIELD_PATH,     /* absolute path */
    SJ_FIELD_TEXTS,    /* list of texts */
    SJ_FIELD_WORDS,    /* list of at least one text */
    SJ_FIELD_COMMANDS, /* list of lists of texts */
    SJ_FIELD_MAP,      /* object of texts */
    SJ_FIELD_TAGS,     /* object of texts or nulls; its keys consist of letters, digits, . _ - */
    SJ_FIELD_NUMBER,   /* integer, at least 1 */
    SJ_FIELD_FLAG,     /* true or false */
    SJ_FIELD_POLICY    /* a policy document, or the name of a shipped one */
} sj_field_type;

typedef struct sj_command_field {
    const char *name; /* NULL ends the list */
    sj_field_type type;
    bool is_required;
} sj_command_field;

enum { SJ_COMMAND_FIELDS = 14, SJ_COMMAND_TIMEOUT_MAX_MS = 86400000 };

typedef struct sj_command_kind {
    const char *name;
    const char *summary;
    sj_command_place place;
    uint32_t timeout_ms; /* default timeout */
    sj_command_field fields[SJ_COMMAND_FIELDS];
} sj_command_kind;

/* All commands. The last one has the name NULL. */
extern const sj_command_kind sj_command_kinds[];

/* Returns the command of that name, or NULL with SJ_EUNSUPPORTED in `error`. Internal commands
 * count as unknown. */
const sj_command_kind *sj_command_kind_find(const char *name, sj_error *error);

/* Checks arguments. Returns SJ_EINVAL with a message that names the field and what it must be.
 * Thread-safe. */
SJ_MUST_CHECK sj_status sj_command_kind_check(const sj_command_kind *kind, const json_t *arguments,
                                              sj_error *error);

#endif
