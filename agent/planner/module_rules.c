#include "agent/planner/module.h"

static bool is_listed(const char *name, size_t size, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == size && memcmp(list[i], name, size) == 0) {
            return true;
        }
    }
    return false;
}

const char *sj_name_part(const char *name)
{
    const char *cold = strstr(name, ".cold");
    return cold != NULL ? cold : strstr(name, ".__part.");
}

bool sj_name_is_runtime(const char *name)
{
    static const char *const names[] = {"_start",
                                        "_init",
                                        "_fini",
                                        "frame_dummy",
                                        "register_tm_clones",
                                        "deregister_tm_clones",
                                        "_dl_relocate_static_pie",
                                        "__libc_csu_init",
                                        "__libc_csu_fini",
                                        "__libc_start_main",
                                        "_dl_runtime_resolve",
                                        "atexit",
                                        "at_quick_exit",
                                        "call_weak_fn",
                                        "__stack_chk_fail_local"};
    return strncmp(name, "__do_global", 11) == 0 || strncmp(name, "__x86.get_pc_thunk", 18) == 0 ||
           strncmp(name, "__x86_indirect_thunk", 20) == 0 ||
           strncmp(name, "__llvm_retpoline", 16) == 0 ||
           is_listed(name, strlen(name), names, sizeof(names) / sizeof(names[0]));
}

void sj_module_skip_notifiers(sj_module *module)
{
    static const char prefix[] = "mono_profiler_";
    static const char raise[] = "mono_profiler_raise_";
    bool is_among = false;
    for (size_t i = 0; i < module->range_count; i++) {
        sj_code_range *range = &module->ranges[i];
        const char *name = range->name;
        if (name[0] != '\0') {
            is_among = strncmp(name, prefix, sizeof(prefix) - 1) == 0;
        }
        if (is_among && (name[0] == '\0' || strncmp(name, raise, sizeof(raise) - 1) == 0)) {
            range->skip = SJ_SKIP_RUNTIME_SUPPORT;
        }
    }
}
