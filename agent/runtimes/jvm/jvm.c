/* The descriptor of the JVM. It has no method names for filters, because classes are selected by
 * name (java.lang.String, com.acme.Outer$Inner) when they are rewritten. */
#include "agent/runtimes/jvm/jvm.h"

#include <string.h>

static bool is_system_class(const char *name)
{
    static const char *const packages[] = {"java.", "javax.",   "jdk.",
                                           "sun.",  "com.sun.", "android."};
    for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
        if (strncmp(name, packages[i], strlen(packages[i])) == 0) {
            return true;
        }
    }
    return false;
}

static const char *const files[] = {"libjvm.so", "libjli.so", NULL}; /* `java` uses libjli.so. */

/* The JDK's libraries lie in lib/, and libjvm.so in lib/server/. The launcher of jpackage puts all
 * of them below lib/runtime/. */
static const char *const main_files[] = {"server/libjvm.so", "libjvm.so",
                                         "runtime/lib/server/libjvm.so", NULL};

const sj_runtime sj_runtime_jvm = {
    .name = "java",
    .prefix = "jvm",
    .files = files,
    .main_files = main_files,
    .joins_attached = true,
    .monitor_bit = SJ_LINK_RUNTIME_JVM,
    .system_bit = SJ_LINK_RUNTIME_JVM_SYSTEM,
    .lineage_bit = SJ_LINK_RUNTIME_JVM_LINEAGE,
    .in_place_bit = SJ_LINK_RUNTIME_JVM_TRACER,
    .engines = {"rewritten", "runtime"},
    .budget_obstacle = "the JVM calls its tracing functions for methods that are not recorded, too",
    .filters_classes = true,
    .is_system_class = is_system_class,
};
