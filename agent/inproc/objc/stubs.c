/* Design notes
 *
 * One memory file is mapped twice, to be written and to be executed: no page is ever both, and
 * stubs can be added while others run. A forked child shares the file with its parent, so it gets a
 * copy of its own before it adds any. */
#include "agent/inproc/objc/internal.h"

#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <sys/mman.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

enum { STUBS_MAX = 65536, CODE_BYTES = STUBS_MAX * SJ_DISPATCH_STUB_BYTES };

static uint8_t *writable;   /* NULL: stubs cannot be made */
static uint8_t *executable; /* the same bytes */
static sj_dispatch_record records[STUBS_MAX];
static uint32_t stub_count;

static long make_file(void)
{
    long file = SJ_SYS(SYS_memfd_create, "sojourn-stubs", MFD_CLOEXEC | MFD_EXEC, 0, 0, 0, 0);
    if (file < 0) { /* a kernel that does not know MFD_EXEC */
        file = SJ_SYS(SYS_memfd_create, "sojourn-stubs", MFD_CLOEXEC, 0, 0, 0, 0);
    }
    if (file >= 0 && SJ_SYS(SYS_ftruncate, file, CODE_BYTES, 0, 0, 0, 0) != 0) {
        (void)sj_sys_close((int)file);
        file = -1;
    }
    return file;
}

bool sj_objc_stubs_open(void)
{
    if (writable != NULL) {
        return true;
    }
    const long file = make_file();
    if (file < 0) {
        return false;
    }
    uint8_t *write = sj_sys_map(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, (int)file, 0);
    uint8_t *run = sj_sys_map(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, (int)file, 0);
    (void)sj_sys_close((int)file);
    if (sj_sys_failed(write) || sj_sys_failed(run)) {
        return false;
    }
    executable = run;
    writable = write;
    return true;
}

static sj_dispatch_record *make_stub(const sj_dispatch_record *content)
{
    if (writable == NULL || stub_count == STUBS_MAX) {
        return NULL;
    }
    sj_dispatch_record *record = &records[stub_count];
    *record = *content;
    sj_arch_write_stub(writable + (size_t)stub_count * SJ_DISPATCH_STUB_BYTES, record);
    stub_count++;
    sj_arch_sync_code(sj_objc_stub_of(record), SJ_DISPATCH_STUB_BYTES);
    return record;
}

sj_dispatch_record *sj_objc_stub_make(uint32_t function, uint64_t target)
{
    return make_stub(
        &(sj_dispatch_record){.entry = sj_arch_dispatch_entry,
                              .target = target,
                              .enter_tag = sj_record_make_tag(SJ_RECORD_ENTER, function),
                              .leave_tag = sj_record_make_tag(SJ_RECORD_LEAVE, function)});
}

sj_dispatch_record *sj_objc_stub_make_plain(uint64_t target)
{
    return make_stub(&(sj_dispatch_record){.entry = sj_arch_objc_plain, .target = target});
}

uint64_t sj_objc_plain_code(uint64_t code)
{
    const uint64_t start = (uint64_t)(uintptr_t)executable;
    while (executable != NULL && code - start < CODE_BYTES) {
        code = records[(code - start) / SJ_DISPATCH_STUB_BYTES].target;
    }
    return code;
}

uint64_t sj_objc_stub_of(const sj_dispatch_record *record)
{
    return (uint64_t)(uintptr_t)executable + (uint64_t)(record - records) * SJ_DISPATCH_STUB_BYTES;
}

bool sj_objc_stubs_after_fork(void)
{
    if (writable == NULL) {
        return true;
    }
    const long file = make_file();
    uint8_t *copy = (uint8_t *)(intptr_t)-1;
    if (file >= 0) {
        copy = sj_sys_map(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, (int)file, 0);
    }
    if (sj_sys_failed(copy)) {
        writable = NULL;
        return false;
    }
    memcpy(copy, executable, (size_t)stub_count * SJ_DISPATCH_STUB_BYTES);
    const void *run = sj_sys_map(executable, CODE_BYTES, PROT_READ | PROT_EXEC,
                                 MAP_SHARED | MAP_FIXED, (int)file, 0);
    (void)sj_sys_unmap(writable, CODE_BYTES);
    (void)sj_sys_close((int)file);
    if (sj_sys_failed(run)) {
        writable = NULL;
        return false;
    }
    writable = copy;
    sj_arch_sync_code((uint64_t)(uintptr_t)executable,
                      (uint64_t)stub_count * SJ_DISPATCH_STUB_BYTES);
    return true;
}

uint32_t sj_objc_stub_count(void)
{
    return stub_count;
}
