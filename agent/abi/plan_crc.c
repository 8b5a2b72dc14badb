#include "agent/abi/plan_crc.h"

#include "agent/abi/plan.h"
#include "proto/base/crc32c.h"

#include <stddef.h>

uint32_t sj_plan_crc(const void *bytes, size_t size_bytes)
{
    static const uint32_t zero = 0;
    const size_t field = offsetof(sj_plan_header, crc32c);
    const char *data = bytes;
    uint32_t crc = sj_crc32c(0, data, field);
    crc = sj_crc32c(crc, &zero, sizeof(zero));
    return sj_crc32c(crc, data + field + sizeof(zero), size_bytes - field - sizeof(zero));
}
