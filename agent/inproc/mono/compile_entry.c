/* Design notes
 *
 * The exported symbols show the version of the runtime, and so how it reports methods that it
 * compiles. Asking the runtime for its version would allocate memory. Only the first way reports
 * code before a thread can run it. The agent does not use the others, because it would patch
 * running code. */
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/mono/internal.h"

typedef struct compile_entry {
    const char *symbol; /* A symbol that the runtime exports. */
    sj_mono_entry entry;
} compile_entry;

/* The best way comes first. */
static const compile_entry entries[] = {
    /* Mono 5.6 and later */
    {"mono_profiler_set_jit_code_buffer_callback", SJ_MONO_ENTRY_CODE_BUFFER},
    /* before 5.6: the older profiler interface */
    {"mono_profiler_install_jit_end", SJ_MONO_ENTRY_JIT_DONE},
    /* runtimes built to export their compiler */
    {"mono_jit_compile_method_with_opt", SJ_MONO_ENTRY_COMPILER},
    {"mono_jit_compile_method", SJ_MONO_ENTRY_COMPILER},
    /* all runtimes: this function calls the compiler by a function pointer */
    {"mono_compile_method", SJ_MONO_ENTRY_SLOT},
};

static sj_mono_entry find_entry(void)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (sj_rebind_find(entries[i].symbol) != 0) {
            return entries[i].entry;
        }
    }
    return SJ_MONO_ENTRY_NONE;
}

bool sj_mono_find_lacking(sj_link_no_methods *lacking)
{
    const char *missing = sj_rebind_find("mono_get_root_domain") != 0 ? sj_mono_find_api() : NULL;
    if (missing == NULL) {
        return false;
    }
    *lacking = (sj_link_no_methods){.entry = find_entry()};
    strncpy(lacking->missing, missing, sizeof(lacking->missing) - 1);
    return true;
}
