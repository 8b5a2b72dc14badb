#include "agent/inproc/heap_guard/objects.h"

#include <stddef.h>
#include <string.h>

void sj_objects_add(uint64_t offset, uint64_t by)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region != NULL && by != 0) {
        atomic_fetch_add((_Atomic uint64_t *)(void *)((char *)region + offset), by);
    }
}

/* True if the pattern matches the text. `*` matches any characters, `?` matches one. */
static bool fits(const char *pattern, const char *text)
{
    const char *star = NULL;
    const char *from = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

bool sj_objects_has_name(const char *patterns, const char *name)
{
    const char *end = patterns + SJ_ZOMBIE_PATTERNS_BYTES;
    for (const char *at = patterns; at < end && *at != '\0';) {
        const size_t bytes = strnlen(at, (size_t)(end - at));
        if (at + bytes == end) {
            return false;
        }
        if (fits(at, name)) {
            return true;
        }
        at += bytes + 1;
    }
    return false;
}

static bool is_system_path(const char *path)
{
    static const char *const roots[] = {"/lib/", "/lib64/", "/lib32/", "/usr/lib/", "/usr/lib64/"};
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        if (strncmp(path, roots[i], strlen(roots[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool sj_objects_is_system(uint64_t address, bool *is_known)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const uint32_t count =
        region != NULL ? atomic_load_explicit(&region->module_count, memory_order_acquire) : 0;
    *is_known = false;
    for (uint32_t i = count < SJ_ZOMBIE_MODULES ? count : SJ_ZOMBIE_MODULES; i-- > 0;) {
        const sj_zombie_module *module = &region->modules[i];
        if (address >= module->bias && address < module->text_high) {
            *is_known = true;
            return is_system_path(module->path);
        }
    }
    return false;
}
