/* Redaction: what a policy leaves out of a recording, on the device, before anything is stored. */
#ifndef SJ_AGENT_POLICY_REDACTION_H
#define SJ_AGENT_POLICY_REDACTION_H

#include "agent/policy/pattern.h"

enum { SJ_REDACTED_FUNCTIONS = 32, SJ_REDACTION_TEXT_BYTES = 64 };

/* Bits that say what frames leave out. */
enum { SJ_REDACT_COMMAND_LINES = 1, SJ_REDACT_PATHS = 2 };

typedef struct sj_redaction {
    bool paths;         /* paths are sent without their folders, and command lines are not sent */
    bool command_lines; /* command lines of processes are not sent */
    sj_pattern values[SJ_REDACTED_FUNCTIONS]; /* functions whose texts the program does not read */
    size_t value_count;
} sj_redaction;

/* Returns the bits that frames obey. Command lines contain paths, so `paths` also sets
 * SJ_REDACT_COMMAND_LINES. */
unsigned sj_redaction_bits(const sj_redaction *redaction);

/* True if two policies leave out the same things. */
bool sj_redaction_same(const sj_redaction *left, const sj_redaction *right);

/* Writes what is left out, such as "values,paths,command_lines"; "" if nothing is left out. */
void sj_redaction_describe(const sj_redaction *redaction, char text[SJ_REDACTION_TEXT_BYTES]);

/* True if one of `count` patterns names a function. A call into a library (LIBRARY!FUNCTION) is
 * also found by the name of the function. */
bool sj_redaction_names(const sj_pattern *patterns, size_t count, const char *symbol);

#endif
