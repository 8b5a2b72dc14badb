/* Design notes
 *
 * HotSpot compiles a wrapper for each native method. Any thread may call a wrapper at any time. One
 * aligned store therefore replaces the first instruction of a probe's wrapper by a jump to a stub.
 * HotSpot itself discards a wrapper by a store to the same instruction.
 *
 * The agent reads the addresses from HotSpot's own tables and checks them. If a check fails, the
 * wrapper stays unchanged, and calls of the probe run the native method. If HotSpot compiles a
 * wrapper again, the agent patches the new wrapper, too. */
#include "agent/inproc/jvm/leaf.h"

#include "agent/abi/page.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/jvm/virtual_threads.h"
#include "agent/inproc/jvm/vm_structs.h"
#include "agent/inproc/recorder/maps.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum { HEADER_MOST_BYTES = 4096 /* HotSpot describes the code before it. */ };

static sj_vm_offsets offsets;
static jmethodID enter_method;
static jmethodID leave_method;
static uint8_t *stubs; /* NULL until the first wrapper is patched. */
static uint32_t wrapper_count;
static bool are_unreachable; /* True if no thread can reach the stubs. */

bool sj_jvm_is_known_version(jvmtiEnv *jvmti)
{
    char *version = NULL;
    if ((*jvmti)->GetSystemProperty(jvmti, "java.vm.specification.version", &version) !=
        JVMTI_ERROR_NONE) {
        return false;
    }
    const bool is_known = strcmp(version, "17") == 0;
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)version);
    return is_known;
}

bool sj_jvm_leaf_prepare(jvmtiEnv *jvmti, JNIEnv *env, jclass probe_class)
{
    if (!sj_jvm_is_known_version(jvmti) || sj_virtual_threads_exist() ||
        !sj_vm_structs_read(&offsets)) {
        return false;
    }
    enter_method = (*env)->GetStaticMethodID(env, probe_class, "enter", "(I)V");
    leave_method = (*env)->GetStaticMethodID(env, probe_class, "leave", "(I)V");
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
    }
    return enter_method != NULL && leave_method != NULL;
}

/* Returns the entry point of a method's compiled code. Returns 0 if the method has no compiled
 * code, or if the entry point lies outside the `size` bytes at `code`. */
static uint64_t find_entry(jmethodID method, uint64_t code, uint64_t size)
{
    const uint8_t *described = *(const uint8_t *const *)method;
    const uint8_t *compiled;
    uint64_t entry;
    memcpy(&compiled, described + offsets.method_code, sizeof(compiled));
    if (compiled == NULL || (uint64_t)(uintptr_t)compiled > code ||
        code - (uint64_t)(uintptr_t)compiled > HEADER_MOST_BYTES) {
        return 0; /* HotSpot has discarded or replaced the code meanwhile. */
    }
    memcpy(&entry, compiled + offsets.verified_entry, sizeof(entry));
    return entry >= code && entry - code + sizeof(uint64_t) <= size ? entry : 0;
}

static bool is_writable_code(uint64_t address)
{
    char buffer[SJ_MAPS_BYTES];
    sj_maps maps;
    sj_mapping mapping;
    bool is_writable = false;
    if (!sj_maps_open(&maps, buffer, sizeof(buffer))) {
        return false;
    }
    while (sj_maps_next(&maps, &mapping)) {
        if (address >= mapping.low && address < mapping.high) {
            is_writable =
                (mapping.protection & (PROT_WRITE | PROT_EXEC)) == (PROT_WRITE | PROT_EXEC);
            break;
        }
    }
    sj_maps_close(&maps);
    return is_writable;
}

/* Writes a stub for the wrapper at `entry` and returns its address. Returns 0 if the page cannot be
 * mapped or changed, or if all stubs are used. A stub is not reused for another wrapper once it is
 * patched in, because threads may still run in it. */
static uint64_t write_stub(sj_record_kind kind, uint64_t entry)
{
    if (stubs == NULL) {
        stubs = sj_near_map(entry, entry + sizeof(uint64_t), sj_page_bytes());
        sojourn_agent_state.leaf_stubs_bytes = sj_page_bytes();
        sojourn_agent_state.leaf_stubs = (uint64_t)(uintptr_t)stubs;
    }
    if (stubs == NULL || wrapper_count == sj_page_bytes() / SJ_LEAF_STUB_BYTES) {
        return 0;
    }
    uint8_t *stub = stubs + (size_t)wrapper_count * SJ_LEAF_STUB_BYTES;
    /* Threads may run other stubs of the page meanwhile, so the page stays executable. */
    if (sj_sys_protect(stubs, sj_page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return 0;
    }
    sj_arch_leaf_emit(stub, kind, sojourn_agent_state.muted_functions, entry);
    if (sj_sys_protect(stubs, sj_page_bytes(), PROT_READ | PROT_EXEC) != 0) {
        return 0;
    }
    return (uint64_t)(uintptr_t)stub;
}

void sj_jvm_leaf_close(bool is_proved)
{
    are_unreachable = is_proved;
    if (stubs != NULL &&
        sj_sys_protect(stubs, sj_page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
        for (uint32_t i = 0; i < wrapper_count; i++) {
            sj_arch_leaf_close(stubs + (size_t)i * SJ_LEAF_STUB_BYTES);
        }
        (void)sj_sys_protect(stubs, sj_page_bytes(), PROT_READ | PROT_EXEC);
    }
}

void sj_jvm_leaf_deinit(void)
{
    if (stubs != NULL && are_unreachable) {
        (void)sj_sys_unmap(stubs, sj_page_bytes());
        sojourn_agent_state.leaf_stubs = 0;
    }
    stubs = NULL;
    wrapper_count = 0;
}

void JNICALL sj_jvm_on_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *code,
                                jint map_size, const jvmtiAddrLocationMap *map, const void *info)
{
    (void)jvmti;
    (void)map_size;
    (void)map;
    (void)info;
    if (method == NULL || (method != enter_method && method != leave_method) || size <= 0 ||
        atomic_load(&sj_jvm.enabled) == 0) {
        return;
    }
    const uint64_t entry = find_entry(method, (uint64_t)(uintptr_t)code, (uint64_t)size);
    if (entry == 0 || sj_arch_leaf_entry_bytes(entry) == 0 || !is_writable_code(entry)) {
        atomic_fetch_add(&sj_jvm.plain_wrappers, 1);
        return;
    }
    const sj_record_kind kind = method == enter_method ? SJ_RECORD_ENTER : SJ_RECORD_LEAVE;
    const uint64_t stub = write_stub(kind, entry);
    if (stub == 0 || !sj_arch_leaf_patch(entry, stub)) {
        atomic_fetch_add(&sj_jvm.plain_wrappers, 1);
        return;
    }
    wrapper_count++;
    atomic_fetch_add(&sj_jvm.linked_wrappers, 1);
}
