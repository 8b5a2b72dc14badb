/* What the environment says to libsojourn-direct.so. */
#ifndef SJ_AGENT_DIRECT_SETTINGS_H
#define SJ_AGENT_DIRECT_SETTINGS_H

#include <stdbool.h>

enum { SJ_DIRECT_SETTINGS = 9, SJ_DIRECT_TEXT_BYTES = 16 * 1024 };

/* Values are "" where nothing is said. */
typedef struct sj_direct_settings {
    const char *url;         /* SOJOURN_DIRECT: the collector */
    const char *policy;      /* SOJOURN_DIRECT_POLICY: file or shipped policy; "": none */
    const char *spool;       /* SOJOURN_DIRECT_SPOOL: directory; "": the usual one */
    const char *spool_bytes; /* SOJOURN_DIRECT_SPOOL_BYTES; "": 256 MiB */
    const char *name;        /* SOJOURN_DIRECT_NAME: label of the session; "": none */
    const char *children;    /* SOJOURN_DIRECT_CHILDREN: all (also ""), forked, none */
    const char *wait;        /* SOJOURN_DIRECT_WAIT: seconds at the end; "": 2 */
    const char *log;         /* SOJOURN_DIRECT_LOG: file; "": the usual one */
    const char *token;       /* SOJOURN_TOKEN; "": none */
    bool is_too_long;        /* together they do not fit; then all are "" but perhaps some */
    const char *entries[SJ_DIRECT_SETTINGS + 1]; /* NAME=value of those that are there */
    char text[SJ_DIRECT_TEXT_BYTES];
} sj_direct_settings;

/* sj_direct_settings_take copies the settings and removes them, and this library from LD_PRELOAD,
 * from the environment in place: programs that the app runs meet the world as without it. False,
 * with nothing changed, when there is no SOJOURN_DIRECT. No allocation. */
bool sj_direct_settings_take(char **environment, sj_direct_settings *settings);

#endif
