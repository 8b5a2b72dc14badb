/* The descriptor of Mono. Method names are Namespace.Class:Method(types),
 * Outer/Inner:Method(types). */
#include "agent/runtimes/mono/mono.h"

#include "agent/runtimes/mono/methods.h"
#include "agent/runtimes/mono/source_lines.h"

#include <string.h>

/* Returns the colon between class and method, or NULL if the name is not a method's name. C++ names
 * have two colons there, and Objective-C names begin with '-' or '+'. */
static const char *find_colon(const char *name)
{
    const char *open = strchr(name, '(');
    const char *colon = strchr(name, ':');
    const bool is_method_name = open != NULL && colon != NULL && colon < open && colon != name &&
                                colon[1] != ':' && name[0] != '-' && name[0] != '+';
    return is_method_name ? colon : NULL;
}

static bool is_method(const char *name)
{
    return find_colon(name) != NULL;
}

static bool split_method(const char *name, sj_method_parts *parts)
{
    const char *colon = find_colon(name);
    return colon != NULL && sj_method_part_copy(parts->class, name, (size_t)(colon - name)) &&
           sj_method_part_copy(parts->selector, colon + 1, strcspn(colon + 1, "("));
}

static bool is_system_class(const char *name)
{
    static const char *const prefixes[] = {"System.", "Microsoft.", "Mono.", "Interop/",
                                           "MS.Internal."};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static const char *const files[] = {"mono-sgen",          "mono-boehm",    "libmonosgen-",
                                    "libmonoboehm-",      "libmonobdwgc-", "libmono-native",
                                    "libMonoPosixHelper", "libmono-btls",  NULL};
static const char *const main_files[] = {NULL}; /* its libraries are known by name */
static const char *const launchers[] = {"mono", "mono-sgen", "mono-boehm", NULL};
static const char *const endings[] = {".dll", ".exe", NULL};

/* Methods are compiled at run time, so this has no find_functions for ELF files. */
const sj_runtime sj_runtime_mono = {
    .name = "mono",
    .prefix = "mono",
    .files = files,
    .main_files = main_files,
    .launchers = launchers,
    .binds_attached = true,
    .monitor_bit = SJ_LINK_RUNTIME_MONO,
    /* Libraries of the system are compiled ahead of time, so Mono has to compile them anew. */
    .system_bit = SJ_LINK_RUNTIME_MONO_ANEW,
    .lines_bit = SJ_LINK_RUNTIME_MONO_LINES,
    .in_place_bit = SJ_LINK_RUNTIME_MONO_IN_PLACE,
    .engines = {"callbacks", "in_place"},
    .endings = endings,
    .is_method = is_method,
    .split_method = split_method,
    .is_system_class = is_system_class,
    .read_container = sj_mono_read_file,
    .read_container_classes = sj_mono_read_classes,
    .is_system_container = sj_mono_is_framework,
    .read_container_lines = sj_mono_read_lines,
};
