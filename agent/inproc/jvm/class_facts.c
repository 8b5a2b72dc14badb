#include "agent/inproc/jvm/class_facts.h"

#include "agent/inproc/jvm/class_marks.h"

#include <string.h>

enum { LINEAGE_DEPTH = 64 };

static void add_name(jvmtiEnv *jvmti, jclass class, sj_class_lineage *lineage)
{
    char *signature = NULL;
    if ((*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) != JVMTI_ERROR_NONE) {
        return;
    }
    const size_t bytes = strlen(signature); /* For example "Ljava/util/List;". */
    if (bytes > 2 && bytes - 1 <= sizeof(lineage->names) - lineage->bytes) {
        memcpy(lineage->names + lineage->bytes, signature + 1, bytes - 2);
        lineage->names[lineage->bytes + bytes - 2] = '\0';
        lineage->bytes += (uint32_t)bytes - 1;
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
}

/* Adds the names of the interfaces of a class and of their superinterfaces. */
static void add_interfaces(jvmtiEnv *jvmti, JNIEnv *env, jclass class, sj_class_lineage *lineage,
                           uint32_t depth)
{
    jint count = 0;
    jclass *interfaces = NULL;
    if (depth == LINEAGE_DEPTH ||
        (*jvmti)->GetImplementedInterfaces(jvmti, class, &count, &interfaces) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        add_name(jvmti, interfaces[i], lineage);
        add_interfaces(jvmti, env, interfaces[i], lineage, depth + 1);
        (*env)->DeleteLocalRef(env, interfaces[i]);
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)interfaces);
}

/* Reads the names of all superclasses and interfaces of a class. */
static void read_lineage(jvmtiEnv *jvmti, JNIEnv *env, jclass class, sj_class_lineage *lineage)
{
    jclass current = (*env)->NewLocalRef(env, class);
    lineage->bytes = 0;
    for (uint32_t i = 0; current != NULL && i < LINEAGE_DEPTH; i++) {
        add_interfaces(jvmti, env, current, lineage, 0);
        const jclass super = (*env)->GetSuperclass(env, current);
        (*env)->DeleteLocalRef(env, current);
        if (super != NULL) {
            add_name(jvmti, super, lineage);
        }
        current = super;
    }
    (*env)->DeleteLocalRef(env, current);
}

bool sj_class_is_by_lineage(void)
{
    return (sj_jvm.runtimes & SJ_LINK_RUNTIME_JVM_LINEAGE) != 0;
}

bool sj_class_is_prepared(jvmtiEnv *jvmti, jclass class)
{
    jint status = 0;
    return (*jvmti)->GetClassStatus(jvmti, class, &status) == JVMTI_ERROR_NONE &&
           (status & JVMTI_CLASS_STATUS_PREPARED) != 0;
}

bool sj_class_facts_read(jvmtiEnv *jvmti, JNIEnv *env, jclass class, sj_class_facts *facts,
                         sj_jvm_loaded *loaded)
{
    jboolean is_modifiable = JNI_FALSE;
    jobject loader = NULL;
    facts->signature = NULL;
    facts->lineage.bytes = 0;
    facts->origin = (sj_jvm_class){0};
    if ((*jvmti)->IsModifiableClass(jvmti, class, &is_modifiable) != JVMTI_ERROR_NONE ||
        !is_modifiable || (*jvmti)->GetClassLoader(jvmti, class, &loader) != JVMTI_ERROR_NONE ||
        (*jvmti)->GetClassSignature(jvmti, class, &facts->signature, NULL) != JVMTI_ERROR_NONE) {
        return false;
    }
    const char *name = facts->signature + 1;
    const size_t bytes = strlen(facts->signature);
    sj_jvm_identify(env, loader, &facts->origin);
    const bool is_asked_for = bytes > 2 && facts->signature[0] == 'L' &&
                              bytes - 2 <= SJ_LINK_CLASS_NAME_BYTES &&
                              sj_jvm_is_asked_for(name, loader, &facts->origin) &&
                              (!sj_class_is_by_lineage() || sj_class_is_prepared(jvmti, class));
    (*env)->DeleteLocalRef(env, loader);
    if (!is_asked_for) {
        return false;
    }
    if (sj_class_is_by_lineage()) {
        read_lineage(jvmti, env, class, &facts->lineage);
    }
    const uint64_t key =
        sj_jvm_class_key(name, bytes - 2, facts->origin.loader, facts->origin.is_system);
    *loaded = (sj_jvm_loaded){.loader = facts->origin.loader,
                              .is_system = facts->origin.is_system,
                              .selection = sj_class_marks_get(key),
                              .name = name,
                              .name_bytes = (uint32_t)bytes - 2,
                              .loader_name = facts->origin.loader_name,
                              .lineage = facts->lineage.names,
                              .lineage_bytes = facts->lineage.bytes};
    return true;
}

void sj_class_facts_free(jvmtiEnv *jvmti, sj_class_facts *facts)
{
    if (facts->signature != NULL) {
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)facts->signature);
    }
    facts->signature = NULL;
}
