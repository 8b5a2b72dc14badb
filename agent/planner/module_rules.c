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

bool sj_module_is_runtime(const char *name)
{
    static const char *const stems[] = {
        "libc",         "libpthread",   "libdl",      "librt",   "libresolv",
        "libthread_db", "libnss_files", "libnss_dns", "libutil", "libsojourn-agent"};
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    if (strncmp(base, "ld-", 3) == 0 || strncmp(base, "ld.so", 5) == 0 ||
        strncmp(base, "linux-vdso", 10) == 0 || strncmp(base, "linux-gate", 10) == 0 ||
        strcmp(base, "[vdso]") == 0) {
        return true;
    }
    /* libc.so.6 and the older libc-2.31.so. */
    const size_t stem = strcspn(base, ".");
    const char *dash = strstr(base, "-2.");
    if (dash != NULL && dash < base + stem) {
        return is_listed(base, (size_t)(dash - base), stems, sizeof(stems) / sizeof(stems[0]));
    }
    return strncmp(base + stem, ".so", 3) == 0 &&
           is_listed(base, stem, stems, sizeof(stems) / sizeof(stems[0]));
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
