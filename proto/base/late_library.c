#include "proto/base/late_library.h"

#include <dlfcn.h>
#include <string.h>

sj_status sj_late_library_load(const char *library, const sj_late_symbol *symbols, size_t count,
                               void *functions, sj_error *error)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return sj_fail(error, SJ_ENOTFOUND, "cannot load %s; is it installed? (%s)", library,
                       dlerror());
    }
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (address == NULL) {
            return sj_fail(error, SJ_ENOTFOUND, "%s has no function %s", library, symbols[i].name);
        }
        memcpy((char *)functions + symbols[i].offset, &address, sizeof(address));
    }
    return SJ_OK;
}
