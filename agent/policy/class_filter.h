/* Class filter: decides which methods of a runtime are recorded, by class, selector, ancestors, and
 * whether the class belongs to the system. It uses a method's name, which the runtime's descriptor
 * splits (agent/runtimes/runtime.h). If the name contains a class, that is the receiver's class.
 * Immutable once filled; thread-safe. */
#ifndef SJ_AGENT_POLICY_CLASS_FILTER_H
#define SJ_AGENT_POLICY_CLASS_FILTER_H

#include "agent/policy/pattern.h"
#include "agent/runtimes/class_table.h"
#include "agent/runtimes/runtime.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_CLASS_PATTERNS = 32 };

typedef struct sj_class_filter {
    sj_pattern classes[SJ_CLASS_PATTERNS]; /* record only these; empty: all */
    size_t class_count;
    sj_pattern excluded[SJ_CLASS_PATTERNS]; /* classes that are never recorded */
    size_t excluded_count;
    sj_pattern selectors[SJ_CLASS_PATTERNS]; /* record only these; empty: all */
    size_t selector_count;
    sj_pattern ancestors[SJ_CLASS_PATTERNS]; /* record only these classes and their descendants */
    size_t ancestor_count;
    sj_pattern system[SJ_CLASS_PATTERNS]; /* classes of the system; they replace is_system_class */
    size_t system_count;
    sj_pattern loaders[SJ_CLASS_PATTERNS]; /* record only classes of these loaders; empty: all */
    size_t loader_count;
    bool has_system; /* use `system`, even if it is empty */
    /* exclude classes of system libraries and those that is_system_class recognises */
    bool without_system;
    sj_class_find find; /* NULL: no information about classes */
    void *context;      /* passed to `find`; borrowed */
} sj_class_filter;

/* Frees the patterns. A zeroed filter is allowed. */
void sj_class_filter_free(sj_class_filter *filter);

/* True if the filter needs information about classes. */
bool sj_class_filter_needs_classes(const sj_class_filter *filter);

/* True if the filter wants a method. A name that is not a method's is always wanted. */
bool sj_class_filter_wants(const sj_class_filter *filter, const char *name);

/* sj_class_filter_wants_methods_of returns true if the filter wants methods of a class,
 * sj_class_filter_wants_selector if it wants methods with a selector. sj_class_filter_wants returns
 * true if both do. */
bool sj_class_filter_wants_methods_of(const sj_class_filter *filter, const char *class);
bool sj_class_filter_wants_selector(const sj_class_filter *filter, const char *selector);

/* sj_class_filter_wants_class returns true if the filter wants a class by its name,
 * sj_class_filter_wants_loader if it wants classes of a loader. sj_class_filter_is_system returns
 * true if a class belongs to the system. */
bool sj_class_filter_wants_class(const sj_class_filter *filter, const char *name);
bool sj_class_filter_wants_loader(const sj_class_filter *filter, const char *loader);
bool sj_class_filter_is_system(const sj_class_filter *filter, const sj_runtime *runtime,
                               const char *name);

/* True if a class is wanted by its ancestors. `lineage`: their names, each NUL-terminated. */
bool sj_class_filter_wants_descendant(const sj_class_filter *filter, const char *name,
                                      sj_slice lineage);

/* True if two filters want the same methods. */
bool sj_class_filter_same(const sj_class_filter *left, const sj_class_filter *right);

#endif
