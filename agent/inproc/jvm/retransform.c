/* Design notes
 *
 * A batch of classes is one operation of the JVM, for which it stops all threads: few classes a
 * batch are many stops, many are long ones. A class that the JVM refuses spoils its batch, which is
 * then made one by one. Classes that are no classes of a file (arrays, hidden ones) cannot be
 * modified; neither can what the probes stand on. */
#include "agent/inproc/jvm/retransform.h"

#include "agent/inproc/jvm/class_marks.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <time.h>

enum { BATCH = 64, QUESTION = 64, LINEAGE_DEPTH = 64 };

/* Classes that are transformed at once. */
typedef struct class_batch {
    jvmtiEnv *jvmti;
    JNIEnv *env;
    sj_jvm_figures *figures;
    uint32_t count;
    jclass classes[BATCH];
} class_batch;

static uint32_t transform(const class_batch *batch, uint32_t first, uint32_t count)
{
    const uint64_t start_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    const jvmtiError status =
        (*batch->jvmti)->RetransformClasses(batch->jvmti, (jint)count, batch->classes + first);
    const uint64_t taken_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns;
    sj_jvm_figures *figures = batch->figures;
    if ((*batch->env)->ExceptionCheck(batch->env)) {
        (*batch->env)->ExceptionClear(batch->env);
    }
    figures->total_ns += taken_ns;
    figures->longest_ns = taken_ns > figures->longest_ns ? taken_ns : figures->longest_ns;
    figures->batches++;
    return status == JVMTI_ERROR_NONE ? count : 0;
}

static void finish_batch(class_batch *batch)
{
    uint32_t done = batch->count != 0 ? transform(batch, 0, batch->count) : 0;
    for (uint32_t i = 0; done == 0 && batch->count > 1 && i < batch->count; i++) {
        const uint32_t one = transform(batch, i, 1);
        batch->figures->retransformed += one;
        batch->figures->refused += 1 - one;
    }
    if (done != 0 || batch->count <= 1) {
        batch->figures->retransformed += done;
        batch->figures->refused += batch->count - done;
    }
    batch->count = 0;
}

static void add_to_batch(class_batch *batch, jclass class)
{
    batch->classes[batch->count++] = class;
    if (batch->count == BATCH) {
        finish_batch(batch);
    }
}

/* Where the names of what a class descends from are gathered; what has no room is left out. */
typedef struct class_lineage {
    uint32_t bytes;
    char names[SJ_LINK_LINEAGE_BYTES];
} class_lineage;

