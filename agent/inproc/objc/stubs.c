/* Design notes
 *
 * An area contains records and then their stubs. It stays when the agent is unloaded, because the
 * program may have stored the address of any stub. A stub jumps to the address in the first word of
 * its record. Closing a record sets this word to the method, so that the stub jumps directly to the
 * method. The next agent gets the address of the area from its tracer and opens the stubs that it
 * needs. So a method has one stub even if agents are attached several times.
 *
 * The stubs are in a memory file that is mapped twice, writable and executable. So no page is both,
 * and stubs can be added while others run. A forked child shares the file with its parent, and an
 * agent may share the adopted area with another process. So both copy the file before they add
 * stubs. */
#include "agent/inproc/objc/internal.h"

#include "agent/abi/agent_state.h"
#include "agent/abi/page.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/recorder/sys.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

enum {
    STUBS_MAX = 65536,
    CODE_BYTES = STUBS_MAX * SJ_DISPATCH_STUB_BYTES,
    INDEX_CAPACITY = 2 * STUBS_MAX,
};

/* "DSTUBS1". Agents of other versions search for it. */
#define AREA_MAGIC UINT64_C(0x31534255545344)

/* The record of a stub, and the method for which it was created. `class` is NULL if the stub
 * records nothing (sj_objc_stub_open_plain). */
typedef struct stub_record {
    sj_dispatch_record record;
    const void *class;
    const void *owner;
    const char *selector;
} stub_record;

typedef struct stub_area {
    uint64_t magic;
    uint64_t count;
    stub_record stubs[STUBS_MAX];
} stub_area;

/* A multiple of the pages of every machine. Agents of other versions use the same number. */
enum { AREA_ALIGNMENT = 65536 };
_Static_assert(AREA_ALIGNMENT % SJ_PAGE_MOST_BYTES == 0, "the stubs begin at a page");

/* Offset of the stubs in the area. */
#define CODE_OFFSET ((sizeof(stub_area) + AREA_ALIGNMENT - 1) / AREA_ALIGNMENT * AREA_ALIGNMENT)

static stub_area *area;     /* NULL if none was created or adopted. */
static uint8_t *writable;   /* Writable mapping of the stubs. NULL if stubs cannot be created. */
static uint8_t *executable; /* Executable mapping of the same bytes. */
static uint32_t stub_index[INDEX_CAPACITY]; /* Hash table of 1 + the index of a stub. */
static uint32_t open_count;                 /* Number of stubs that this session has opened. */

static long new_file(void)
{
    long file =
        SJ_SYS(SYS_memfd_create, SJ_AGENT_STATE_STUBS_FILE, MFD_CLOEXEC | MFD_EXEC, 0, 0, 0, 0);
    if (file < 0) { /* Kernels before Linux 6.3 do not know MFD_EXEC. */
        file = SJ_SYS(SYS_memfd_create, SJ_AGENT_STATE_STUBS_FILE, MFD_CLOEXEC, 0, 0, 0, 0);
    }
    if (file >= 0 && SJ_SYS(SYS_ftruncate, file, CODE_BYTES, 0, 0, 0, 0) != 0) {
        (void)sj_sys_close((int)file);
        file = -1;
    }
    return file;
}

/* Copies the stubs at `run` to a new memory file, and maps the file executable at `run`. Writes the
 * address of its writable mapping to `*write`. Returns false if the kernel refuses. */
static bool map_code(uint8_t *run, uint64_t count, uint8_t **write)
{
    const long file = new_file();
    if (file < 0) {
        return false;
    }
    *write = sj_sys_map(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, (int)file, 0);
    bool is_mapped = !sj_sys_failed(*write);
    if (is_mapped) {
        memcpy(*write, run, (size_t)count * SJ_DISPATCH_STUB_BYTES);
        is_mapped = !sj_sys_failed(sj_sys_map(run, CODE_BYTES, PROT_READ | PROT_EXEC,
                                              MAP_SHARED | MAP_FIXED, (int)file, 0));
        if (!is_mapped) {
            (void)sj_sys_unmap(*write, CODE_BYTES);
        }
    }
    (void)sj_sys_close((int)file);
    return is_mapped;
}

