/* Selection: the modules and functions of a program that are recorded.
 *
 * The default is the program itself and its own libraries: libraries outside system directories,
 * and libraries that the registry knows to be the program's (registry/own_libraries.h). The loader,
 * libc and Sojourn's agent are never recorded. Immutable once filled; thread-safe. */
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

/* The methods of one runtime that are recorded. */
typedef struct sj_runtime_selection {
    bool dispatch;           /* recorded where they are dispatched, without patches */
    bool receivers;          /* patched methods also record the class of their receiver */
    bool in_place;           /* uses the second engine of the runtime (sj_runtime.engines) */
    bool lines;              /* records which lines of the methods run */
    sj_class_filter classes; /* classes of the methods */
} sj_runtime_selection;

/* Patterns of modules and sources are matched against path and file name; patterns of functions
 * against the symbol and its source name. A copy shares the patterns with the original. */
typedef struct sj_selection {
    bool all_libraries;   /* also records system libraries */
    const char *map_file; /* map file of the main program; NULL: none */
    /* records only these (including the main program); empty: the default */
    sj_pattern modules[SJ_SELECTION_GLOBS];
    size_t module_count;
    sj_pattern modules_excluded[SJ_SELECTION_GLOBS];
    size_t modules_excluded_count;
    sj_pattern functions[SJ_SELECTION_GLOBS]; /* records only these; empty: all */
    size_t function_count;
    sj_pattern excluded[SJ_SELECTION_GLOBS]; /* functions that are never recorded */
    size_t excluded_count;
    /* records only functions of these source files; empty: all */
    sj_pattern sources[SJ_SELECTION_GLOBS];
    size_t source_count;
    sj_pattern sources_excluded[SJ_SELECTION_GLOBS];
    size_t sources_excluded_count;
    bool library_calls;                         /* also records calls into libraries */
    sj_runtime_selection runtimes[SJ_RUNTIMES]; /* in the order of sj_runtimes */
    sj_value_rules *values;                     /* rules about arguments and results; NULL: none */
} sj_selection;

/* Appends a pattern to one of the lists. Returns SJ_ELIMIT beyond SJ_SELECTION_GLOBS, or an error
 * of sj_pattern_make. */
SJ_MUST_CHECK sj_status sj_selection_add(sj_pattern *patterns, size_t *count, const char *text,
                                         sj_error *error);
/* Frees the patterns. A zeroed selection is allowed. */
void sj_selection_free(sj_selection *selection);

/* True if a module is recorded, by its path. */
bool sj_selection_wants_module(const sj_selection *selection, const char *path, bool is_main);

/* True if the selection records a system library that belongs to the program; the caller decides
 * whether it does. Never true for the C and C++ libraries, toolkits, runtimes with methods of their
 * own, or modules that the policy excludes. Never true if the policy names modules. */
bool sj_selection_allows_own_library(const sj_selection *selection, const char *path);

/* sj_selection_same_modules returns true if two selections want the same modules. sj_selection_same
 * returns true if they want the same modules, functions, classes, sources and rules. It ignores the
 * map file, and how runtimes record methods. */
bool sj_selection_same_modules(const sj_selection *left, const sj_selection *right);
bool sj_selection_same(const sj_selection *left, const sj_selection *right);

/* A sj_function_wanted (planner.h); `context` is a sj_selection. */
bool sj_selection_wants_function(void *context, const char *name, uint64_t offset,
                                 uint32_t size_bytes);

/* True if functions are also chosen by source file. */
bool sj_selection_has_sources(const sj_selection *selection);

/* True if a function is recorded, by its source file. Patterns are matched against the compiler's
 * path and the file name. An unknown file (NULL) matches neither wanted nor excluded sources. */
bool sj_selection_wants_source(const sj_selection *selection, const char *file);

/* True if a pattern matches a path or its file name. */
bool sj_selection_names_file(const sj_pattern *pattern, const char *path);

/* True if a class of a runtime is recorded, by its name. `is_system`: a loader of the system
 * defines it. */
bool sj_selection_wants_class(const sj_selection *selection, sj_link_language language,
                              const char *name, bool is_system);

/* True if a method is recorded, by the name that its runtime gives. */
bool sj_selection_wants_method(const sj_selection *selection, const char *name);

/* For containers whose methods arrive class by class. sj_selection_has_system is true if classes of
 * the system are recorded like all others, because the policy wants all libraries or names modules.
 * sj_selection_wants_class_in decides about all methods of a class, sj_selection_wants_method_in
 * about one method of a wanted class. In the program's own container (`is_main`), only classes that
 * the policy names belong to the system. */
bool sj_selection_has_system(const sj_selection *selection);
bool sj_selection_wants_class_in(const sj_selection *selection, sj_link_language language,
                                 const char *class, bool is_main);
bool sj_selection_wants_method_in(const sj_selection *selection, sj_link_language language,
                                  const char *name, const char *selector);

/* sj_selection_has_receivers is true if patched methods of any runtime record the class of their
 * receiver. sj_selection_needs_classes is true if the selection needs information about classes of
 * processes. */
bool sj_selection_has_receivers(const sj_selection *selection);
bool sj_selection_needs_classes(const sj_selection *selection);

/* Returns the name of a runtime if the selection asks for methods of it that no file contains; else
 * NULL. */
const char *sj_selection_names_methods(const sj_selection *selection);

/* Returns the sj_link_runtime bits of the runtimes whose methods are recorded where they are
 * dispatched; 0: none. */
uint32_t sj_selection_dispatch_bits(const sj_selection *selection);

/* Returns the bits of sj_selection_dispatch_bits, and the bits of everything else that the agent
 * does with runtimes in a recording. */
uint32_t sj_selection_runtime_bits(const sj_selection *selection);

/* Sets the source of information about classes for all class filters; borrowed. */
void sj_selection_set_classes(sj_selection *selection, sj_class_find find, void *context);

/* True for modules that the agent itself depends on, such as the C library. Only calls into them
 * can be recorded. */
bool sj_selection_is_never_recorded(const char *path);

/* True if a program is the runtime of other programs, by its file name. The program's own functions
 * are then recorded like functions of a system library. */
bool sj_selection_is_launcher(const char *path);

#endif
