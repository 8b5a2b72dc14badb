/* The selection: which modules and functions of a program are recorded.
 *
 * By default the program itself and the libraries that are its own (not in system directories).
 * Never: the loader, libc and Sojourn's own agent. Immutable after it was filled; any thread. */
#ifndef SJ_AGENT_POLICY_SELECTION_H
#define SJ_AGENT_POLICY_SELECTION_H

#include "agent/policy/class_filter.h"
#include "agent/policy/pattern.h"
#include "agent/policy/value_rules.h"
#include "agent/runtimes/runtime.h"
#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SELECTION_GLOBS = 64 };

/* What is recorded of the methods of one runtime. */
typedef struct sj_runtime_selection {
    bool dispatch;           /* recorded where they are dispatched, not patched */
    bool receivers;          /* patched methods record the class of their receiver, too */
    bool in_place;           /* by the second of the runtime's engines */
    bool lines;              /* it is recorded which of their lines run */
    sj_class_filter classes; /* which of them */
} sj_runtime_selection;

/* Patterns: those of modules are matched against path and file name, those of functions against the
 * symbol and its source name, those of sources against path and file name. A copy shares them with
 * the original. */
typedef struct sj_selection {
    bool all_libraries;                     /* system libraries too */
    const char *map_file;                   /* of the main program; NULL: none */
    sj_pattern modules[SJ_SELECTION_GLOBS]; /* only these (main included); none: the default */
    size_t module_count;
    sj_pattern modules_excluded[SJ_SELECTION_GLOBS];
    size_t modules_excluded_count;
    sj_pattern functions[SJ_SELECTION_GLOBS]; /* only these; none: all */
    size_t function_count;
    sj_pattern excluded[SJ_SELECTION_GLOBS]; /* functions never recorded */
    size_t excluded_count;
    sj_pattern sources[SJ_SELECTION_GLOBS]; /* only functions of these source files; none: all */
    size_t source_count;
    sj_pattern sources_excluded[SJ_SELECTION_GLOBS];
    size_t sources_excluded_count;
    bool library_calls;                         /* calls into libraries are recorded, too */
    sj_runtime_selection runtimes[SJ_RUNTIMES]; /* as sj_runtimes is ordered */
    sj_value_rules *values;                     /* of arguments and results; NULL: none */
} sj_selection;

/* sj_selection_add appends a pattern to one of the lists. SJ_ELIMIT beyond SJ_SELECTION_GLOBS,
 * errors of sj_pattern_make. */
SJ_MUST_CHECK sj_status sj_selection_add(sj_pattern *patterns, size_t *count, const char *text,
                                         sj_error *error);
void sj_selection_free(sj_selection *selection); /* the patterns; safe on a zeroed one */

/* sj_selection_wants_module decides on a module by its path. */
bool sj_selection_wants_module(const sj_selection *selection, const char *path, bool is_main);

/* sj_selection_same_modules and sj_selection_same compare what two selections ask for, without the
 * map file. */
bool sj_selection_same_modules(const sj_selection *left, const sj_selection *right);
bool sj_selection_same(const sj_selection *left, const sj_selection *right);

/* sj_selection_wants_function is a sj_function_wanted (planner.h); `context` is a sj_selection. */
bool sj_selection_wants_function(void *context, const char *name, uint64_t offset,
                                 uint32_t size_bytes);

/* sj_selection_has_sources returns whether functions are chosen by source file, too. */
bool sj_selection_has_sources(const sj_selection *selection);

/* sj_selection_wants_source decides on a function by its source file: patterns are matched against
 * the path that the compiler noted and the file name. NULL, not known, is none of those that are
 * asked for and none of those that are not wanted. */
bool sj_selection_wants_source(const sj_selection *selection, const char *file);

/* sj_selection_names_file returns whether a pattern matches a path or its file name. */
bool sj_selection_names_file(const sj_pattern *pattern, const char *path);

/* sj_selection_wants_class decides on a class of a runtime that filters classes, by its name and by
 * whether a loader of the system defines it. */
bool sj_selection_wants_class(const sj_selection *selection, sj_link_language language,
                              const char *name, bool is_system);

/* sj_selection_wants_method decides on a method that a runtime names, by its name. */
bool sj_selection_wants_method(const sj_selection *selection, const char *name);

/* Of containers, whose methods come class by class. sj_selection_has_system returns whether what is
 * the system's is recorded like all else: all libraries, or modules by name, are asked for.
 * sj_selection_wants_class_in decides on all methods of a class, sj_selection_wants_method_in on
 * one method of such a class. The program's own container (`is_main`) has no classes of the system
 * but those that the policy says are. */
bool sj_selection_has_system(const sj_selection *selection);
bool sj_selection_wants_class_in(const sj_selection *selection, sj_link_language language,
                                 const char *class, bool is_main);
bool sj_selection_wants_method_in(const sj_selection *selection, sj_link_language language,
                                  const char *name, const char *selector);

/* sj_selection_has_receivers returns whether patched methods of any runtime record the class of
 * their receiver, sj_selection_needs_classes whether classes of processes are asked for at all. */
bool sj_selection_has_receivers(const sj_selection *selection);
bool sj_selection_needs_classes(const sj_selection *selection);

/* sj_selection_names_methods returns the name of a runtime of whose methods that have no functions
 * in a file something is asked for by name; NULL: of none. */
const char *sj_selection_names_methods(const sj_selection *selection);

/* sj_selection_dispatch_bits returns the bits of sj_link_runtime of the runtimes whose methods are
 * recorded where they are dispatched; 0: none. */
uint32_t sj_selection_dispatch_bits(const sj_selection *selection);

/* sj_selection_runtime_bits returns those, and the bits of all that runtimes do in a recording. */
uint32_t sj_selection_runtime_bits(const sj_selection *selection);

/* sj_selection_set_classes sets what all class filters ask about classes; borrowed. */
void sj_selection_set_classes(sj_selection *selection, sj_class_find find, void *context);

/* sj_selection_is_launcher recognises a program that is the runtime of others by its file name: its
 * own functions are recorded like those of a system library, and the methods that it runs have
 * names only later. */
bool sj_selection_is_launcher(const char *path);

#endif