static stub_area *new_area(void)
{
    stub_area *new = sj_sys_map(NULL, CODE_OFFSET + CODE_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sj_sys_failed(new)) {
        return NULL;
    }
    /* Huge pages would waste memory that stays in the program. */
    (void)SJ_SYS(SYS_madvise, new, CODE_OFFSET + CODE_BYTES, MADV_NOHUGEPAGE, 0, 0, 0);
    new->magic = AREA_MAGIC;
    return new;
}

static bool is_made_for(const stub_record *stub, const stub_record *key)
{
    return stub->class == key->class && stub->owner == key->owner &&
           stub->selector == key->selector && stub->record.target == key->record.target;
}

/* Returns the element of the hash table for a stub, or the free element in which to store its
 * index. */
static uint32_t *find_index_element(const stub_record *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key->class ^ (uint64_t)(uintptr_t)key->owner << 7;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)(uintptr_t)key->selector;
    hash =
        (hash * UINT64_C(0xd6e8feb86659fd93) ^ key->record.target) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 40) % INDEX_CAPACITY;
    while (stub_index[at] != 0 && !is_made_for(&area->stubs[stub_index[at] - 1], key)) {
        at = (at + 1) % INDEX_CAPACITY;
    }
    return &stub_index[at];
}

static void close_record(stub_record *stub)
{
    atomic_store((_Atomic uint64_t *)(void *)&stub->record.entry, stub->record.target);
}

/* True if the head of an area lies at the address, which may not be mapped. */
static bool is_area(const stub_area *found)
{
    uint64_t head[2];
    const struct iovec to = {.iov_base = head, .iov_len = sizeof(head)};
    const struct iovec from = {.iov_base = (void *)(uintptr_t)found, .iov_len = sizeof(head)};
    return SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), &to, 1, &from, 1, 0) == sizeof(head) &&
           head[0] == AREA_MAGIC && head[1] <= STUBS_MAX;
}

void sj_objc_stubs_adopt(uint64_t code)
{
    stub_area *found = (stub_area *)(uintptr_t)(code - CODE_OFFSET);
    if (area != NULL || code < CODE_OFFSET || !is_area(found)) {
        return;
    }
    area = found;
    executable = (uint8_t *)(uintptr_t)code;
    for (uint64_t i = 0; i < found->count; i++) {
        found->stubs[i].record.enter_tag = 0;
        found->stubs[i].record.leave_tag = 0;
        *find_index_element(&found->stubs[i]) = (uint32_t)i + 1;
    }
}

/* Opens a record: its stub records calls from now on. Writes the tags before the address, because
 * other threads may run the stub. */
static void open_record(stub_record *stub, uint32_t enter_tag, uint32_t leave_tag)
{
    void (*entry)(void) = stub->class != NULL ? sj_arch_dispatch_entry : sj_arch_objc_plain;
    stub->record.enter_tag = enter_tag;
    stub->record.leave_tag = leave_tag;
    atomic_store((_Atomic uint64_t *)(void *)&stub->record.entry, (uint64_t)(uintptr_t)entry);
}

bool sj_objc_stubs_open(void)
{
    if (writable != NULL) {
        return true;
    }
    stub_area *opened = area != NULL ? area : new_area();
    if (opened == NULL || !map_code((uint8_t *)opened + CODE_OFFSET, opened->count, &writable)) {
        if (opened != NULL && area == NULL) {
            (void)sj_sys_unmap(opened, CODE_OFFSET + CODE_BYTES);
        }
        writable = NULL;
        return false;
    }
    executable = (uint8_t *)opened + CODE_OFFSET;
    area = opened;
    /* Opens the stubs that this agent had opened before it was stopped. */
    for (uint64_t i = 0; i < opened->count; i++) {
        stub_record *stub = &opened->stubs[i];
        if (stub->record.enter_tag != 0) {
            open_record(stub, stub->record.enter_tag, stub->record.leave_tag);
        }
    }
    return true;
}

