/* The filter of Java classes: which of them are recorded, and which count as the system's. It
 * decides on names with dots: java.lang.String, com.acme.Outer$Inner. Immutable after it was
 * filled; any thread. */
#ifndef SJ_AGENT_POLICY_JAVA_FILTER_H
#define SJ_AGENT_POLICY_JAVA_FILTER_H

#include "agent/policy/pattern.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_JAVA_PATTERNS = 32 };

typedef struct sj_java_filter {
    sj_pattern classes[SJ_JAVA_PATTERNS]; /* only these; none: all that are not the system's */
    size_t class_count;
    sj_pattern excluded[SJ_JAVA_PATTERNS]; /* classes never recorded */
    size_t excluded_count;
    sj_pattern system[SJ_JAVA_PATTERNS]; /* the system's by name, in place of the default */
    size_t system_count;
    bool has_system; /* `system` holds, also when it is empty */
} sj_java_filter;

void sj_java_filter_free(sj_java_filter *filter); /* the patterns; safe on a zeroed one */

/* sj_java_filter_is_system: a class is the system's by its name; without patterns of the user those
 * of java.*, javax.*, jdk.*, sun.* and com.sun.*. */
bool sj_java_filter_is_system(const sj_java_filter *filter, const char *name);

/* sj_java_filter_wants decides on a class that is not the system's. */
bool sj_java_filter_wants(const sj_java_filter *filter, const char *name);

/* sj_java_filter_same compares what two filters ask for. */
bool sj_java_filter_same(const sj_java_filter *left, const sj_java_filter *right);

#endif
