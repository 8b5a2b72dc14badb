/* The commands that a collector can give: names, arguments, time-outs. A wrong one is refused here,
 * before any device sees it. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_COMMAND_KINDS_H
#define SJ_COLLECTOR_SERVER_FLEET_COMMAND_KINDS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a command is carried out. */
typedef enum sj_command_place {
    SJ_COMMAND_ON_DEVICE,
    SJ_COMMAND_IN_COLLECTOR, /* by the collector, in the background: `export` */
    SJ_COMMAND_AT_ONCE,      /* a change of the collector's own tables: `tags`, `policy` */
    SJ_COMMAND_INTERNAL      /* by the device, but never given by people: `policies`, `write` */
} sj_command_place;

typedef enum sj_field_type {
    SJ_FIELD_TEXT,
    SJ_FIELD_PATH,     /* absolute */
    SJ_FIELD_TEXTS,    /* list of texts */
    SJ_FIELD_WORDS,    /* list of at least one text */
    SJ_FIELD_COMMANDS, /* list of lists of words */
    SJ_FIELD_MAP,      /* object of texts */
    SJ_FIELD_TAGS,     /* object of texts or nulls, its keys made of letters, digits, . _ - */
    SJ_FIELD_NUMBER,   /* whole, from 1 */
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
    uint32_t timeout_ms; /* when nobody says */
    sj_command_field fields[SJ_COMMAND_FIELDS];
} sj_command_kind;

/* sj_command_kinds lists every command, ended by one whose name is NULL. */
extern const sj_command_kind sj_command_kinds[];

/* sj_command_kind_find returns the command of that name; NULL with SJ_EUNSUPPORTED in `error`. */
const sj_command_kind *sj_command_kind_find(const char *name, sj_error *error);

/* sj_command_kind_check checks arguments: SJ_EINVAL names the field and what it has to be. Any
 * thread.
 */
SJ_MUST_CHECK sj_status sj_command_kind_check(const sj_command_kind *kind, const json_t *arguments,
                                              sj_error *error);

#endif