void sj_objc_stubs_close(void)
{
    for (uint64_t i = 0; area != NULL && i < area->count; i++) {
        close_record(&area->stubs[i]);
    }
    if (writable != NULL) {
        (void)sj_sys_unmap(writable, CODE_BYTES);
        writable = NULL;
    }
}

static stub_record *add_stub(const stub_record *content)
{
    if (area->count == STUBS_MAX) {
        return NULL;
    }
    const uint64_t element = area->count;
    stub_record *stub = &area->stubs[element];
    *stub = *content;
    stub->record.enter_tag = 0;
    close_record(stub);
    sj_arch_write_stub(writable + element * SJ_DISPATCH_STUB_BYTES, &stub->record);
    area->count = element + 1;
    sj_arch_sync_code(sj_objc_stub_of(&stub->record), SJ_DISPATCH_STUB_BYTES);
    return stub;
}

static const sj_dispatch_record *open_stub(const stub_record *content)
{
    if (writable == NULL) {
        return NULL;
    }
    uint32_t *element = find_index_element(content);
    stub_record *stub = *element != 0 ? &area->stubs[*element - 1] : add_stub(content);
    if (stub == NULL) {
        return NULL;
    }
    if (*element == 0) {
        *element = (uint32_t)(stub - area->stubs) + 1;
    }
    open_count += stub->record.enter_tag == 0;
    open_record(stub, content->record.enter_tag, content->record.leave_tag);
    return &stub->record;
}

const sj_dispatch_record *sj_objc_stub_open(const sj_objc_method *method, uint64_t target)
{
    return open_stub(&(stub_record){
        .record = {.target = target,
                   .enter_tag = sj_record_make_tag(SJ_RECORD_ENTER, method->function),
                   .leave_tag = sj_record_make_tag(SJ_RECORD_LEAVE, method->function)},
        .class = method->class,
        .owner = method->owner,
        .selector = method->selector});
}

/* The tag 1 is never recorded. It only means that the stub is open. */
const sj_dispatch_record *sj_objc_stub_open_plain(uint64_t target)
{
    return open_stub(&(stub_record){.record = {.target = target, .enter_tag = 1}});
}

const sj_dispatch_record *sj_objc_record_of(uint64_t code)
{
    const uint64_t at = code - (uint64_t)(uintptr_t)executable;
    return area != NULL && at < CODE_BYTES ? &area->stubs[at / SJ_DISPATCH_STUB_BYTES].record
                                           : NULL;
}

uint64_t sj_objc_code_behind(uint64_t code)
{
    const sj_dispatch_record *record;
    while ((record = sj_objc_record_of(code)) != NULL) {
        code = record->target;
    }
    return code;
}

uint64_t sj_objc_stub_of(const sj_dispatch_record *record)
{
    const stub_record *stub = (const stub_record *)(const void *)record;
    return (uint64_t)(uintptr_t)executable +
           (uint64_t)(stub - area->stubs) * SJ_DISPATCH_STUB_BYTES;
}

bool sj_objc_stubs_after_fork(void)
{
    uint8_t *write = NULL;
    if (writable == NULL) {
        return true;
    }
    (void)sj_sys_unmap(writable, CODE_BYTES);
    const bool is_mapped = map_code(executable, area->count, &write);
    writable = is_mapped ? write : NULL;
    sj_arch_sync_code((uint64_t)(uintptr_t)executable, area->count * SJ_DISPATCH_STUB_BYTES);
    return is_mapped;
}

uint32_t sj_objc_stub_count(void)
{
    return open_count;
}
