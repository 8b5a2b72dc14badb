#include "agent/inproc/objc/internal.h"

bool sj_arch_objc_can_keep_vectors(void)
{
    return true;
}
