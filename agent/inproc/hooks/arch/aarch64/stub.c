#include "agent/inproc/hooks/dispatch.h"

#include <string.h>

void sj_arch_write_stub(uint8_t *stub, const sj_dispatch_record *record)
{
    static const uint32_t code[] = {0xd503245f,  /* bti c */
                                    0x58000070,  /* ldr x16, record */
                                    0xf9400211,  /* ldr x17, [x16] */
                                    0xd61f0220}; /* br x17 */
    const uint64_t address = (uint64_t)(uintptr_t)record;
    memset(stub, 0, SJ_DISPATCH_STUB_BYTES);
    memcpy(stub, code, sizeof(code));
    memcpy(stub + sizeof(code), &address, sizeof(address));
}