static void add_name(jvmtiEnv *jvmti, jclass class, class_lineage *lineage)
{
    char *signature = NULL;
    if ((*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) != JVMTI_ERROR_NONE) {
        return;
    }
    const size_t bytes = strlen(signature); /* Ljava/util/List; */
    if (bytes > 2 && bytes - 1 <= sizeof(lineage->names) - lineage->bytes) {
        memcpy(lineage->names + lineage->bytes, signature + 1, bytes - 2);
        lineage->names[lineage->bytes + bytes - 2] = '\0';
        lineage->bytes += (uint32_t)bytes - 1;
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
}

/* Adds the interfaces of a class, and theirs. */
static void add_interfaces(jvmtiEnv *jvmti, JNIEnv *env, jclass class, class_lineage *lineage,
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

static void read_lineage(jvmtiEnv *jvmti, JNIEnv *env, jclass class, class_lineage *lineage)
{
    jclass at = (*env)->NewLocalRef(env, class);
    lineage->bytes = 0;
    for (uint32_t i = 0; at != NULL && i < LINEAGE_DEPTH; i++) {
        add_interfaces(jvmti, env, at, lineage, 0);
        const jclass super = (*env)->GetSuperclass(env, at);
        (*env)->DeleteLocalRef(env, at);
        if (super != NULL) {
            add_name(jvmti, super, lineage);
        }
        at = super;
    }
    (*env)->DeleteLocalRef(env, at);
}

static bool is_by_lineage(void)
{
    return (sj_jvm.options.runtimes & SJ_LINK_RUNTIME_JVM_LINEAGE) != 0;
}

/* One that is not ready yet comes to sj_jvm_on_prepare. To wait for it here would be to wait for a
 * thread that waits there for this one. */
static bool is_ready(jvmtiEnv *jvmti, jclass class)
{
    jint status = 0;
    return (*jvmti)->GetClassStatus(jvmti, class, &status) == JVMTI_ERROR_NONE &&
           (status & JVMTI_CLASS_STATUS_PREPARED) != 0;
}

/* What is read of one class. */
typedef struct class_facts {
    char *signature; /* Ljava/lang/String; - the JVM's memory */
    sj_jvm_class of;
    class_lineage lineage;
} class_facts;

/* Reads what a class is called, who has loaded it and, where that is asked for, what it descends
 * from. False: it is none that has probes. The caller frees the signature. */
static bool read_class(jvmtiEnv *jvmti, JNIEnv *env, jclass class, class_facts *facts,
                       sj_jvm_loaded *loaded)
{
    jboolean is_modifiable = JNI_FALSE;
    jobject loader = NULL;
    facts->signature = NULL;
    facts->lineage.bytes = 0;
    facts->of = (sj_jvm_class){0};
    if ((*jvmti)->IsModifiableClass(jvmti, class, &is_modifiable) != JVMTI_ERROR_NONE ||
        !is_modifiable || (*jvmti)->GetClassLoader(jvmti, class, &loader) != JVMTI_ERROR_NONE ||
        (*jvmti)->GetClassSignature(jvmti, class, &facts->signature, NULL) != JVMTI_ERROR_NONE) {
        return false;
    }
    const char *name = facts->signature + 1;
    const size_t bytes = strlen(facts->signature);
    sj_jvm_identify(env, loader, &facts->of);
    const bool is_asked_for = bytes > 2 && facts->signature[0] == 'L' &&
                              bytes - 2 <= SJ_LINK_CLASS_NAME_BYTES &&
                              sj_jvm_is_asked_for(name, loader, &facts->of) &&
                              (!is_by_lineage() || is_ready(jvmti, class));
    (*env)->DeleteLocalRef(env, loader);
    if (!is_asked_for) {
        return false;
    }
    if (is_by_lineage()) {
        read_lineage(jvmti, env, class, &facts->lineage);
    }
    const uint64_t key = sj_jvm_class_key(name, bytes - 2, facts->of.loader, facts->of.is_system);
    *loaded = (sj_jvm_loaded){.loader = facts->of.loader,
                              .is_system = facts->of.is_system,
                              .selection = sj_class_marks_get(key),
                              .name = name,
                              .name_bytes = (uint32_t)bytes - 2,
                              .loader_name = facts->of.loader_name,
                              .lineage = facts->lineage.names,
                              .lineage_bytes = facts->lineage.bytes};
    return true;
}

/* Loaded classes that the recorder is asked about at once. */
typedef struct class_question {
    uint32_t count;
    jclass classes[QUESTION];
    class_facts facts[QUESTION];
    sj_jvm_loaded loaded[QUESTION];
    uint8_t chosen[QUESTION];
} class_question;

static void free_signature(jvmtiEnv *jvmti, char *signature)
{
    if (signature != NULL) {
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
}

/* Has the recorder choose, and the chosen classes transformed. */
static void finish_question(class_batch *batch, class_question *question)
{
    memset(question->chosen, 0, sizeof(question->chosen));
    if (question->count != 0 &&
        sj_jvm.options.choose(question->loaded, question->count, question->chosen)) {
        batch->figures->looked_at += question->count;
        for (uint32_t i = 0; i < question->count; i++) {
            if (question->chosen[i] != 0) {
                add_to_batch(batch, question->classes[i]);
            }
        }
    }
    for (uint32_t i = 0; i < question->count; i++) {
        free_signature(batch->jvmti, question->facts[i].signature);
    }
    question->count = 0;
}

static void ask_about(class_batch *batch, class_question *question, jclass class, bool unasked_only)
{
    class_facts *facts = &question->facts[question->count];
    sj_jvm_loaded *loaded = &question->loaded[question->count];
    if (!read_class(batch->jvmti, batch->env, class, facts, loaded) ||
        (unasked_only && loaded->selection != SJ_CLASS_UNASKED)) {
        free_signature(batch->jvmti, facts->signature);
        return;
    }
    question->classes[question->count] = class;
    if (++question->count == QUESTION) {
        finish_question(batch, question);
    }
}

static void free_classes(jvmtiEnv *jvmti, JNIEnv *env, jclass *classes, jint count)
{
    for (jint i = 0; i < count; i++) {
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

void sj_retransform_chosen(jvmtiEnv *jvmti, JNIEnv *env, bool unasked_only, sj_jvm_figures *figures)
{
    unsigned char *room = NULL;
    jint count = 0;
    jclass *classes = NULL;
    class_batch batch = {.jvmti = jvmti, .env = env, .figures = figures};
    if ((*jvmti)->Allocate(jvmti, sizeof(class_question), &room) != JVMTI_ERROR_NONE) {
        return;
    }
    class_question *question = (void *)room;
    question->count = 0;
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) == JVMTI_ERROR_NONE) {
        for (jint i = 0; i < count; i++) {
            ask_about(&batch, question, classes[i], unasked_only);
        }
        finish_question(&batch, question);
        finish_batch(&batch);
        free_classes(jvmti, env, classes, count);
    }
    (void)(*jvmti)->Deallocate(jvmti, room);
}

void sj_retransform_marked(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures)
{
    jint count = 0;
    jclass *classes = NULL;
    class_facts facts;
    class_batch batch = {.jvmti = jvmti, .env = env, .figures = figures};
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        sj_jvm_loaded loaded;
        if (read_class(jvmti, env, classes[i], &facts, &loaded) &&
            loaded.selection >= SJ_CLASS_SELECTED) {
            figures->looked_at++;
            add_to_batch(&batch, classes[i]);
        }
        free_signature(jvmti, facts.signature);
    }
    finish_batch(&batch);
    free_classes(jvmti, env, classes, count);
}

void JNICALL sj_jvm_on_prepare(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class)
{
    uint8_t chosen = 0;
    class_facts facts;
    sj_jvm_loaded loaded;
    (void)thread;
    if (atomic_load(&sj_jvm.enabled) == 0 || !is_by_lineage() || !sj_recorder_is_armed() ||
        !sj_recorder_may_call()) {
        return;
    }
    if (read_class(jvmti, env, class, &facts, &loaded) &&
        sj_jvm.options.choose(&loaded, 1, &chosen) && chosen != 0) {
        (void)(*jvmti)->RetransformClasses(jvmti, 1, &class);
    }
    free_signature(jvmti, facts.signature);
}
