/* The class filter: which methods of a runtime are recorded, by class, selector, ancestors and
 * whether the class belongs to the system. It decides by a method's name, which the runtime's
 * descriptor splits (agent/runtimes/runtime.h); the class is the receiver's where the name has it.
 * Immutable after it was filled; any thread. */
#ifndef SJ_AGENT_POLICY_CLASS_FILTER_H
#define SJ_AGENT_POLICY_CLASS_FILTER_H

#include "agent/policy/pattern.h"
#include "agent/runtimes/class_table.h"
#include "agent/runtimes/runtime.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_CLASS_PATTERNS = 32 };

typedef struct sj_class_filter {
    sj_pattern classes[SJ_CLASS_PATTERNS]; /* only these; none: all */
    size_t class_count;
    sj_pattern excluded[SJ_CLASS_PATTERNS]; /* classes never recorded */
    size_t excluded_count;
    sj_pattern selectors[SJ_CLASS_PATTERNS]; /* only these; none: all */
    size_t selector_count;
    sj_pattern ancestors[SJ_CLASS_PATTERNS]; /* only these classes and what descends from them */
    size_t ancestor_count;
    sj_pattern
        system[SJ_CLASS_PATTERNS]; /* the system's, in place of what is_system_class guesses */
    size_t system_count;
    sj_pattern loaders[SJ_CLASS_PATTERNS]; /* only classes of these; none: of all */
    size_t loader_count;
    bool has_system;     /* `system` holds, also when it is empty */
    bool without_system; /* not what a system library defines, nor what is_system_class guesses */
    sj_class_find find;  /* NULL: nothing is known of any class */
    void *context;       /* of `find`; borrowed */
} sj_class_filter;

void sj_class_filter_free(sj_class_filter *filter); /* the patterns; safe on a zeroed one */

/* sj_class_filter_needs_classes returns whether the filter asks what is known of classes. */
bool sj_class_filter_needs_classes(const sj_class_filter *filter);

/* sj_class_filter_wants decides on a method; what is no method is wanted. */
bool sj_class_filter_wants(const sj_class_filter *filter, const char *name);

/* The two parts of that decision: on all methods of a class, and on a method of any class. */
bool sj_class_filter_wants_methods_of(const sj_class_filter *filter, const char *class);
bool sj_class_filter_wants_selector(const sj_class_filter *filter, const char *selector);

/* sj_class_filter_wants_class decides on a class before it has methods, by its name alone,
 * sj_class_filter_wants_loader by its loader's; which are the system's says
 * sj_class_filter_is_system. */
bool sj_class_filter_wants_class(const sj_class_filter *filter, const char *name);
bool sj_class_filter_wants_loader(const sj_class_filter *filter, const char *loader);
bool sj_class_filter_is_system(const sj_class_filter *filter, const sj_runtime *runtime,
                               const char *name);

/* sj_class_filter_wants_descendant decides on a class by what it is and what it descends from:
 * names, each terminated. */
bool sj_class_filter_wants_descendant(const sj_class_filter *filter, const char *name,
                                      sj_slice lineage);

/* sj_class_filter_same compares what two filters ask for. */
bool sj_class_filter_same(const sj_class_filter *left, const sj_class_filter *right);

#endif
