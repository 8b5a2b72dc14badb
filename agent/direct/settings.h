/* The settings of libsojourn-direct.so, read from the environment. */
#ifndef SJ_AGENT_DIRECT_SETTINGS_H
#define SJ_AGENT_DIRECT_SETTINGS_H

#include <stdbool.h>

enum { SJ_DIRECT_SETTINGS = 9, SJ_DIRECT_TEXT_BYTES = 16 * 1024 };

/* A value that is not set is "". */
typedef struct sj_direct_settings {
    const char *url;         /* SOJOURN_DIRECT: URL of the collector */
    const char *policy;      /* SOJOURN_DIRECT_POLICY: file or shipped policy; "": none */
    const char *spool;       /* SOJOURN_DIRECT_SPOOL: directory; "": the default */
    const char *spool_bytes; /* SOJOURN_DIRECT_SPOOL_BYTES; "": 256 MiB */
    const char *name;        /* SOJOURN_DIRECT_NAME: label of the session; "": none */
    const char *children;    /* SOJOURN_DIRECT_CHILDREN: all (also ""), forked, none */
    const char *wait;        /* SOJOURN_DIRECT_WAIT: seconds at the end; "": 2 */
    const char *log;         /* SOJOURN_DIRECT_LOG: file; "": the default */
    const char *token;       /* SOJOURN_TOKEN; "": none */
    bool is_too_long;        /* the values do not fit into `text`; some or all are "" */
    const char *entries[SJ_DIRECT_SETTINGS + 1]; /* NAME=value of the variables that are set */
    char text[SJ_DIRECT_TEXT_BYTES];
} sj_direct_settings;

/* Copies the settings. Removes all variables SOJOURN_* from the environment, in place, and this
 * library from LD_PRELOAD. So programs that the app runs get the original environment.
 *
 * Returns false and changes nothing if SOJOURN_DIRECT is not set. Does not allocate. */
bool sj_direct_settings_consume(char **environment, sj_direct_settings *settings);

#endif
