#include "agent/abi/page.h"
#include "agent/inproc/hooks/internal.h"
#include "agent/inproc/recorder/maps.h"
#include "agent/inproc/recorder/sys.h"

#include <sys/mman.h>
#include <sys/uio.h>

/* Splits [low, high) by mappings into parts. Returns SJ_EPERM if the range has a hole or too many
 * mappings. */
static sj_status collect_parts(sj_text *text, uint64_t low, uint64_t high)
{
    char buffer[SJ_MAPS_BYTES];
    sj_maps maps;
    sj_mapping mapping;
    uint64_t covered = low;
    text->count = 0;
    if (!sj_maps_open(&maps, buffer, sizeof(buffer))) {
        return SJ_EPERM;
    }
    while (covered < high && sj_maps_next(&maps, &mapping)) {
        if (mapping.high <= covered) {
            continue;
        }
        if (mapping.low > covered || text->count == SJ_TEXT_PARTS) {
            break;
        }
        text->parts[text->count].low = covered;
        text->parts[text->count].high = mapping.high < high ? mapping.high : high;
        text->parts[text->count].protection = mapping.protection;
        covered = text->parts[text->count].high;
        text->count++;
    }
    sj_maps_close(&maps);
    return covered >= high ? SJ_OK : SJ_EPERM;
}

void sj_text_close(sj_text *text)
{
    for (uint32_t i = 0; i < text->count; i++) {
        (void)sj_sys_protect((void *)(uintptr_t)text->parts[i].low,
                             text->parts[i].high - text->parts[i].low, text->parts[i].protection);
    }
    text->count = 0;
}

sj_status sj_text_open(sj_text *text, uint64_t low, uint64_t high)
{
    low = sj_page_start(low);
    high = sj_page_round_up(high);
    SJ_TRY(collect_parts(text, low, high));
    for (uint32_t i = 0; i < text->count; i++) {
        void *start = (void *)(uintptr_t)text->parts[i].low;
        const uint64_t bytes = text->parts[i].high - text->parts[i].low;
        /* Other threads may run other functions in these pages, so the pages stay executable. If
         * the system forbids pages that are writable and executable, the pages are not executable
         * until sj_text_close. */
        if (sj_sys_protect(start, bytes, PROT_WRITE | text->parts[i].protection) != 0 &&
            sj_sys_protect(start, bytes, PROT_READ | PROT_WRITE) != 0) {
            text->count = i;
            sj_text_close(text);
            return SJ_EPERM;
        }
    }
    return SJ_OK;
}

/* True if the byte at `address` is writable. A system call writes the byte's own value: it returns
 * an error instead of faulting. */
static bool is_writable(uint64_t address)
{
    uint8_t byte = *(const uint8_t *)(uintptr_t)address;
    const struct iovec here = {.iov_base = &byte, .iov_len = 1};
    const struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = 1};
    return SJ_SYS(SYS_process_vm_writev, sj_sys_pid(), (long)(uintptr_t)&here, 1,
                  (long)(uintptr_t)&there, 1, 0) == 1;
}

bool sj_text_is_open(uint64_t low, uint64_t high)
{
    for (uint64_t at = low; at < high; at = sj_page_start(at) + sj_page_bytes()) {
        if (!is_writable(at)) {
            return false;
        }
    }
    return true;
}

void sj_text_populate(const sj_text *text)
{
    for (uint32_t i = 0; i < text->count; i++) {
        sj_sys_populate((void *)(uintptr_t)text->parts[i].low,
                        text->parts[i].high - text->parts[i].low);
    }
}
