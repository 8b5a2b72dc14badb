#include "agent/inproc/hooks/lasting.h"

#include "agent/abi/page.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/recorder/maps.h"
#include "agent/inproc/recorder/sys.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((uint64_t)SJ_PAGE_MOST_BYTES)

/* Largest mapping, in pages, that sj_lasting_find searches. The kernel may have merged the page of
 * code with its neighbours. */
enum { MERGED_PAGES = 16 };

uint64_t sj_lasting_bytes(void)
{
    return 2 * PAGE;
}

uint64_t sj_lasting_address(const sj_lasting *lasting, uint32_t index)
{
    return (uint64_t)(uintptr_t)lasting - PAGE + (uint64_t)index * SJ_DISPATCH_STUB_BYTES;
}

/* Writes trampoline `index`. sj_arch_write_stub writes a jump to the address in the record's first
 * word, so targets[index] serves as the record. */
static void write_trampoline(uint8_t *code, const sj_lasting *lasting, uint32_t index)
{
    sj_arch_write_stub(code, (const sj_dispatch_record *)(const void *)&lasting->targets[index]);
}

sj_lasting *sj_lasting_of(uint64_t address, uint32_t index, uint64_t magic)
{
    uint8_t expected[SJ_DISPATCH_STUB_BYTES];
    const uint64_t page = address & ~(PAGE - 1);
    sj_lasting *found = (sj_lasting *)(page + PAGE);
    if (address - page != (uint64_t)index * SJ_DISPATCH_STUB_BYTES) {
        return NULL;
    }
    write_trampoline(expected, found, index);
    return memcmp((const void *)address, expected, sizeof(expected)) == 0 && found->magic == magic
               ? found
               : NULL;
}

sj_lasting *sj_lasting_find(uint64_t magic)
{
    char buffer[SJ_MAPS_BYTES];
    sj_maps maps;
    sj_mapping mapping;
    sj_lasting *found = NULL;
    if (!sj_maps_open(&maps, buffer, sizeof(buffer))) {
        return NULL;
    }
    while (found == NULL && sj_maps_next(&maps, &mapping)) {
        const bool may_match = mapping.protection == (PROT_READ | PROT_EXEC) &&
                               mapping.high - mapping.low <= MERGED_PAGES * PAGE;
        for (uint64_t at = mapping.low; may_match && found == NULL && at < mapping.high;
             at += PAGE) {
            found = sj_lasting_of(at, 0, magic);
        }
    }
    sj_maps_close(&maps);
    return found;
}

sj_lasting *sj_lasting_new(uint64_t magic, uint32_t count)
{
    uint8_t *pages = sj_sys_allocate(2 * PAGE);
    if (pages == NULL) {
        return NULL;
    }
    sj_lasting *created = (sj_lasting *)(void *)(pages + PAGE);
    uint8_t *closed = pages + (size_t)count * SJ_DISPATCH_STUB_BYTES;
    const uint64_t code = SJ_ARCH_RETURN_ZERO_CODE;
    for (uint32_t i = 0; i < count; i++) {
        write_trampoline(pages + (size_t)i * SJ_DISPATCH_STUB_BYTES, created, i);
    }
    memcpy(closed, &code, sizeof(code));
    *created = (sj_lasting){.magic = magic, .closed = (uint64_t)(uintptr_t)closed};
    sj_lasting_close(created, count);
    sj_arch_sync_code((uint64_t)(uintptr_t)pages, PAGE);
    if (sj_sys_protect(pages, PAGE, PROT_READ | PROT_EXEC) != 0) {
        (void)sj_sys_unmap(pages, 2 * PAGE);
        return NULL;
    }
    return created;
}

void sj_lasting_open(sj_lasting *lasting, uint32_t index, uint64_t target)
{
    __atomic_store_n(&lasting->targets[index], target, __ATOMIC_RELEASE);
}

void sj_lasting_close(sj_lasting *lasting, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sj_lasting_open(lasting, i, lasting->closed);
    }
}
