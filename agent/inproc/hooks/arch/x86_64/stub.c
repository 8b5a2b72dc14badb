#include "agent/inproc/hooks/dispatch.h"

#include <string.h>

void sj_arch_write_stub(uint8_t *stub, const sj_dispatch_record *record)
{
    static const uint8_t load[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x49, 0xbb}; /* endbr64; mov $, %r11 */
    static const uint8_t jump[] = {0x41, 0xff, 0x23};                   /* jmp *(%r11) */
    const uint64_t address = (uint64_t)(uintptr_t)record;
    memset(stub, 0xcc, SJ_DISPATCH_STUB_BYTES);
    memcpy(stub, load, sizeof(load));
    memcpy(stub + sizeof(load), &address, sizeof(address));
    memcpy(stub + sizeof(load) + sizeof(address), jump, sizeof(jump));
}
