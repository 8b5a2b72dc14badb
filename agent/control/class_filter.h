/* The class filter: which Objective-C messages are recorded, by class, selector, ancestors and
 * whether the class belongs to the system. It decides on names as runtimes tell them:
 * -[Class selector], +[Class(Category) selector], -[Receiver:Owner selector]; the class is the
 * receiver's where it is told. Immutable after it was filled; any thread. */
#ifndef SJ_AGENT_CONTROL_CLASS_FILTER_H
#define SJ_AGENT_CONTROL_CLASS_FILTER_H

#include "agent/policy/pattern.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_CLASS_PATTERNS = 32 };

/* What is known of a class. */
typedef struct sj_known_class {
    const char *name;
    const char *super; /* NULL: a root class */
    bool is_system;    /* a system library defines it */
} sj_known_class;

/* Finds a class by name; false when nothing is known of it. */
typedef bool (*sj_class_find)(void *context, const char *name, sj_known_class *class);

typedef struct sj_class_filter {
    sj_pattern classes[SJ_CLASS_PATTERNS]; /* only these; none: all */
    size_t class_count;
    sj_pattern excluded[SJ_CLASS_PATTERNS]; /* classes never recorded */
    size_t excluded_count;
    sj_pattern selectors[SJ_CLASS_PATTERNS]; /* only these; none: all */
    size_t selector_count;
    sj_pattern ancestors[SJ_CLASS_PATTERNS]; /* only these classes and what descends from them */
    size_t ancestor_count;
    bool without_system; /* not what a system library defines, nor NS*, GS* of unknown origin */
    sj_class_find find;  /* NULL: nothing is known of any class */
    void *context;       /* of `find`; borrowed */
} sj_class_filter;

void sj_class_filter_free(sj_class_filter *filter); /* the patterns; safe on a zeroed one */

/* sj_class_filter_is_method tells whether a name is that of a method. */
bool sj_class_filter_is_method(const char *name);

/* sj_class_filter_is_system_name guesses from its name whether a class whose origin nobody knows
 * belongs to the system. */
bool sj_class_filter_is_system_name(const char *name);

/* sj_class_filter_needs_classes tells whether the filter asks what is known of classes. */
bool sj_class_filter_needs_classes(const sj_class_filter *filter);

/* sj_class_filter_wants decides on a method; what is no method is wanted. */
bool sj_class_filter_wants(const sj_class_filter *filter, const char *name);

#endif
