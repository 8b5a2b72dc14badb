#include "agent/inproc/objc/internal.h"

#include <cpuid.h>

/* True if the kernel has enabled XSAVE, which message.S uses. */
bool sj_arch_objc_can_keep_vectors(void)
{
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
    uint32_t d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_OSXSAVE) != 0;
}
